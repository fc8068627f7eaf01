use std::time::Duration;

use domain_throttle::{Denied, DomainThrottle, Feedback, Throttle, ThrottleExt};
use tokio::time::Instant;

use crate::support::{at, limits, secs};

/// L6: thirty go at once where five may be on, the thirty-first when the window has room.
#[tokio::test(start_paused = true)]
async fn a_waiter_goes_at_the_instant_the_window_has_room() {
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
    tokio::task::yield_now().await;
    assert_eq!(throttle.waiters(), 1);
    permits.pop();
    let start = Instant::now();
    waiter.await.expect("no panic").expect("open").finish(Feedback::Ok);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// L10: a domain that asked to be left alone is `Paused`, exactly until its time is over.
#[tokio::test(start_paused = true)]
async fn a_pause_is_answered_exactly() {
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/");
    let permit = throttle.acquire_any(&[server.clone(), at("https://b.example/")], "a").await;
    permit.expect("open").finish(Feedback::RetryAfter(secs(10)));
    let Err(Denied::Paused { until }) = throttle.check(&server, "b") else { panic!("not paused") };
    assert_eq!(until, (Instant::now() + secs(10)).into_std());
    tokio::time::advance(secs(10) - Duration::from_nanos(1)).await;
    assert!(throttle.check(&server, "b").is_err());
    tokio::time::advance(Duration::from_nanos(1)).await;
    assert!(throttle.check(&server, "b").is_ok());
}
