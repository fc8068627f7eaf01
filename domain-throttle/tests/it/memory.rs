//! L12: what is idle is forgotten bit by bit, and what is kept is bounded.

use std::time::Duration;

use domain_throttle::{
    Denied, DomainPattern, DomainThrottle, Feedback, Throttle, ThrottleError, ThrottleExt,
};
use tokio::time::Instant;

use crate::support::{Calls, Waiting, at, bounded, endpoints, limits, poll, secs, settle};

/// L12: thousands of domains that were asked once are forgotten when their windows are empty.
#[tokio::test(start_paused = true)]
async fn idle_domains_are_forgotten() {
    bounded();
    let throttle = DomainThrottle::new();
    for n in 0..5_000 {
        let server = at(&format!("https://h{n}.example"));
        throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Ok);
    }
    assert_eq!(throttle.domains(), 5_000);
    tokio::time::sleep(secs(59)).await;
    assert_eq!(throttle.domains(), 5_000, "their windows are not empty yet");
    tokio::time::sleep(secs(31)).await;
    assert_eq!(throttle.domains(), 0);
}

/// L12: the same without a runtime: where there is no room left, idle domains make room.
#[test]
fn new_domains_clear_idle_ones_away() {
    let at_once = limits(5, 30, Duration::ZERO);
    let throttle = DomainThrottle::builder().limits(at_once).max_domains(100).build();
    for n in 0..5_000 {
        let server = at(&format!("https://h{n}.example"));
        assert!(throttle.check(&server, "a").is_ok());
        throttle.try_acquire(&server, "a").expect("idle ones make room").finish(Feedback::Ok);
        assert!(throttle.domains() <= 100);
    }
}

/// L12: a domain that has a permit, a waiter, a pause, or a memory of failures is not forgotten.
#[tokio::test(start_paused = true)]
async fn what_is_not_idle_is_kept() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(1))).build();
    let servers = endpoints(&[
        "https://permit.example",
        "https://waiter.example",
        "https://asked.example",
        "https://broken.example",
        "https://idle.example",
    ]);
    let permit = throttle.try_acquire(&servers[0], "a").expect("open");
    let blocker = throttle.try_acquire(&servers[1], "a").expect("open");
    let waiting_at = [servers[1].clone()];
    let mut waiter: Waiting<'_> = throttle.acquire_any(&waiting_at, "b");
    let calls = Calls::new();
    assert!(poll(&mut waiter, &calls).is_none());
    throttle.try_acquire(&servers[2], "a").expect("open").finish(Feedback::RetryAfter(secs(7_200)));
    for _ in 0..4 {
        throttle.try_acquire(&servers[3], "a").expect("open").finish(Feedback::Broken);
    }
    throttle.try_acquire(&servers[4], "a").expect("open").finish(Feedback::Ok);
    tokio::time::sleep(secs(40)).await;
    assert_eq!(throttle.domains(), 4);
    assert!(matches!(throttle.check(&servers[2], "a"), Err(Denied::Paused { .. })));
    drop((permit, blocker));
    // The pause of 60 s is over, its memory of 120 s is not.
    tokio::time::sleep(secs(100)).await;
    assert_eq!(throttle.domains(), 3, "waiter, asked, broken");
    drop(waiter);
    tokio::time::sleep(secs(7_200)).await;
    assert_eq!(throttle.domains(), 0);
}

/// L12: over the bound of domains the answer is an error, not growth, until one is forgotten.
#[tokio::test(start_paused = true)]
async fn domains_are_bounded() {
    bounded();
    let throttle = DomainThrottle::builder().max_domains(2).build();
    let servers = endpoints(&["https://a.example", "https://b.example", "https://c.example"]);
    for server in &servers[..2] {
        throttle.try_acquire(server, "k").expect("open").finish(Feedback::Ok);
    }
    assert!(matches!(throttle.check(&servers[2], "k"), Err(Denied::TooManyDomains)));
    assert!(matches!(throttle.try_acquire(&servers[2], "k"), Err(Denied::TooManyDomains)));
    let waiting = throttle.acquire_any(&servers, "k").await.expect("one of them is open");
    assert_eq!(waiting.endpoint(), &servers[0]);
    waiting.finish(Feedback::Ok);
    let refused = throttle.acquire(&servers[2], "k").await;
    assert!(matches!(refused, Err(ThrottleError::TooManyDomains)));
    assert_eq!((throttle.domains(), throttle.waiters()), (2, 0));
    tokio::time::sleep(secs(120)).await;
    assert!(throttle.try_acquire(&servers[2], "k").is_ok());
}

/// L12: over the bound of waiters the answer is an error; the places that were taken are given up.
#[tokio::test(start_paused = true)]
async fn waiters_are_bounded() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).max_waiters(3).build();
    let servers = endpoints(&["https://a.example", "https://b.example"]);
    let permits: Vec<_> =
        servers.iter().map(|server| throttle.try_acquire(server, "x").expect("open")).collect();
    let mut first: Waiting<'_> = throttle.acquire_any(&servers, "y");
    assert!(poll(&mut first, &Calls::new()).is_none());
    let refused = throttle.acquire_any(&servers, "z").await;
    assert!(matches!(refused, Err(ThrottleError::TooManyWaiters)));
    assert_eq!(throttle.waiters(), 2);
    drop((first, permits));
    assert_eq!(throttle.waiters(), 0);
    assert!(throttle.acquire_any(&servers, "z").await.is_ok());
}

/// L12: a permit that is there needs no place in line.
#[tokio::test(start_paused = true)]
async fn a_throttle_without_places_still_grants() {
    bounded();
    let throttle = DomainThrottle::builder().max_waiters(0).build();
    let server = at("https://a.example");
    assert!(throttle.acquire(&server, "k").await.is_ok());
}

/// L12: ten thousand waiters on one domain come, are served or leave, and leave nothing behind.
#[tokio::test(start_paused = true)]
async fn ten_thousand_waiters_leave_nothing_behind() {
    bounded();
    let throttle = DomainThrottle::new();
    let servers = endpoints(&["https://a.example"]);
    let keys: Vec<String> = (0..10_000).map(|n| format!("key {n}")).collect();
    let mut waiting: Vec<Waiting<'_>> =
        keys.iter().map(|key| throttle.acquire_any(&servers, key)).collect();
    let calls = Calls::new();
    let permits: Vec<_> = waiting.iter_mut().filter_map(|one| poll(one, &calls)).collect();
    assert_eq!((permits.len(), throttle.waiters()), (5, 9_995));
    assert_eq!(throttle.counts(servers[0].domain()).expect("in use").waiting, 9_995);
    waiting.truncate(5_000);
    assert_eq!(throttle.waiters(), 4_995);
    drop((permits, waiting));
    assert_eq!(throttle.waiters(), 0);
    assert!(calls.count() <= 4_995, "nobody was woken twice");
    tokio::time::sleep(secs(120)).await;
    settle().await;
    assert_eq!(throttle.domains(), 0);
}

/// L12: counts for a dashboard have a row for each of the first hundred domains and one for the rest.
#[test]
fn counts_for_a_dashboard_are_bounded() {
    let throttle = DomainThrottle::new();
    for n in 0..300 {
        let server = at(&format!("https://h{n:03}.example"));
        throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Ok);
    }
    let server = at("https://h007.example");
    throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Unused);
    let permit = throttle.try_acquire(&server, "a").expect("open");
    let rows = throttle.tallies();
    assert_eq!(rows.len(), 101);
    assert_eq!(rows[7].domain.as_ref(), Some(server.domain()));
    assert_eq!((rows[7].in_flight, rows[7].requests), (1, 2));
    let rest = rows.last().expect("a row for the rest");
    assert_eq!((&rest.domain, rest.in_flight, rest.requests), (&None, 0, 200));
    drop(permit);
    assert_eq!(throttle.tallies()[7].in_flight, 0);
}

/// L1, L12: nine domains of ten are forgotten, and what is kept of the others moves closer together:
/// each still has its own window, to the nanosecond.
#[tokio::test(start_paused = true)]
async fn what_moves_closer_together_keeps_its_window() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(5, 30, secs(1))).build();
    let kept = "*.kept.example".parse::<DomainPattern>().expect("a pattern");
    throttle.set_override(kept, limits(5, 2, secs(3_600)));
    let start = Instant::now();
    let mut fulls = Vec::new();
    for n in 0..4_000_u64 {
        let is_kept = n % 10 == 0;
        let name = if is_kept { "kept.example" } else { "example" };
        let server = at(&format!("https://h{n}.{name}"));
        throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Ok);
        if is_kept {
            tokio::time::advance(Duration::from_millis(1)).await;
            throttle.try_acquire(&server, "b").expect("open").finish(Feedback::Ok);
            fulls.push((server, start + secs(3_600) + Duration::from_millis(n / 10)));
        }
    }
    for minutes in [3, 10, 30] {
        tokio::time::sleep_until(start + secs(60 * minutes)).await;
        assert_eq!(throttle.domains(), fulls.len());
        for (server, until) in &fulls {
            let Err(Denied::Window { until: promised }) = throttle.check(server, "c") else {
                panic!("{server} has lost its starts")
            };
            let late = promised.saturating_duration_since(until.into_std());
            // Ticks of a window of an hour are 2048 ns.
            assert!(late < Duration::from_nanos(2_048), "{server}: {late:?}");
        }
        let fresh = at("https://h7.example");
        throttle.try_acquire(&fresh, "a").expect("forgotten").finish(Feedback::Unused);
        tokio::time::sleep(secs(60)).await;
    }
    tokio::time::sleep(secs(3_600)).await;
    assert_eq!(throttle.domains(), 0);
}

/// L11, L12: limits that change while nothing goes on in a domain are in force there as anywhere,
/// and its starts still count.
#[tokio::test(start_paused = true)]
async fn limits_change_for_a_domain_in_which_nothing_goes_on() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(5, 2, secs(600))).build();
    let server = at("https://a.example");
    let start = Instant::now();
    for key in ["a", "b"] {
        throttle.try_acquire(&server, key).expect("open").finish(Feedback::Ok);
    }
    tokio::time::sleep(secs(60)).await;
    throttle.set_limits(limits(5, 3, secs(600)));
    tokio::time::sleep(secs(60)).await;
    assert!(throttle.check(&server, "c").is_ok());
    throttle.set_limits(limits(5, 1, secs(10)));
    assert!(throttle.check(&server, "c").is_ok());
    tokio::time::sleep(secs(60)).await;
    throttle.set_limits(limits(5, 2, secs(600)));
    let Err(Denied::Window { until }) = throttle.check(&server, "c") else { panic!("not full") };
    assert!(
        until.saturating_duration_since((start + secs(600)).into_std()) < Duration::from_micros(1)
    );
}
