//! L6: while somebody waits who may go, a permit is granted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use domain_throttle::{
    Denied, DomainThrottle, Endpoint, Feedback, Throttle, ThrottleError, ThrottleExt,
};
use tokio::time::Instant;

use crate::support::{Calls, Waiting, at, bounded, endpoints, limits, poll, secs, settle};

/// A throttle of one at once and thirty a minute, and a server.
fn one_at_once() -> (DomainThrottle, Endpoint) {
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    (throttle, at("https://example.org/"))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// L6: thirty go at once where thirty may be on, the thirty-first when the window has room.
#[tokio::test(start_paused = true)]
async fn a_waiter_goes_at_the_instant_the_window_has_room() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(30, 30, secs(60))).build();
    let server = at("https://example.org/");
    let start = Instant::now();
    for n in 0..31 {
        throttle.acquire(&server, &n.to_string()).await.expect("open").finish(Feedback::Ok);
        let expected = if n < 30 { Duration::ZERO } else { secs(60) };
        assert_eq!(start.elapsed(), expected, "request {n}");
    }
}

/// L2, L6: a waiter goes when a permit comes back.
#[tokio::test(start_paused = true)]
async fn a_waiter_goes_when_a_permit_comes_back() {
    bounded();
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/");
    let mut permits = Vec::new();
    for n in 0..5 {
        permits.push(throttle.try_acquire(&server, &n.to_string()).expect("five may be on"));
    }
    assert!(matches!(throttle.try_acquire(&server, "x"), Err(Denied::Concurrency)));
    let waiter = tokio::spawn({
        let (throttle, server) = (throttle.clone(), server.clone());
        async move { throttle.acquire(&server, "x").await }
    });
    settle().await;
    assert_eq!(throttle.waiters(), 1);
    permits.pop();
    let start = Instant::now();
    waiter.await.expect("no panic").expect("open").finish(Feedback::Ok);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// L6: two polls per grant at most, whatever the number of waiters: one that finds nothing and one
/// that takes the permit. Nobody is woken for nothing, and all of the budget is used.
#[tokio::test(start_paused = true)]
async fn a_thousand_waiters_need_two_polls_each() {
    bounded();
    const WAITERS: usize = 1_000;
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/");
    let start = Instant::now();
    let keys: Vec<String> = (0..WAITERS).map(|n| n.to_string()).collect();
    let mut waiting: Vec<Waiting<'_>> =
        keys.iter().map(|key| throttle.acquire_any(std::slice::from_ref(&server), key)).collect();
    let calls: Vec<Arc<Calls>> = keys.iter().map(|_| Calls::new()).collect();
    let (mut polls, mut served) = (0, Vec::new());
    for (n, future) in waiting.iter_mut().enumerate() {
        polls += 1;
        if let Some(permit) = poll(future, &calls[n]) {
            served.push(n);
            permit.finish(Feedback::Ok);
        }
    }
    let mut seen = vec![0; WAITERS];
    while served.len() < WAITERS {
        let woken: Vec<usize> = (0..WAITERS).filter(|&n| calls[n].count() > seen[n]).collect();
        if woken.is_empty() {
            // The driver sleeps until the window has room.
            tokio::time::sleep(secs(60)).await;
            settle().await;
        }
        for n in woken {
            seen[n] = calls[n].count();
            polls += 1;
            let permit = poll(&mut waiting[n], &calls[n]).expect("who is woken has a permit");
            served.push(n);
            permit.finish(Feedback::Ok);
        }
    }
    assert!(polls <= 2 * WAITERS, "{polls} polls");
    assert!(calls.iter().all(|calls| calls.count() <= 1));
    assert!(served.is_sorted(), "in order of arrival");
    // 30 at once, then 30 a minute: 33 minutes for a thousand, and not a second more.
    assert_eq!(start.elapsed().as_secs(), 33 * 60);
    assert_eq!(throttle.waiters(), 0);
}

/// L6: under steady demand a domain serves as many as its window allows, hour after hour.
#[tokio::test(start_paused = true)]
async fn steady_demand_uses_the_whole_budget() {
    bounded();
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/");
    let start = Instant::now();
    let tasks: Vec<_> = (0..6)
        .map(|key| {
            let (throttle, server) = (throttle.clone(), server.clone());
            tokio::spawn(async move {
                let mut served = 0_u32;
                while start.elapsed() < secs(3_600) {
                    let permit =
                        throttle.acquire(&server, &format!("key {key}")).await.expect("open");
                    if start.elapsed() < secs(3_600) {
                        served += 1;
                    }
                    tokio::time::sleep(secs(2)).await;
                    permit.finish(Feedback::Ok);
                }
                served
            })
        })
        .collect();
    let mut served = 0;
    for task in tasks {
        served += task.await.expect("no panic");
    }
    assert_eq!(served, 60 * 30);
}

/// L6, L10: who waits for several domains gets the first permit of any, and leaves the other lines.
#[tokio::test(start_paused = true)]
async fn the_first_permit_of_several_domains_wins() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 1, secs(60))).build();
    let servers = endpoints(&[
        "https://a.example",
        "https://b.example",
        "https://b.example:8443",
        "https://c.example",
    ]);
    let first = throttle.try_acquire(&servers[0], "x").expect("open");
    tokio::time::advance(secs(10)).await;
    let second = throttle.try_acquire(&servers[1], "x").expect("open");
    let third = throttle.try_acquire(&servers[3], "x").expect("open");
    drop((first, second));
    let start = Instant::now();
    let permit = throttle.acquire_any(&servers, "y").await.expect("open");
    assert_eq!((permit.endpoint(), start.elapsed()), (&servers[0], secs(50)));
    assert_eq!(throttle.waiters(), 0);
    drop(third);
    // The permits that were left for others are there.
    tokio::time::advance(secs(10)).await;
    assert!(throttle.try_acquire(&servers[2], "y").is_ok());
    assert!(throttle.try_acquire(&servers[3], "y").is_ok());
}

/// L6, L10: of several endpoints of one domain the first that is open is asked.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_paused_gives_way_to_another_of_its_domain() {
    bounded();
    let throttle = DomainThrottle::new();
    let servers = endpoints(&["https://a.example", "http://a.example"]);
    for _ in 0..4 {
        throttle.try_acquire(&servers[0], "x").expect("open").finish(Feedback::Broken);
    }
    let permit = throttle.acquire_any(&servers, "x").await.expect("open");
    assert_eq!(permit.endpoint(), &servers[1]);
}

/// L4: a clone is the same throttle.
#[tokio::test(start_paused = true)]
async fn a_clone_shares_the_limits() {
    bounded();
    let (throttle, server) = one_at_once();
    let permit = throttle.try_acquire(&server, "a").expect("open");
    assert!(matches!(throttle.clone().try_acquire(&server, "b"), Err(Denied::Concurrency)));
    drop(permit);
    assert!(throttle.clone().try_acquire(&server, "b").is_ok());
}

/// L5: nobody overtakes a waiter for whom a permit is set aside.
#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_overtake_a_waiter() {
    bounded();
    let (throttle, server) = one_at_once();
    let permit = throttle.try_acquire(&server, "a").expect("open");
    let calls = Calls::new();
    let mut waiting: Waiting<'_> = throttle.acquire_any(std::slice::from_ref(&server), "b");
    assert!(poll(&mut waiting, &calls).is_none());
    drop(permit);
    assert_eq!(calls.count(), 1);
    assert!(matches!(throttle.try_acquire(&server, "c"), Err(Denied::Queued)));
    assert!(matches!(throttle.check(&server, "b"), Err(Denied::Queued)));
    assert!(poll(&mut waiting, &calls).is_some());
}

/// A waker that uses the throttle, as an executor that polls in place would.
struct Reenters(DomainThrottle, Endpoint, AtomicBool);

impl Wake for Reenters {
    fn wake(self: Arc<Self>) {
        let denied = matches!(self.0.try_acquire(&self.1, "z"), Err(Denied::Queued));
        self.2.store(denied, Ordering::SeqCst);
    }
}

impl Drop for Reenters {
    fn drop(&mut self) {
        let _ = self.0.check(&self.1, "z");
    }
}

/// L6: wakers are called, replaced and dropped without a lock, so they may use the throttle.
#[tokio::test(start_paused = true)]
async fn a_waker_may_use_the_throttle() {
    bounded();
    let (throttle, server) = one_at_once();
    let permit = throttle.try_acquire(&server, "a").expect("open");
    let make = || Arc::new(Reenters(throttle.clone(), server.clone(), AtomicBool::new(false)));
    let mut waiting: Waiting<'_> = throttle.acquire_any(std::slice::from_ref(&server), "b");
    let mut last = make();
    for _ in 0..3 {
        last = make();
        let waker = Waker::from(last.clone());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(permit);
    assert!(last.2.load(Ordering::SeqCst), "the permit was set aside before the waker was called");
    drop(waiting);
    assert!(throttle.try_acquire(&server, "c").is_ok());
}

/// A waker that panics, as one of a broken executor may.
struct Explodes;

impl Wake for Explodes {
    fn wake(self: Arc<Self>) {
        panic!("the waker explodes");
    }
}

/// L6, L8, L9: a panic in a waker is its own, also when the permit comes back because its thread
/// panics: others are woken, what was set aside goes to the next, and closing ends all waits.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_waker_is_its_own() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    let servers = endpoints(&["https://example.org/"]);
    let permit = throttle.try_acquire(&servers[0], "x").expect("open");
    let explodes = Waker::from(Arc::new(Explodes));
    let calls = Calls::new();
    let mut first: Waiting<'_> = throttle.acquire_any(&servers, "a");
    assert!(first.as_mut().poll(&mut Context::from_waker(&explodes)).is_pending());
    let mut second: Waiting<'_> = throttle.acquire_any(&servers, "b");
    assert!(poll(&mut second, &calls).is_none());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _permit = permit;
        panic!("the request explodes");
    }));
    assert!(panicked.is_err());
    // The first does not come for it.
    tokio::time::sleep(secs(1)).await;
    settle().await;
    assert_eq!(calls.count(), 1);
    let permit = poll(&mut second, &calls).expect("set aside");
    let mut third: Waiting<'_> = throttle.acquire_any(&servers, "c");
    assert!(first.as_mut().poll(&mut Context::from_waker(&explodes)).is_pending());
    assert!(poll(&mut third, &calls).is_none());
    throttle.close();
    assert_eq!(calls.count(), 2, "who comes after the one that panics is told, too");
    permit.finish(Feedback::Ok);
}

/// L6: time moves those in line although nobody polls them, and although the runtime that moved
/// them before has ended.
#[test]
fn a_waiter_outlives_the_runtime_that_drives_the_throttle() {
    let throttle =
        DomainThrottle::builder().limits(limits(1, 1, Duration::from_millis(60))).build();
    let server = at("https://example.org/");
    let (first, second) = (runtime(), runtime());
    first.block_on(async {
        throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
        throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
    });
    let waiter = second.spawn({
        let (throttle, server) = (throttle.clone(), server.clone());
        async move { throttle.acquire(&server, "b").await.map(drop) }
    });
    second.block_on(settle());
    assert_eq!(throttle.waiters(), 1);
    // What moved the line lived there, too.
    drop(first);
    second.block_on(waiter).expect("no panic").expect("open");
}

/// L6: a runtime that lives but is not driven, as one that is used for a `block_on` now and then,
/// holds up nobody who waits in another.
#[test]
fn a_runtime_that_is_not_driven_holds_up_nobody() {
    let throttle =
        DomainThrottle::builder().limits(limits(1, 1, Duration::from_millis(60))).build();
    let server = at("https://example.org/");
    let (first, second) = (runtime(), runtime());
    for runtime in [&first, &second, &second, &first] {
        runtime.block_on(is_moved_on(&throttle, &server));
    }
}

/// L6: one that has no timer cannot bring what only time brings; others can.
#[test]
fn a_runtime_without_a_timer_spoils_no_other() {
    let throttle =
        DomainThrottle::builder().limits(limits(1, 1, Duration::from_millis(500))).build();
    let server = at("https://example.org/");
    let without = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    without.block_on(async {
        throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Ok);
        let calls = Calls::new();
        let mut waiting: Waiting<'_> = throttle.acquire_any(std::slice::from_ref(&server), "a");
        assert!(poll(&mut waiting, &calls).is_none());
        for _ in 0..5 {
            settle().await;
            assert!(poll(&mut waiting, &calls).is_none());
        }
        assert_eq!(calls.count(), 0, "another try would fare the same");
    });
    runtime().block_on(is_moved_on(&throttle, &server));
}

/// Waits for a permit. At the deadline, which is far off, a waiter looks for itself.
async fn is_moved_on(throttle: &DomainThrottle, server: &Endpoint) {
    let start = Instant::now();
    let permit = throttle.acquire_within(server, "k", secs(20)).await;
    permit.expect("open").finish(Feedback::Ok);
    assert!(start.elapsed() < secs(10), "nobody moved the line");
}

/// L6: without a runtime nothing waits, but what needs no time works.
#[test]
fn what_needs_no_time_needs_no_runtime() {
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/");
    let permit = throttle.try_acquire(&server, "a").expect("open");
    assert!(matches!(throttle.check(&server, "a"), Err(Denied::KeyBusy)));
    permit.finish(Feedback::Ok);
    let calls = Calls::new();
    let mut waiting: Waiting<'_> = throttle.acquire_any(std::slice::from_ref(&server), "a");
    assert!(poll(&mut waiting, &calls).is_some());
}

/// L6: deadlines: a permit in time, or an error at the deadline and no trace.
#[tokio::test(start_paused = true)]
async fn a_wait_with_a_deadline_ends_at_it() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 1, secs(60))).build();
    let server = at("https://example.org/");
    throttle.acquire_within(&server, "a", secs(1)).await.expect("open").finish(Feedback::Ok);
    let start = Instant::now();
    let late = throttle.acquire_within(&server, "a", secs(59)).await;
    assert!(matches!(late, Err(ThrottleError::DeadlinePassed)));
    assert_eq!((start.elapsed(), throttle.waiters()), (secs(59), 0));
    let deadline = (start + secs(60)).into_std();
    let servers = [server.clone()];
    assert!(throttle.acquire_any_by(&servers, "a", deadline).await.is_ok());
    let passed = throttle.acquire_any_by(&servers, "a", deadline).await;
    assert!(matches!(passed, Err(ThrottleError::DeadlinePassed)));
}

/// L6, L12: closing ends all waits, and everything after. Twice is fine.
#[tokio::test(start_paused = true)]
async fn closing_ends_all_waits() {
    bounded();
    let (throttle, server) = one_at_once();
    let permit = throttle.try_acquire(&server, "a").expect("open");
    let tasks: Vec<_> = (0..10)
        .map(|n| {
            let (throttle, server) = (throttle.clone(), server.clone());
            tokio::spawn(async move { throttle.acquire(&server, &n.to_string()).await.map(drop) })
        })
        .collect();
    settle().await;
    throttle.close();
    throttle.close();
    for task in tasks {
        assert!(matches!(task.await.expect("no panic"), Err(ThrottleError::Closed)));
    }
    assert_eq!(throttle.waiters(), 0);
    assert!(matches!(throttle.acquire(&server, "x").await, Err(ThrottleError::Closed)));
    assert!(matches!(throttle.try_acquire(&server, "x"), Err(Denied::Closed)));
    assert!(matches!(throttle.check(&server, "x"), Err(Denied::Closed)));
    permit.finish(Feedback::Ok);
}

/// An empty list of endpoints is an error, not a wait without end.
#[tokio::test]
async fn nothing_to_wait_for_is_an_error() {
    let none = DomainThrottle::new().acquire_any(&[], "a").await;
    assert!(matches!(none, Err(ThrottleError::NoEndpoint)));
}

/// `run` sends nothing before it has a permit, and gives it back with what the request said.
#[tokio::test(start_paused = true)]
async fn run_holds_a_permit_for_as_long_as_the_request() {
    bounded();
    let (throttle, server) = one_at_once();
    let inside = throttle
        .run(&server, "a", async {
            (throttle.counts(server.domain()), Feedback::RetryAfter(secs(5)))
        })
        .await
        .expect("open");
    assert_eq!(inside.expect("it is remembered").in_flight, 1);
    assert!(matches!(throttle.check(&server, "b"), Err(Denied::Paused { .. })));
    let other: &dyn Throttle = &throttle;
    let server = at("https://b.example/");
    assert_eq!(other.run(&server, "a", async { (7, Feedback::Ok) }).await.expect("open"), 7);
    assert!(other.check(&server, "a").await.is_ok());
}

/// D13 of the sister crate holds here too: a throttle that has nothing to do is not woken.
#[tokio::test(start_paused = true)]
async fn an_empty_throttle_is_silent() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 1, secs(1))).build();
    let server = at("https://example.org/");
    throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
    throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
    tokio::time::sleep(secs(60)).await;
    assert_eq!(throttle.domains(), 0);
    // With no timer left, tokio's paused clock runs straight to ours, however far that is.
    let start = Instant::now();
    tokio::time::sleep(secs(86_400)).await;
    assert_eq!(start.elapsed(), secs(86_400));
    drop(throttle);
    settle().await;
    let metrics = tokio::runtime::Handle::current().metrics();
    assert_eq!(metrics.num_alive_tasks(), 1, "only the task that bounds this test");
}
