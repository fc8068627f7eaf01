//! L2, L3, L4, L6, L8, L9 in every order in which a few callers can be polled, dropped, woken and served.
//!
//! Each call takes its domain's lock once, so threads can interleave calls and nothing smaller; only a
//! wait for several domains is more than one call, and the stress tests of `threads` are for that.

use std::sync::Arc;

use domain_throttle::{DomainThrottle, Endpoint, Feedback, Permit, Throttle};

use crate::support::{Calls, Waiting, endpoints, limits, poll, secs, settle};

/// Which way to go at each fork of a run. After a run [`next`](Self::next) is another way.
#[derive(Debug, Default)]
struct Choices {
    /// What was taken of how many.
    path: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn pick(&mut self, of: usize) -> usize {
        if self.at == self.path.len() {
            self.path.push((0, of));
        }
        self.at += 1;
        let (taken, before) = self.path[self.at - 1];
        assert_eq!(of, before, "a run depends on something else than its choices");
        taken
    }

    fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((taken, of)) = self.path.pop() {
            if taken + 1 < of {
                self.path.push((taken + 1, of));
                return true;
            }
        }
        false
    }
}

/// A few who want a permit each, and what they may ask.
struct Scene {
    at_once: u32,
    /// The key, and the servers.
    wants: &'static [(&'static str, &'static [&'static str])],
    /// How often somebody is polled who was not woken.
    spurious: usize,
    /// How often a second passes, in which who was woken does not come.
    seconds: usize,
}

const A: &[&str] = &["https://a.example"];
const B: &[&str] = &["https://b.example"];
const BOTH: &[&str] = &["https://a.example", "https://b.example"];

struct Caller<'a> {
    key: &'static str,
    at: &'a [Endpoint],
    waiting: Option<Waiting<'a>>,
    calls: Arc<Calls>,
    /// How often it had been woken when it was last polled; `None` before that.
    seen: Option<usize>,
    permit: Option<Permit>,
}

impl Caller<'_> {
    fn waits(&self) -> bool {
        self.waiting.is_some() && self.seen.is_some()
    }

    fn is_woken(&self) -> bool {
        self.waits() && self.seen < Some(self.calls.count())
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Poll(usize),
    Drop(usize),
    Finish(usize),
    Second,
}

impl Scene {
    /// Goes every way. Returns how many there are.
    async fn explore(&self) -> usize {
        let mut choices = Choices::default();
        for run in 1.. {
            self.run(&mut choices).await;
            if run % 64 == 0 {
                settle().await;
            }
            if !choices.next() {
                return run;
            }
        }
        unreachable!("a range without an end")
    }

    async fn run(&self, choices: &mut Choices) {
        let limits = limits(self.at_once, 1_000, secs(60));
        let throttle = DomainThrottle::builder().limits(limits).build();
        let lists: Vec<Vec<Endpoint>> = self.wants.iter().map(|(_, at)| endpoints(at)).collect();
        let mut callers: Vec<Caller<'_>> = self
            .wants
            .iter()
            .zip(&lists)
            .map(|(&(key, _), at)| Caller {
                key,
                at,
                waiting: Some(throttle.acquire_any(at, key)),
                calls: Calls::new(),
                seen: None,
                permit: None,
            })
            .collect();
        let (mut spurious, mut seconds, mut done) = (self.spurious, self.seconds, Vec::new());
        loop {
            let steps = steps(&callers, spurious > 0, seconds > 0);
            if steps.is_empty() {
                break;
            }
            let step = steps[choices.pick(steps.len())];
            done.push(step);
            match step {
                Step::Poll(who) => {
                    let caller = &mut callers[who];
                    let (is_first, is_woken) = (caller.seen.is_none(), caller.is_woken());
                    caller.seen = Some(caller.calls.count());
                    caller.permit = poll(caller.waiting.as_mut().expect("it waits"), &caller.calls);
                    let is_served = caller.permit.is_some();
                    if is_served {
                        caller.waiting = None;
                    }
                    if is_woken && self.seconds == 0 {
                        assert!(is_served, "L6: woken for nothing: {done:?}");
                    } else if !is_first && !is_woken {
                        spurious -= 1;
                    }
                }
                Step::Drop(who) => callers[who].waiting = None,
                Step::Finish(who) => {
                    callers[who].permit.take().expect("it has one").finish(Feedback::Ok);
                }
                Step::Second => {
                    seconds -= 1;
                    tokio::time::advance(secs(1)).await;
                    settle().await;
                }
            }
            self.judge(&callers, &done);
        }
        assert_eq!(throttle.waiters(), 0, "L8: {done:?}");
        for server in endpoints(BOTH) {
            let all: Vec<_> =
                (0..self.at_once).map(|n| throttle.try_acquire(&server, &n.to_string())).collect();
            assert!(all.iter().all(Result::is_ok), "L9: a slot is lost: {done:?}");
        }
    }

    fn judge(&self, callers: &[Caller<'_>], done: &[Step]) {
        for server in endpoints(BOTH) {
            let has = |caller: &&Caller<'_>| {
                caller.permit.as_ref().is_some_and(|permit| *permit.endpoint() == server)
            };
            let on: Vec<&str> = callers.iter().filter(has).map(|caller| caller.key).collect();
            assert!(on.len() <= self.at_once as usize, "L2: {done:?}");
            assert_eq!(distinct(on.clone()), on.len(), "L3: {done:?}");
            let in_line =
                || callers.iter().filter(|caller| caller.waits() && caller.at.contains(&server));
            let able = in_line().filter(|caller| !on.contains(&caller.key));
            let able = distinct(able.map(|caller| caller.key).collect());
            let to_wake = able.min(self.at_once as usize - on.len());
            let woken = in_line().filter(|caller| caller.is_woken()).count();
            if self.seconds > 0 || self.wants.iter().any(|(_, at)| at.len() > 1) {
                // Who did not come is passed over; who waits in two lines may be called in the other.
                assert!(to_wake == 0 || woken > 0, "L6: a lost wake-up: {done:?}");
            } else {
                assert_eq!(woken, to_wake, "L6: as many are woken as may go: {done:?}");
            }
        }
        if self.seconds == 0 && self.wants.iter().all(|(_, at)| at.len() == 1) {
            assert!(callers.iter().all(|caller| caller.calls.count() <= 1), "L6: {done:?}");
        }
    }
}

fn distinct(mut keys: Vec<&str>) -> usize {
    keys.sort_unstable();
    keys.dedup();
    keys.len()
}

fn steps(callers: &[Caller<'_>], spurious: bool, seconds: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for (who, caller) in callers.iter().enumerate() {
        if caller.permit.is_some() {
            steps.push(Step::Finish(who));
        }
        if caller.waiting.is_some() {
            if caller.seen.is_none() || caller.is_woken() || spurious {
                steps.push(Step::Poll(who));
            }
            // Not to wait at all is no case of its own.
            if caller.seen.is_some() {
                steps.push(Step::Drop(who));
            }
        }
    }
    let is_on = callers.iter().any(|caller| caller.is_woken());
    if seconds && is_on {
        steps.push(Step::Second);
    }
    steps
}

/// Three callers go a few thousand ways in all; with `THROTTLE_TEST_CALLERS=4`, as in `.ci/run long`, it is
/// a hundred and fifty thousand.
async fn every_order(mut scene: Scene, at_least: usize) {
    let callers = std::env::var("THROTTLE_TEST_CALLERS").ok();
    let callers = callers.and_then(|callers| callers.parse().ok()).unwrap_or(3);
    scene.wants = &scene.wants[..scene.wants.len().min(callers)];
    let ways = scene.explore().await;
    assert!(ways >= at_least, "only {ways} ways");
}

/// L2, L4, L6, L8, L9: one slot, three keys.
#[tokio::test(start_paused = true)]
async fn three_keys_and_one_slot_in_every_order() {
    let wants = &[("x", A), ("y", A), ("z", A), ("z", A)];
    every_order(Scene { at_once: 1, wants, spurious: 0, seconds: 0 }, 100).await;
}

/// L3, L6: two slots, and two who share a key.
#[tokio::test(start_paused = true)]
async fn a_shared_key_and_two_slots_in_every_order() {
    let wants = &[("x", A), ("x", A), ("y", A), ("z", A)];
    every_order(Scene { at_once: 2, wants, spurious: 0, seconds: 0 }, 100).await;
}

/// L6, L8: somebody is polled although nobody woke him, as in a `select!`.
#[tokio::test(start_paused = true)]
async fn a_poll_out_of_turn_in_every_order() {
    let wants = &[("x", A), ("x", A), ("y", A), ("z", A)];
    every_order(Scene { at_once: 1, wants, spurious: 1, seconds: 0 }, 100).await;
}

/// L6, L8: two who wait for two domains, and two who wait for one of them each.
#[tokio::test(start_paused = true)]
async fn waits_for_two_domains_in_every_order() {
    let wants = &[("x", BOTH), ("x", A), ("y", BOTH), ("z", B)];
    every_order(Scene { at_once: 1, wants, spurious: 0, seconds: 0 }, 100).await;
    let wants = &[("x", BOTH), ("y", A), ("z", B), ("z", BOTH)];
    every_order(Scene { at_once: 1, wants, spurious: 0, seconds: 0 }, 100).await;
}

/// L8: a second passes after somebody was woken and before he comes.
#[tokio::test(start_paused = true)]
async fn a_second_passes_in_every_order() {
    let wants = &[("x", A), ("x", A), ("y", A), ("z", A)];
    every_order(Scene { at_once: 1, wants, spurious: 0, seconds: 1 }, 100).await;
}
