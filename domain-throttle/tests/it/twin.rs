//! L12: forgetting decides nothing.

use std::{collections::BTreeMap, time::Duration};

use domain_throttle::{DomainState, Endpoint, Feedback, Grant, Moment, Refusal, WaiterId};
use proptest::prelude::*;

use crate::{
    oracle::{Op, any_op},
    support::{at, limits},
};

/// A domain that is forgotten whenever it may be, or never.
struct Twin {
    core: DomainState<u32>,
    forgets: bool,
    forgotten: u32,
    grants: BTreeMap<u32, (Grant, usize)>,
    waiters: BTreeMap<u32, (WaiterId, Vec<usize>)>,
}

impl Twin {
    fn new(forgets: bool, limits: domain_throttle::Limits) -> Self {
        let core = DomainState::new(limits);
        Self { core, forgets, forgotten: 0, grants: BTreeMap::new(), waiters: BTreeMap::new() }
    }

    fn forget_if_idle(&mut self, now: Moment) {
        if self.forgets && self.core.idle_at().is_some_and(|at| at <= now) {
            self.core = DomainState::new(*self.core.limits());
            self.forgotten += 1;
        } else if self.forgets {
            self.core.shrink(now);
        }
    }

    /// Everything that can be seen of a domain, after an operation.
    fn apply(&mut self, op: &Op, id: u32, now: Moment, places: &[Endpoint]) -> String {
        self.forget_if_idle(now);
        let mut seen = String::new();
        let endpoints =
            |of: &[u8]| of.iter().map(|&p| places[usize::from(p)].clone()).collect::<Vec<_>>();
        match op {
            Op::Take(key, place) => {
                let taken = self.core.try_take(now, &places[usize::from(*place)], &key.to_string());
                seen = format!("{:?}", taken.as_ref().map(|_| ()));
                if let Ok(grant) = taken {
                    self.grants.insert(id, (grant, usize::from(*place)));
                }
            }
            Op::Join(key, of) => {
                let waiter = self.core.join(now, &endpoints(of), &key.to_string(), id);
                self.waiters.insert(id, (waiter, of.iter().map(|&p| usize::from(p)).collect()));
            }
            Op::Claim(which) if !self.waiters.is_empty() => {
                let id = *which.get(&self.waiters.keys().copied().collect::<Vec<_>>());
                let (waiter, of) = self.waiters[&id].clone();
                if let Some((at, grant)) = self.core.claim(now, waiter) {
                    seen = format!("{id} claimed {at}");
                    self.waiters.remove(&id);
                    self.grants.insert(id, (grant, of[at]));
                }
            }
            Op::Leave(which) if !self.waiters.is_empty() => {
                let id = *which.get(&self.waiters.keys().copied().collect::<Vec<_>>());
                let (waiter, _) = self.waiters.remove(&id).expect("it waits");
                self.core.leave(now, waiter);
            }
            Op::Settle(which, feedback) if !self.grants.is_empty() => {
                let id = *which.get(&self.grants.keys().copied().collect::<Vec<_>>());
                let (grant, at) = self.grants.remove(&id).expect("it is alive");
                seen = format!("{:?}", self.core.settle(now, grant, &places[at], *feedback));
            }
            Op::SetLimits(concurrent, per_window) => {
                let mut window = self.core.limits().window;
                // Beyond 2 s a tick grows longer with the window, and never shorter again.
                if window <= Duration::from_secs(2) {
                    let base = Duration::from_millis(if window.as_secs() > 0 { 1_000 } else { 1 });
                    window = base * 2.min(*concurrent);
                }
                self.core.set_limits(now, limits(*concurrent, *per_window, window));
            }
            _ => self.core.advance(now),
        }
        for key in 0..4 {
            for place in places {
                seen += &format!(" {:?}", self.core.check(now, place, &key.to_string()));
            }
        }
        while let Some(id) = self.core.pop_woken() {
            seen += &format!(" woke {id}");
        }
        format!(
            "{seen} {:?} {} {}",
            self.core.next_wakeup(now),
            self.core.in_flight(),
            self.core.waiting()
        )
    }
}

proptest! {
    /// L12: two domains live the same life; one is forgotten whenever it may be. Nobody can tell.
    #[test]
    fn forgetting_a_domain_never_changes_a_decision(
        concurrent in 1..4u32,
        per_window in 1..5u32,
        millis in prop_oneof![Just(1u64), Just(1_000), Just(60_000)],
        ops in prop::collection::vec(any_op(), 1..120),
    ) {
        let limits = limits(concurrent, per_window, Duration::from_millis(millis));
        let (mut kept, mut forgotten) = (Twin::new(false, limits), Twin::new(true, limits));
        let places = ["https://h.example", "https://h.example:8443", "ssh://h.example"].map(at);
        let mut now = Moment::ZERO;
        for (id, op) in (0..).zip(&ops) {
            if let Op::Pass(by) = op {
                now = now.saturating_add(Duration::from_nanos(*by));
            }
            let (one, two) = (kept.apply(op, id, now, &places), forgotten.apply(op, id, now, &places));
            prop_assert_eq!(one, two, "{:?}", op);
        }
    }
}

/// L12: the twin run above does forget: a pause, its memory and the window end, and then it is idle.
#[test]
fn an_idle_domain_says_when_it_may_be_forgotten() {
    let server = at("https://h.example");
    let mut core = DomainState::<()>::new(limits(5, 30, Duration::from_secs(60)));
    assert_eq!(core.idle_at(), Some(Moment::ZERO));
    let grant = core.try_take(Moment::ZERO, &server, "a").expect("open");
    assert_eq!(core.idle_at(), None);
    core.settle(Moment::ZERO, grant, &server, Feedback::RetryAfter(Duration::from_secs(10)));
    // The window is empty after 60 s; that the server asked for 10 s is remembered for 20 s more.
    assert_eq!(core.idle_at(), Some(Moment::from_nanos(60_000_000_000)));
}

/// L10, L12: a probe that is out when the memory of its pause ends is not forgotten: nobody else may
/// go meanwhile, and the pause that its end brings is twice as long, tidied or not.
#[test]
fn a_probe_that_is_out_is_not_forgotten() {
    let server = at("https://h.example");
    let after = |secs: u64| Moment::from_nanos(secs * 1_000_000_000);
    let seen = [false, true].map(|tidied| {
        let mut core = DomainState::<()>::new(limits(5, 30, Duration::from_secs(60)));
        for _ in 0..4 {
            let grant = core.try_take(Moment::ZERO, &server, "a").expect("open");
            core.settle(Moment::ZERO, grant, &server, Feedback::Broken);
        }
        // Paused for 60 s, remembered for 120 s more.
        let probe = core.try_take(after(175), &server, "a").expect("the probe");
        if tidied {
            core.shrink(after(181));
        }
        let meanwhile = core.check(after(182), &server, "b");
        let settled = core.settle(after(205), probe, &server, Feedback::Broken);
        (meanwhile, settled.endpoint_paused)
    });
    let meanwhile = Err(Refusal::Paused { until: after(183) });
    assert_eq!(seen, [(meanwhile, Some(after(205 + 120))); 2]);
}

/// L11, L12: a window that grows counts the starts of the old one, and those only: an older start
/// is not remembered, tidied or not.
#[test]
fn a_start_that_is_too_old_does_not_come_back_with_a_longer_window() {
    let server = at("https://h.example");
    let after = |secs: u64| Moment::from_nanos(secs * 1_000_000_000);
    for tidied in [false, true] {
        let mut core = DomainState::<()>::new(limits(5, 2, Duration::from_secs(10)));
        for at in [0, 5] {
            let grant = core.try_take(after(at), &server, "a").expect("open");
            core.settle(after(at), grant, &server, Feedback::Ok);
        }
        if tidied {
            core.shrink(after(12));
        }
        core.set_limits(after(12), limits(5, 2, Duration::from_secs(100)));
        assert_eq!(core.in_window(after(12)), 1, "tidied: {tidied}");
        assert_eq!(core.check(after(12), &server, "b"), Ok(()), "tidied: {tidied}");
    }
}
