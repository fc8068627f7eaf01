//! The core against the naive model, operation by operation.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    time::Duration,
};

use keyed_debounce::{
    Debounce, Drain, Exponential, KeyState, Outcome, ScheduleError, Scheduled,
    schedule::{Ending, HandOut, Schedule, Settings, Timestamp},
    testing::{Expected, Model, Op, ops},
};
use proptest::prelude::*;

/// The real schedule and the model, which must agree after each step.
struct Pair {
    real: Schedule<u32>,
    model: Model<u32>,
    settings: Settings,
    now: Timestamp,
    runs: Vec<HandOut<u32>>,
    /// D4: each request that no run has begun for: key, time of the request, promised start.
    promised: Vec<(u32, Timestamp, Timestamp)>,
}

impl Pair {
    fn new(settings: Settings, now: Timestamp) -> Self {
        Self {
            real: Schedule::new(settings),
            model: Model::new(settings),
            settings,
            now,
            runs: Vec::new(),
            promised: Vec::new(),
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Advance(by) => self.now = self.now + by,
            Op::Schedule(key, debounce) => self.schedule(key, debounce),
            Op::Take => {
                self.take();
            }
            Op::Finish(run, outcome) => self.finish(run, outcome),
            Op::Drop(run) => self.finish(run, Outcome::Retry),
            Op::Cancel(key) => {
                let found = self.real.cancel(&key, self.now).found;
                assert_eq!(found, self.model.cancel(&key));
                self.promised.retain(|(other, ..)| *other != key);
            }
            other => panic!("no such step: {other:?}"),
        }
        self.compare();
    }

    fn schedule(&mut self, key: u32, debounce: Debounce) {
        let model = self.model.schedule(key, debounce, self.now);
        match self.real.schedule(key, debounce, self.now) {
            Ok(how) => {
                assert_eq!(Some(how), model);
                self.promised.push((key, self.now, self.now + debounce.max_wait));
            }
            Err(ScheduleError::Full(back)) => {
                assert_eq!((back, None), (key, model));
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    fn take(&mut self) -> bool {
        let expected = self.model.next(self.now);
        let hand_out = self.real.pop_due(self.now);
        assert_eq!(hand_out.as_ref().map(|hand_out| *hand_out.key), expected);
        let Some(hand_out) = hand_out else { return false };
        let key = *hand_out.key;
        assert!(self.runs.iter().all(|run| *run.key != key), "D5: {key} runs twice");
        assert_eq!(hand_out.attempt, self.model.start(&key, self.now));
        self.promised.retain(|(other, ..)| *other != key);
        self.runs.push(hand_out);
        true
    }

    fn finish(&mut self, run: usize, outcome: Outcome) {
        if self.runs.is_empty() {
            return;
        }
        let HandOut { key, attempt, ticket, .. } = self.runs.swap_remove(run % self.runs.len());
        let ending = Ending::new(outcome, attempt, &Exponential::DEFAULT, 0);
        self.real.finish(ticket, ending, self.now);
        self.model.finish(&key, ending, self.now);
        for (_, _, by) in self.promised.iter_mut().filter(|(other, ..)| *other == *key) {
            *by = (*by).max(self.now);
        }
    }

    fn compare(&mut self) {
        let now = self.now;
        assert_eq!(self.real.len(), self.model.len());
        assert_eq!(self.real.running_len(), self.runs.len());
        assert_eq!(self.real.counts(now).total(), self.real.len());
        // With rounds the schedule sets apart by a nanosecond what came in the instant of a start.
        let slack = if self.settings.min_gap.is_some() { 1 } else { 0 };
        let close = |a: Timestamp, b: Timestamp| {
            let apart = a.saturating_since(b).max(b.saturating_since(a));
            assert!(apart <= Duration::from_nanos(slack), "{a:?} is not {b:?}");
        };
        match (self.real.next_wake(), self.model.next_wake()) {
            (Some(real), Some(model)) => close(real.max(now), model.max(now)),
            (real, model) => assert_eq!(real, model),
        }
        for key in 0..6 {
            match (self.real.state(&key, now), self.model.state(&key, now)) {
                (None, Expected::Absent) | (Some(KeyState::Ready), Expected::Ready) => {}
                (Some(KeyState::Running { requested_again }), Expected::Running(requested)) => {
                    assert_eq!(requested_again, requested);
                }
                (Some(KeyState::Waiting { due_in }), Expected::Waiting(due)) => {
                    close(now + due_in, due);
                }
                (
                    Some(KeyState::Backoff { due_in, failures }),
                    Expected::Backoff(due, expected),
                ) => {
                    close(now + due_in, due);
                    assert_eq!(failures, expected);
                }
                (
                    Some(KeyState::Waiting { due_in } | KeyState::Backoff { due_in, .. }),
                    Expected::Ready,
                ) if slack == 1 && due_in <= Duration::from_nanos(1) => {}
                (real, model) => panic!("key {key} is {real:?}, should be {model:?}"),
            }
        }
        if self.settings == Settings::default() {
            self.check_promises();
        }
    }

    /// D4, without the model: what was promised is due by then, or runs.
    fn check_promises(&mut self) {
        for &(key, at, by) in &self.promised {
            match self.real.state(&key, self.now) {
                Some(KeyState::Ready | KeyState::Running { requested_again: true }) => {}
                Some(KeyState::Waiting { due_in }) => assert!(self.now + due_in <= by),
                state => panic!("D4: the request at {at:?} is lost: {state:?}"),
            }
        }
    }

    /// Lets time go on until nothing waits, each run done at once.
    fn run_out(&mut self) {
        for _ in 0..1000 {
            while !self.runs.is_empty() {
                self.finish(0, Outcome::Done);
                self.compare();
            }
            while self.real.expire(self.now).is_some() {}
            match self.real.next_wake() {
                None => return,
                Some(wake) => self.now = self.now.max(wake),
            }
            assert!(self.take(), "woken for nothing");
        }
        panic!("it never ends");
    }
}

/// Where the clock starts: at zero, at 2^36 ms, and so near the end that deadlines saturate.
fn clock() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        3 => Just(Timestamp::ORIGIN),
        1 => Just(Timestamp::from_origin(Duration::from_millis(1 << 36))),
        1 => (0..300_000_u64).prop_map(|left| {
            Timestamp::from_origin(Timestamp::MAX.since_origin() - Duration::from_millis(left))
        }),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let optional = || proptest::option::of((1..3000_u64).prop_map(Duration::from_millis));
    let capacity = proptest::option::of((1..6_usize).prop_map(|n| NonZeroUsize::new(n).unwrap()));
    (capacity, optional(), optional()).prop_map(|(capacity, min_gap, min_interval)| Settings {
        capacity,
        min_gap,
        min_interval,
    })
}

proptest! {
    /// D1, D2, D3, D4, D5, D6, D7, D8, D9, D11, D14, D19: without limits, whatever is done in
    /// whatever order, the schedule does what the model does, and no promise is broken.
    #[test]
    fn it_does_what_the_model_does(ops in ops(0..120), start in clock()) {
        let mut pair = Pair::new(Settings::default(), start);
        for op in ops {
            pair.step(op);
        }
        pair.run_out();
        prop_assert!(pair.promised.is_empty());
        prop_assert!(pair.real.is_empty());
    }

    /// D12, D13, D16: the same with a capacity, rounds and a least interval.
    #[test]
    fn it_does_what_the_model_does_within_limits(
        ops in ops(0..120),
        settings in settings(),
        start in clock(),
    ) {
        let mut pair = Pair::new(settings, start);
        for op in ops {
            pair.step(op);
            pair.real.expire(pair.now);
        }
        pair.run_out();
        prop_assert!(pair.real.is_empty());
    }
}

proptest! {
    /// D15, D16: a drain from any state ends, hands out what it should, each key once more at most,
    /// keeps the interval, refuses requests, and leaves only what it may.
    #[test]
    fn a_drain_ends_and_leaves_only_what_it_may(
        ops in ops(0..80),
        settings in settings(),
        all in any::<bool>(),
        fails in any::<u8>(),
    ) {
        let mut pair = Pair::new(settings, Timestamp::ORIGIN);
        for op in ops {
            pair.step(op);
        }
        let Pair { mut real, model, mut now, runs, .. } = pair;
        let state = |key: &u32| model.state(key, now);
        let wanted: BTreeSet<u32> = (0..6)
            .filter(|key| match state(key) {
                Expected::Ready | Expected::Running(true) => true,
                Expected::Waiting(_) | Expected::Backoff(..) => all,
                Expected::Absent | Expected::Running(false) => false,
            })
            .collect();
        real.begin_drain(if all { Drain::All } else { Drain::Ready }, now);
        let refused = real.schedule(7, Debounce::immediate(), now);
        prop_assert!(matches!(refused, Err(ScheduleError::Closed(7))));
        for run in runs {
            real.finish(run.ticket, Ending::Done, now);
        }
        let mut starts: BTreeMap<u32, Timestamp> = BTreeMap::new();
        for _ in 0..100 {
            if let Some(run) = real.pop_due(now) {
                prop_assert!(starts.insert(*run.key, now).is_none(), "{} again", run.key);
                let outcome = if fails >> *run.key & 1 == 1 { Outcome::Retry } else { Outcome::Done };
                real.finish(run.ticket, Ending::new(outcome, 1, &Exponential::DEFAULT, 0), now);
            } else if real.is_over(now) {
                break;
            } else {
                now = now.max(real.next_wake().expect("it is not over"));
            }
        }
        prop_assert!(real.is_over(now));
        prop_assert_eq!(real.running_len(), 0);
        for key in 0..6 {
            let due_later = !all && matches!(real.state(&key, now), Some(KeyState::Waiting { .. }));
            if wanted.contains(&key) && !due_later {
                prop_assert!(starts.contains_key(&key), "{} was left out", key);
            }
            if let (Some(interval), Some(start)) = (settings.min_interval, starts.get(&key)) {
                let before = model.last_start(&key);
                prop_assert!(before.is_none_or(|before| *start >= before + interval));
            }
            match real.state(&key, now) {
                None => {}
                Some(KeyState::Backoff { .. }) => {}
                Some(KeyState::Waiting { .. }) if !all => {}
                left => prop_assert!(false, "{key} is left {left:?}"),
            }
        }
        prop_assert!(real.pop_due(Timestamp::MAX).is_none(), "what is over stays over");
        prop_assert_eq!(real.next_wake(), None);
    }
}

/// D4, D11: a simulated day of a busy queue with eight runners. The model is asked at each step.
#[test]
fn a_simulated_day() {
    let mut pair = Pair::new(Settings::default(), Timestamp::ORIGIN);
    let debounce = Debounce::new(Duration::from_millis(500), Duration::from_secs(5));
    let mut random = 42_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let mut starts = 0;
    while pair.now < Timestamp::from_origin(Duration::from_secs(24 * 60 * 60)) {
        pair.step(Op::Advance(Duration::from_millis(next(4000))));
        pair.step(Op::Schedule(u32::try_from(next(6)).unwrap(), debounce));
        while pair.runs.len() < 4 && pair.take() {
            starts += 1;
        }
        let outcome = if next(3) == 0 { Outcome::Retry } else { Outcome::Done };
        pair.step(Op::Finish(usize::try_from(next(8)).unwrap(), outcome));
    }
    assert!(starts > 10_000, "{starts}");
    pair.run_out();
    assert_eq!(pair.real.schedule(1, debounce, pair.now).unwrap(), Scheduled::New);
}
