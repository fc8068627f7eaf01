//! L8 and L9: a wait that is dropped leaves no trace, and a permit frees its slot once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use domain_throttle::{Denied, DomainThrottle, Feedback, Throttle, ThrottleExt};
use proptest::{prelude::*, sample::Index};
use tokio::time::Instant;

use crate::support::{Calls, Waiting, at, bounded, endpoints, limits, poll, secs, settle};

/// L8: a permit that was on its way to a wait that is dropped goes to the next in line.
#[tokio::test(start_paused = true)]
async fn a_permit_on_its_way_to_a_dropped_wait_goes_to_the_next() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    let servers = endpoints(&["https://example.org/"]);
    let permit = throttle.try_acquire(&servers[0], "x").expect("open");
    let (a, b) = (Calls::new(), Calls::new());
    let mut first: Waiting<'_> = throttle.acquire_any(&servers, "a");
    let mut second: Waiting<'_> = throttle.acquire_any(&servers, "b");
    assert!(poll(&mut first, &a).is_none() && poll(&mut second, &b).is_none());
    drop(permit);
    assert_eq!((a.count(), b.count()), (1, 0));
    drop(first);
    assert_eq!((a.count(), b.count()), (1, 1));
    assert!(poll(&mut second, &b).is_some());
    assert_eq!(throttle.waiters(), 0);
}

/// L8: a waiter that is not polled for a second blocks nobody, and keeps its place.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_never_polled_blocks_nobody() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    let servers = endpoints(&["https://example.org/"]);
    let permit = throttle.try_acquire(&servers[0], "x").expect("open");
    let calls = Calls::new();
    let mut sleeper: Waiting<'_> = throttle.acquire_any(&servers, "sleeper");
    assert!(poll(&mut sleeper, &calls).is_none());
    let start = Instant::now();
    let others = async {
        for n in 0..3 {
            let permit = throttle.acquire(&servers[0], &n.to_string()).await.expect("open");
            assert_eq!(start.elapsed(), secs(1), "the sleeper was waited for once only");
            permit.finish(Feedback::Ok);
        }
    };
    drop(permit);
    others.await;
    assert_eq!(calls.count(), 1);
    // It comes late, and is still the first of those that wait.
    let on = throttle.try_acquire(&servers[0], "x").expect("nobody else is able");
    let mut newcomer: Waiting<'_> = throttle.acquire_any(&servers, "newcomer");
    let newcomers = Calls::new();
    assert!(poll(&mut newcomer, &newcomers).is_none());
    assert!(poll(&mut sleeper, &calls).is_none(), "all is taken");
    drop(on);
    assert_eq!((calls.count(), newcomers.count()), (2, 0));
    assert!(poll(&mut sleeper, &calls).is_some());
}

/// L1, L8: a start is stamped when its user gets the permit, not when it was set aside.
#[tokio::test(start_paused = true)]
async fn a_start_is_stamped_when_the_permit_reaches_its_user() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 1, secs(60))).build();
    let servers = endpoints(&["https://example.org/"]);
    throttle.try_acquire(&servers[0], "x").expect("open").finish(Feedback::Ok);
    let calls = Calls::new();
    let mut waiting: Waiting<'_> = throttle.acquire_any(&servers, "a");
    assert!(poll(&mut waiting, &calls).is_none());
    tokio::time::sleep(secs(60)).await;
    settle().await;
    assert_eq!(calls.count(), 1);
    tokio::time::advance(std::time::Duration::from_millis(900)).await;
    poll(&mut waiting, &calls).expect("set aside").finish(Feedback::Ok);
    let Err(Denied::Window { until }) = throttle.check(&servers[0], "b") else {
        panic!("not full")
    };
    assert_eq!(until, (Instant::now() + secs(60)).into_std());
}

/// L8: `run` is dropped at each of its await points: while it waits, with a permit on its way, and
/// while the request is on.
#[tokio::test(start_paused = true)]
async fn run_may_be_dropped_at_each_await_point() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    let server = at("https://example.org/");
    for dropped_at in 0..4 {
        let permit = throttle.try_acquire(&server, "x").expect("all is free again");
        let request = async {
            tokio::time::sleep(secs(3_600)).await;
            ((), Feedback::Ok)
        };
        let mut run = Box::pin(throttle.run(&server, "a", request));
        let waker = std::task::Waker::noop();
        let mut poll =
            || run.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending();
        if dropped_at > 0 {
            assert!(poll(), "it waits");
        }
        if dropped_at > 1 {
            permit.finish(Feedback::Ok);
        }
        if dropped_at > 2 {
            assert!(poll(), "the request is on");
            assert_eq!(throttle.counts(server.domain()).expect("in use").in_flight, 1);
        }
        drop(run);
        assert_eq!(throttle.waiters(), 0);
        let in_flight = u32::from(dropped_at <= 1);
        assert_eq!(throttle.counts(server.domain()).expect("in use").in_flight, in_flight);
    }
}

/// L9: a thread that panics gives its permit back.
#[test]
fn a_panic_gives_the_permit_back() {
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    let server = at("https://example.org/");
    for _ in 0..10 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _permit = throttle.try_acquire(&server, "a").expect("the slot is free again");
            std::panic::resume_unwind(Box::new("the request went wrong"));
        }));
        assert!(panicked.is_err());
    }
    let counts = throttle.counts(server.domain()).expect("in use");
    assert_eq!((counts.in_flight, counts.in_window), (0, 10));
}

/// L9: a task that panics or is aborted gives its permit back, and the next in line goes.
#[tokio::test(start_paused = true)]
async fn a_task_that_ends_badly_gives_the_permit_back() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    let server = at("https://example.org/");
    let hold = |panics: bool| {
        let (throttle, server) = (throttle.clone(), server.clone());
        tokio::spawn(async move {
            let _permit = throttle.acquire(&server, "a").await.expect("open");
            tokio::time::sleep(secs(1)).await;
            assert!(!panics, "the request went wrong");
            std::future::pending::<()>().await;
        })
    };
    let (panics, aborted) = (hold(true), hold(false));
    assert!(panics.await.is_err());
    tokio::time::sleep(secs(2)).await;
    aborted.abort();
    assert!(aborted.await.is_err());
    throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
}

/// L9: only `Unused` takes a start out of the window.
#[test]
fn the_window_keeps_what_was_sent() {
    let server = at("https://example.org/");
    let sent = [Feedback::Ok, Feedback::Failed, Feedback::Broken, Feedback::RetryAfter(secs(1))];
    for (feedback, in_window) in
        sent.map(|sent| (sent, 1)).into_iter().chain([(Feedback::Unused, 0)])
    {
        let throttle = DomainThrottle::new();
        throttle.try_acquire(&server, "a").expect("open").finish(feedback);
        let counts = throttle.counts(server.domain()).expect("in use");
        assert_eq!((counts.in_flight, counts.in_window), (0, in_window), "{feedback:?}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Poll(Index),
    Drop(Index),
    Finish(Index, bool),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<Index>().prop_map(Step::Poll),
        2 => any::<Index>().prop_map(Step::Drop),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(which, used)| Step::Finish(which, used)),
        1 => (0..1_500u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(128), ..ProptestConfig::default() })]

    /// L8, L9: whatever is polled, dropped in whatever state, given back or slept over: in the end
    /// nothing is held, nobody waits, and everybody who still wants a permit gets one.
    #[test]
    fn no_wait_leaves_a_trace(
        wants in prop::collection::vec((0..3u8, prop::collection::vec(0..3usize, 1..4)), 1..12),
        steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let throttle = DomainThrottle::builder().limits(limits(1, 3, secs(2))).build();
            let all = endpoints(&["https://a.example", "https://b.example", "https://b.example:8443"]);
            let lists: Vec<Vec<_>> = wants.iter().map(|(_, at)| at.iter().map(|&at| all[at].clone()).collect()).collect();
            let keys: Vec<String> = wants.iter().map(|(key, _)| key.to_string()).collect();
            let mut waiting: Vec<(Waiting<'_>, _)> = lists.iter().zip(&keys).map(|(list, key)| (throttle.acquire_any(list, key), Calls::new())).collect();
            let mut permits = Vec::new();
            for step in steps {
                match step {
                    Step::Poll(which) if !waiting.is_empty() => {
                        let at = which.index(waiting.len());
                        let (future, calls) = &mut waiting[at];
                        if let Some(permit) = poll(future, calls) {
                            permits.push(permit);
                            drop(waiting.swap_remove(at));
                        }
                    }
                    Step::Drop(which) if !waiting.is_empty() => drop(waiting.swap_remove(which.index(waiting.len()))),
                    Step::Finish(which, used) if !permits.is_empty() => {
                        let feedback = if used { Feedback::Ok } else { Feedback::Unused };
                        permits.swap_remove(which.index(permits.len())).finish(feedback);
                    }
                    Step::Wait(millis) => tokio::time::sleep(std::time::Duration::from_millis(millis)).await,
                    _ => {}
                }
                for server in &all {
                    let in_flight = throttle.counts(server.domain()).map_or(0, |counts| counts.in_flight);
                    assert!(in_flight <= 1, "L2");
                }
            }
            drop(permits);
            for (future, _) in waiting {
                let in_time = tokio::time::timeout(secs(3_600), future).await;
                in_time.expect("it waits for ever").expect("open").finish(Feedback::Ok);
            }
            assert_eq!(throttle.waiters(), 0);
            tokio::time::sleep(secs(60)).await;
            assert_eq!(throttle.domains(), 0, "and all is forgotten");
        });
    }
}
