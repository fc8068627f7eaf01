//! L7: round-robin over keys, in order within one key.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use domain_throttle::{DomainState, DomainThrottle, Feedback, Moment, ThrottleExt, WaiterId};
use proptest::prelude::*;

use crate::support::{at, bounded, limits, secs, settle};

const NOW: Moment = Moment::ZERO;

/// A core whose line is served one by one: who is called comes at once and is done at once.
struct Line {
    core: DomainState<WaiterId>,
    who: BTreeMap<WaiterId, (u32, u32)>,
}

impl Line {
    /// With one permit out, so that all that follow wait.
    fn new() -> (Self, domain_throttle::Grant) {
        let mut core = DomainState::new(limits(1, u32::MAX, secs(0)));
        let first = core.try_take(NOW, &at("https://h.example"), "first").expect("open");
        (Self { core, who: BTreeMap::new() }, first)
    }

    fn join(&mut self, key: u32, number: u32) {
        let server = at("https://h.example");
        // What wakes it is not known before it waits; it is set right after.
        let anybody = *self.who.keys().next().unwrap_or(&self.any_id());
        let id = self.core.join(NOW, &[server], &key.to_string(), anybody);
        self.core.replace_wake(id, id);
        self.who.insert(id, (key, number));
    }

    fn any_id(&self) -> WaiterId {
        let mut core = DomainState::new(limits(1, 1, secs(0)));
        core.join(NOW, &[at("https://h.example")], "x", ())
    }

    fn serve_all(mut self, first: domain_throttle::Grant) -> Vec<(u32, u32)> {
        let server = at("https://h.example");
        let mut served = Vec::new();
        self.core.settle(NOW, first, &server, Feedback::Ok);
        while let Some(id) = self.core.pop_woken() {
            let (_, grant) = self.core.claim(NOW, id).expect("who is called has a permit");
            served.push(self.who[&id]);
            self.core.settle(NOW, grant, &server, Feedback::Ok);
        }
        assert_eq!(self.core.waiting(), 0);
        served
    }
}

/// L7: a key with a thousand waiters holds up a key with one by one request only.
#[test]
fn a_key_with_a_thousand_waiters_does_not_hold_up_a_key_with_one() {
    let (mut line, first) = Line::new();
    (0..1_000).for_each(|n| line.join(1, n));
    line.join(2, 0);
    let served = line.serve_all(first);
    assert_eq!(served.iter().position(|&(key, _)| key == 2), Some(1));
}

proptest! {
    /// L7: between two requests of a key every other key that waits gets one at most, and within a
    /// key they go in order of arrival.
    #[test]
    fn between_two_requests_of_a_key_each_other_key_goes_once(
        arrivals in prop::collection::vec(0..6u32, 1..60),
    ) {
        let (mut line, first) = Line::new();
        for (key, number) in arrivals.iter().copied().zip(0..) {
            line.join(key, number);
        }
        let served = line.serve_all(first);
        prop_assert_eq!(served.len(), arrivals.len());
        for (at, &(key, number)) in served.iter().enumerate() {
            let Some(next) = served[at + 1..].iter().position(|&(other, _)| other == key) else { continue };
            let between: Vec<u32> = served[at + 1..at + 1 + next].iter().map(|&(key, _)| key).collect();
            let mut once = between.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), between.len(), "a key went twice between: {:?}", between);
            prop_assert!(number < served[at + 1 + next].1, "out of order within a key");
        }
    }
}

/// L7: a waiter whose key is busy is passed over and keeps its place.
#[test]
fn a_waiter_whose_key_is_busy_keeps_its_place() {
    let server = at("https://h.example");
    let mut core = DomainState::new(limits(2, 100, secs(60)));
    let busy = core.try_take(NOW, &server, "a").expect("open");
    let other = core.try_take(NOW, &server, "b").expect("open");
    let one = std::slice::from_ref(&server);
    let waiters = ["a", "c", "d"].map(|key| core.join(NOW, one, key, key));
    core.settle(NOW, other, &server, Feedback::Ok);
    assert_eq!(core.pop_woken(), Some("c"), "a is busy");
    core.settle(NOW, busy, &server, Feedback::Ok);
    assert_eq!(core.pop_woken(), Some("a"), "a came before d");
    assert_eq!(core.pop_woken(), None);
    assert!(core.claim(NOW, waiters[0]).is_some() && core.claim(NOW, waiters[1]).is_some());
}

/// L7: a waiter whose endpoint is paused is passed over, keeps its place, and goes first when the
/// pause is over.
#[test]
fn a_waiter_whose_endpoint_is_paused_keeps_its_place() {
    let (broken, fine) = (at("https://h.example"), at("http://h.example"));
    let mut core = DomainState::new(limits(1, 100, secs(1)));
    for _ in 0..4 {
        let grant = core.try_take(NOW, &broken, "a").expect("open");
        core.settle(NOW, grant, &broken, Feedback::Broken);
    }
    let on = core.try_take(NOW, &fine, "x").expect("open");
    let first = core.join(NOW, std::slice::from_ref(&broken), "a", "broken");
    let second = core.join(NOW, std::slice::from_ref(&fine), "b", "fine");
    core.settle(NOW, on, &fine, Feedback::Ok);
    assert_eq!(core.pop_woken(), Some("fine"));
    let (_, grant) = core.claim(NOW, second).expect("set aside");
    core.join(NOW, std::slice::from_ref(&fine), "c", "later");
    let later = NOW.saturating_add(secs(60));
    core.settle(later, grant, &fine, Feedback::Ok);
    assert_eq!(core.pop_woken(), Some("broken"));
    assert!(core.claim(later, first).is_some());
}

/// L7: two parties on one domain get the same share, although one asks with fifty tasks.
#[tokio::test(start_paused = true)]
async fn two_parties_get_the_same_share() {
    bounded();
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/");
    let spawn = |party: &'static str, tasks: usize| {
        let served = Arc::new(AtomicUsize::new(0));
        (0..tasks).for_each(|_| {
            let (throttle, server, served) = (throttle.clone(), server.clone(), served.clone());
            tokio::spawn(async move {
                while let Ok(permit) = throttle.acquire(&server, party).await {
                    served.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(secs(1)).await;
                    permit.finish(Feedback::Ok);
                }
            });
        });
        served
    };
    let (greedy, modest) = (spawn("greedy", 50), spawn("modest", 1));
    tokio::time::sleep(secs(599)).await;
    assert_eq!(greedy.load(Ordering::Relaxed), 150);
    assert_eq!(modest.load(Ordering::Relaxed), 150);
    throttle.close();
    settle().await;
}
