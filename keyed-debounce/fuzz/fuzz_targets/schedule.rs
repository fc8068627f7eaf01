//! The core beside the model of the rules, whatever is done to it in whatever order.
#![no_main]

use std::{num::NonZeroUsize, time::Duration};

use arbitrary::Arbitrary;
use keyed_debounce::{
    Debounce, Exponential, KeyState, Outcome,
    schedule::{Ending, HandOut, Schedule, Settings, Timestamp},
    testing::{Expected, Model},
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Story {
    start: Span,
    capacity: Option<u8>,
    min_interval: Option<u16>,
    steps: Vec<Step>,
}

/// A time that is short, or as far as it goes.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Span {
    Nanos(u8),
    Millis(u16),
    Seconds(u32),
    Any(u64),
    Endless,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Advance(Span),
    Request {
        key: u16,
        quiet: Span,
        max_wait: Span,
    },
    /// Hundreds of keys, so that the line of those who are next is not all there is.
    RequestMany {
        first: u8,
        step: u8,
        quiet: Span,
    },
    Take(u8),
    Done(u8),
    Retry(u8),
    RetryAfter(u8, Span),
    Defer(u8, Span),
    Cancel(u16),
}

impl Span {
    fn duration(self) -> Duration {
        match self {
            Self::Nanos(nanos) => Duration::from_nanos(nanos.into()),
            Self::Millis(millis) => Duration::from_millis(millis.into()),
            Self::Seconds(seconds) => Duration::from_secs(seconds.into()),
            Self::Any(nanos) => Duration::from_nanos(nanos),
            Self::Endless => Duration::MAX,
        }
    }
}

struct Pair {
    real: Schedule<u16>,
    model: Model<u16>,
    now: Timestamp,
    runs: Vec<HandOut<u16>>,
}

/// Few, so that they meet, and enough for shelves.
const KEYS: u16 = 600;

impl Pair {
    fn step(&mut self, step: Step) {
        match step {
            Step::Advance(by) => self.now = self.now + by.duration(),
            Step::Request { key, quiet, max_wait } => {
                self.request(key % KEYS, Debounce::new(quiet.duration(), max_wait.duration()));
            }
            Step::RequestMany { first, step, quiet } => {
                for number in 0..KEYS / 2 {
                    let quiet = quiet
                        .duration()
                        .saturating_add(Duration::from_nanos(u64::from(number) * u64::from(step)));
                    self.request(
                        (u16::from(first) + number) % KEYS,
                        Debounce::new(quiet, Duration::MAX),
                    );
                }
            }
            Step::Take(count) => (0..count % 32).for_each(|_| self.take()),
            Step::Done(run) => self.finish(run, Outcome::Done),
            Step::Retry(run) => self.finish(run, Outcome::Retry),
            Step::RetryAfter(run, delay) => self.finish(run, Outcome::RetryAfter(delay.duration())),
            Step::Defer(run, delay) => self.finish(run, Outcome::Defer(delay.duration())),
            Step::Cancel(key) => {
                let found = self.real.cancel(&(key % KEYS), self.now).found;
                assert_eq!(found, self.model.cancel(&(key % KEYS)));
            }
        }
        assert_eq!(self.real.len(), self.model.len());
        assert_eq!(self.real.running_len(), self.runs.len());
        self.compare_wake();
    }

    fn request(&mut self, key: u16, debounce: Debounce) {
        let expected = self.model.schedule(key, debounce, self.now);
        assert_eq!(self.real.schedule(key, debounce, self.now).ok(), expected);
        self.compare_key(key);
    }

    fn take(&mut self) {
        let expected = self.model.next(self.now);
        let taken = loop {
            let taken = self.real.pop_due(self.now);
            // It says when there was more to sort out than one call does.
            if taken.is_some() || self.real.next_wake().is_none_or(|wake| wake > self.now) {
                break taken;
            }
        };
        assert_eq!(taken.as_ref().map(|taken| *taken.key), expected);
        let Some(taken) = taken else { return };
        assert_eq!(taken.attempt, self.model.start(&taken.key, self.now));
        self.compare_key(*taken.key);
        self.runs.push(taken);
    }

    fn finish(&mut self, run: u8, outcome: Outcome) {
        if self.runs.is_empty() {
            return;
        }
        let HandOut { key, attempt, ticket, .. } =
            self.runs.swap_remove(usize::from(run) % self.runs.len());
        let ending = Ending::new(outcome, attempt, &Exponential::DEFAULT, 0);
        self.real.finish(ticket, ending, self.now);
        self.model.finish(&key, ending, self.now);
        self.compare_key(*key);
        self.real.expire(self.now);
    }

    fn compare_wake(&self) {
        match (self.real.next_wake(), self.model.next_wake()) {
            (Some(real), Some(model)) => assert!(real <= model.max(self.now)),
            (real, model) => assert_eq!(real, model),
        }
    }

    fn compare_key(&self, key: u16) {
        match (self.real.state(&key, self.now), self.model.state(&key, self.now)) {
            (None, Expected::Absent) | (Some(KeyState::Ready), Expected::Ready) => {}
            (Some(KeyState::Running { requested_again }), Expected::Running(requested)) => {
                assert_eq!(requested_again, requested);
            }
            (Some(KeyState::Waiting { due_in }), Expected::Waiting(due)) => {
                assert_eq!(self.now + due_in, due);
            }
            (Some(KeyState::Backoff { due_in, failures }), Expected::Backoff(due, expected)) => {
                assert_eq!((self.now + due_in, failures), (due, expected));
            }
            (real, model) => panic!("key {key} is {real:?}, should be {model:?}"),
        }
    }
}

fuzz_target!(|story: Story| {
    let settings = Settings {
        capacity: story.capacity.and_then(|keys| NonZeroUsize::new(keys.into())),
        min_gap: None,
        min_interval: story.min_interval.map(|millis| Duration::from_millis(millis.into())),
    };
    let mut pair = Pair {
        real: Schedule::new(settings),
        model: Model::new(settings),
        now: Timestamp::ORIGIN + story.start.duration(),
        runs: Vec::new(),
    };
    for step in story.steps.into_iter().take(64) {
        pair.step(step);
    }
});
