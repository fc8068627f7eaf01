//! The core against the naive model, over sequences of operations at any times.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain_throttle::{DomainState, Endpoint, Feedback, Grant, Limits, Moment, Refusal, WaiterId};
use proptest::{prelude::*, sample::Index};

use crate::{
    model::{Key, Model, No, Place},
    support::{at, limits},
};

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Pass(u64),
    /// To the latest promised instant, or to just before it.
    PassToPromise {
        just_before: bool,
    },
    Take(Key, Place),
    Join(Key, Vec<Place>),
    Claim(Index),
    Leave(Index),
    Settle(Index, Feedback),
    SetLimits(u32, u32),
}

pub(crate) fn any_op() -> impl Strategy<Value = Op> {
    let key = 0..4u8;
    let place = 0..3u8;
    prop_oneof![
        3 => prop_oneof![
            0..1_000u64,
            0..1_000_000_000u64,
            0..3_000_000_000u64,
            0..200_000_000_000u64,
            Just(1_000_000_000u64)
        ].prop_map(Op::Pass),
        2 => any::<bool>().prop_map(|just_before| Op::PassToPromise { just_before }),
        4 => (key.clone(), place.clone()).prop_map(|(key, place)| Op::Take(key, place)),
        4 => (key, prop::collection::vec(place, 1..3)).prop_map(|(key, places)| Op::Join(key, places)),
        4 => any::<Index>().prop_map(Op::Claim),
        1 => any::<Index>().prop_map(Op::Leave),
        4 => (any::<Index>(), any_feedback()).prop_map(|(which, how)| Op::Settle(which, how)),
        1 => (1..4u32, 1..5u32).prop_map(|(concurrent, per_window)| Op::SetLimits(concurrent, per_window)),
    ]
}

fn any_feedback() -> impl Strategy<Value = Feedback> {
    prop_oneof![
        4 => Just(Feedback::Ok),
        1 => Just(Feedback::Failed),
        2 => Just(Feedback::Unused),
        3 => Just(Feedback::Broken),
        1 => Just(Feedback::RetryAfter(Duration::ZERO)),
        1 => Just(Feedback::RetryAfter(Duration::from_millis(300))),
        1 => Just(Feedback::RetryAfter(Duration::from_secs(5))),
        1 => Just(Feedback::RetryAfter(Duration::MAX)),
    ]
}

/// The core and the model side by side. Time moves in the core as its driver would move it: from
/// one promised wake-up to the next, and at operations.
struct Pair {
    core: DomainState<u32>,
    model: Model,
    places: Vec<Endpoint>,
    grants: BTreeMap<u32, (Grant, Place)>,
    waiters: BTreeMap<u32, (WaiterId, Vec<Place>)>,
    called: Vec<(u64, u32)>,
    /// Those who wait to be woken.
    asleep: BTreeSet<u32>,
    promise: Option<u64>,
    next_id: u32,
}

impl Pair {
    fn new(limits: Limits) -> Self {
        let places = ["https://h.example", "https://h.example:8443", "ssh://h.example"];
        Self {
            core: DomainState::new(limits),
            model: Model::new(limits),
            places: places.map(at).to_vec(),
            grants: BTreeMap::new(),
            waiters: BTreeMap::new(),
            called: Vec::new(),
            asleep: BTreeSet::new(),
            promise: None,
            next_id: 0,
        }
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(self.model.now)
    }

    fn pass(&mut self, to: u64) {
        let mut now = self.model.now;
        for step in 0.. {
            assert!(step < 10_000, "the core asks to be woken again and again");
            let Some(next) = self.core.next_wakeup(Moment::from_nanos(now)) else { break };
            assert!(next.as_nanos() > now, "a wake-up in the past");
            if next.as_nanos() > to {
                break;
            }
            now = next.as_nanos();
            self.core.advance(next);
            self.note_called(now);
        }
        self.core.advance(Moment::from_nanos(to));
        self.note_called(to);
        self.model.pass(to);
    }

    fn note_called(&mut self, now: u64) {
        while let Some(id) = self.core.pop_woken() {
            self.called.push((now, id));
        }
    }

    /// Both called the same waiters, at the same instants, in the same order. Who was called and has
    /// not looked since is not called again.
    fn compare_calls(&mut self) -> Result<(), TestCaseError> {
        let wanted = std::mem::take(&mut self.model.called);
        let wanted: Vec<_> = wanted.into_iter().filter(|(_, id)| self.asleep.remove(id)).collect();
        prop_assert_eq!(std::mem::take(&mut self.called), wanted);
        Ok(())
    }

    fn check_all(&mut self) -> Result<(), TestCaseError> {
        for key in 0..4 {
            for place in 0..3 {
                let expected = self.model.verdict(key, place);
                let (now, endpoint) = (self.now(), self.places[usize::from(place)].clone());
                let found = self.core.check(now, &endpoint, &key.to_string()).map_err(no);
                prop_assert_eq!(found, expected, "key {} at place {}", key, place);
                if let Err(No::Window(until) | No::Paused(until)) = found {
                    self.promise = Some(until);
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let (now, id) = (self.now(), self.next_id);
        self.next_id += 1;
        match op {
            Op::Pass(by) => self.pass(self.model.now + by),
            Op::PassToPromise { just_before } => {
                let to = self.promise.unwrap_or(0).saturating_sub(u64::from(*just_before));
                self.pass(to.max(self.model.now));
            }
            Op::Take(key, place) => {
                let endpoint = &self.places[usize::from(*place)];
                let taken = self.core.try_take(now, endpoint, &key.to_string()).map_err(no);
                let expected = self.model.try_take(id, *key, *place);
                prop_assert_eq!(taken.as_ref().map(|_| ()), expected.as_ref().map(|_| ()));
                if let Ok(grant) = taken {
                    self.grants.insert(id, (grant, *place));
                }
            }
            Op::Join(key, places) => {
                let endpoints: Vec<_> =
                    places.iter().map(|&place| self.places[usize::from(place)].clone()).collect();
                let waiter = self.core.join(now, &endpoints, &key.to_string(), id);
                self.asleep.insert(id);
                self.model.join(id, *key, places);
                self.waiters.insert(id, (waiter, places.clone()));
            }
            Op::Claim(which) if !self.waiters.is_empty() => {
                let id = *which.get(&self.waiters.keys().copied().collect::<Vec<_>>());
                let (waiter, places) = self.waiters[&id].clone();
                let claimed = self.core.claim(now, waiter);
                let expected = self.model.claim(id);
                prop_assert_eq!(claimed.is_some(), expected, "claim of {}", id);
                match claimed {
                    Some((at, grant)) => {
                        self.grants.insert(id, (grant, places[at]));
                        self.waiters.remove(&id);
                    }
                    // As a poll does: it is woken again when there is something for it.
                    None => {
                        self.core.replace_wake(waiter, id);
                        self.asleep.insert(id);
                    }
                }
            }
            Op::Leave(which) if !self.waiters.is_empty() => {
                let id = *which.get(&self.waiters.keys().copied().collect::<Vec<_>>());
                let (waiter, _) = self.waiters.remove(&id).expect("it waits");
                self.core.leave(now, waiter);
                self.model.leave(id);
            }
            Op::Settle(which, feedback) if !self.grants.is_empty() => {
                let id = *which.get(&self.grants.keys().copied().collect::<Vec<_>>());
                let (grant, place) = self.grants.remove(&id).expect("it is alive");
                self.core.settle(now, grant, &self.places[usize::from(place)], *feedback);
                self.model.settle(id, *feedback);
            }
            Op::SetLimits(concurrent, per_window) => {
                let limits = limits(*concurrent, *per_window, self.model.limits.window);
                self.core.set_limits(now, limits);
                self.model.set_limits(limits);
            }
            Op::Claim(_) | Op::Leave(_) | Op::Settle(..) => {}
        }
        self.note_called(self.model.now);
        Ok(())
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

proptest! {
    /// L1, L2, L3, L5, L6, L7, L8, L10: the core decides what the naive model decides, calls the
    /// same waiters at the same instants, and is woken for each of them by time it asked for.
    #[test]
    fn the_core_decides_as_the_naive_model(
        concurrent in 1..4u32,
        per_window in 1..5u32,
        millis in prop_oneof![Just(0u64), Just(1), Just(100), Just(1_000), Just(2_000)],
        ops in prop::collection::vec(any_op(), 1..80),
    ) {
        let mut pair = Pair::new(limits(concurrent, per_window, Duration::from_millis(millis)));
        for op in &ops {
            pair.apply(op)?;
            pair.check_all()?;
            prop_assert_eq!(pair.core.in_flight() as usize, pair.model.in_flight());
            prop_assert_eq!(pair.core.waiting(), pair.model.waiting());
            pair.compare_calls()?;
        }
        let end = pair.model.now + 400_000_000_000_000;
        pair.pass(end);
        pair.compare_calls()?;
        pair.check_all()?;
    }
}
