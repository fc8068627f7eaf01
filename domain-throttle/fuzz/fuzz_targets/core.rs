//! The core against the naive model of the tests, over any sequence of operations at any times.
#![no_main]

#[path = "../../tests/it/model.rs"]
#[allow(dead_code, reason = "the tests ask more of it")]
mod model;

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use arbitrary::Arbitrary;
use domain_throttle::{DomainState, Endpoint, Feedback, Grant, Limits, Moment, Refusal, WaiterId};
use libfuzzer_sys::fuzz_target;
use model::{Model, No};

#[derive(Arbitrary, Debug)]
struct Input {
    concurrent: u8,
    per_window: u8,
    window: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Pass(u32, u8),
    /// To the latest promised instant, or to just before it.
    PassToPromise(bool),
    Take(u8, u8),
    Join(u8, u8, Option<u8>),
    Claim(u8),
    Leave(u8),
    Settle(u8, u8),
    SetLimits(u8, u8),
    Shrink,
}

/// The core and the model side by side.
struct Pair {
    core: DomainState<()>,
    model: Model,
    places: [Endpoint; 3],
    grants: BTreeMap<u32, (Grant, u8)>,
    waiters: BTreeMap<u32, (WaiterId, Vec<u8>)>,
    promise: u64,
    next_id: u32,
}

fuzz_target!(|input: Input| {
    let millis = [0, 1, 100, 1_000, 2_000][usize::from(input.window % 5)];
    let limits = limits(input.concurrent, input.per_window, Duration::from_millis(millis));
    let places = ["https://h.example", "https://h.example:8443", "ssh://h.example"];
    let mut pair = Pair {
        core: DomainState::new(limits),
        model: Model::new(limits),
        places: places.map(|place| place.parse().expect("a URL")),
        grants: BTreeMap::new(),
        waiters: BTreeMap::new(),
        promise: 0,
        next_id: 0,
    };
    for step in input.steps.iter().take(200) {
        pair.apply(step);
        pair.compare();
    }
});

impl Pair {
    fn now(&self) -> Moment {
        Moment::from_nanos(self.model.now)
    }

    /// As the driver does: from one promised wake-up to the next.
    fn pass(&mut self, to: u64) {
        for step in 0.. {
            assert!(step < 10_000, "the core asks to be woken again and again");
            let next = self.core.next_wakeup(self.now());
            let Some(next) = next.filter(|next| next.as_nanos() <= to) else { break };
            assert!(next > self.now(), "a wake-up in the past");
            self.core.advance(next);
            self.model.pass(next.as_nanos());
        }
        self.core.advance(Moment::from_nanos(to));
        self.model.pass(to);
    }

    fn apply(&mut self, step: &Step) {
        let (now, id) = (self.now(), self.next_id);
        self.next_id += 1;
        match *step {
            Step::Pass(by, shift) => self.pass(self.model.now + (u64::from(by) << (shift % 8))),
            Step::PassToPromise(just_before) => {
                let to = self.promise.saturating_sub(u64::from(just_before));
                self.pass(to.max(self.model.now));
            }
            Step::Take(key, place) => {
                let (key, place) = (key % 4, place % 3);
                let at = &self.places[usize::from(place)];
                let taken = self.core.try_take(now, at, &key.to_string());
                let expected = self.model.try_take(id, key, place);
                assert_eq!(taken.as_ref().map(|_| ()).map_err(|&refusal| no(refusal)), expected);
                if let Ok(grant) = taken {
                    self.grants.insert(id, (grant, place));
                }
            }
            Step::Join(key, first, second) => {
                let key = key % 4;
                let places: Vec<u8> =
                    std::iter::once(first).chain(second).map(|place| place % 3).collect();
                let at: Vec<Endpoint> =
                    places.iter().map(|&place| self.places[usize::from(place)].clone()).collect();
                let waiter = self.core.join(now, &at, &key.to_string(), ());
                self.model.join(id, key, &places);
                self.waiters.insert(id, (waiter, places));
            }
            Step::Claim(which) => {
                let Some(id) = pick(&self.waiters, which) else { return };
                let (waiter, places) = self.waiters[&id].clone();
                let claimed = self.core.claim(now, waiter);
                assert_eq!(claimed.is_some(), self.model.claim(id), "claim of {id}");
                if let Some((at, grant)) = claimed {
                    self.grants.insert(id, (grant, places[at]));
                    self.waiters.remove(&id);
                }
            }
            Step::Leave(which) => {
                let Some(id) = pick(&self.waiters, which) else { return };
                let (waiter, _) = self.waiters.remove(&id).expect("it waits");
                self.core.leave(now, waiter);
                self.model.leave(id);
            }
            Step::Settle(which, how) => {
                let Some(id) = pick(&self.grants, which) else { return };
                let (grant, place) = self.grants.remove(&id).expect("it is alive");
                let feedback = feedback(how);
                self.core.settle(now, grant, &self.places[usize::from(place)], feedback);
                self.model.settle(id, feedback);
            }
            Step::SetLimits(concurrent, per_window) => {
                let limits = limits(concurrent, per_window, self.model.limits.window);
                self.core.set_limits(now, limits);
                self.model.set_limits(limits);
            }
            Step::Shrink => self.core.shrink(now),
        }
        while self.core.pop_woken().is_some() {}
    }

    fn compare(&mut self) {
        assert_eq!(self.core.in_flight() as usize, self.model.in_flight());
        assert_eq!(self.core.waiting(), self.model.waiting());
        for key in 0..4 {
            for place in 0..3 {
                let at = &self.places[usize::from(place)];
                let found = self.core.check(self.now(), at, &key.to_string()).map_err(no);
                assert_eq!(found, self.model.verdict(key, place), "key {key} at place {place}");
                if let Err(No::Window(until) | No::Paused(until)) = found {
                    self.promise = until;
                }
            }
        }
    }
}

fn limits(concurrent: u8, per_window: u8, window: Duration) -> Limits {
    let count = |value: u8| NonZeroU32::MIN.saturating_add(u32::from(value % 4));
    Limits { max_concurrent: count(concurrent), max_per_window: count(per_window), window }
}

fn pick<T>(from: &BTreeMap<u32, T>, which: u8) -> Option<u32> {
    let at = usize::from(which).checked_rem(from.len())?;
    from.keys().nth(at).copied()
}

fn feedback(how: u8) -> Feedback {
    match how % 10 {
        0..3 => Feedback::Ok,
        3 => Feedback::Failed,
        4 => Feedback::Unused,
        5..8 => Feedback::Broken,
        8 => Feedback::RetryAfter(Duration::from_millis(300)),
        _ => Feedback::RetryAfter(Duration::MAX),
    }
}

fn no(refusal: Refusal) -> No {
    match refusal {
        Refusal::KeyBusy => No::KeyBusy,
        Refusal::Concurrency => No::Concurrency,
        Refusal::Window { until } => No::Window(until.as_nanos()),
        Refusal::Paused { until } => No::Paused(until.as_nanos()),
        Refusal::Queued => No::Queued,
        other => panic!("an unknown refusal {other:?}"),
    }
}
