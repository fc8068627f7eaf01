//! L11: limits per domain and per suffix, changed while running.

use domain_throttle::{
    Denied, Domain, DomainPattern, DomainThrottle, Feedback, Limits, ThrottleExt,
};
use tokio::time::Instant;

use crate::support::{at, bounded, limits, secs, settle};

fn pattern(text: &str) -> DomainPattern {
    text.parse().expect("a pattern")
}

fn per_window(max: u32) -> Limits {
    limits(100, max, secs(60))
}

/// How many requests a domain lets through at once.
fn room(throttle: &DomainThrottle, url: &str) -> usize {
    let server = at(url);
    let tried = (0..50).map(|n| throttle.try_acquire(&server, &n.to_string()));
    let granted: Vec<_> = tried.filter_map(Result::ok).collect();
    let room = granted.len();
    granted.into_iter().for_each(|permit| permit.finish(Feedback::Unused));
    room
}

/// L11: an exact domain comes before a suffix, a longer suffix before a shorter one, the default last.
#[test]
fn the_most_exact_override_wins() {
    let throttle = DomainThrottle::builder()
        .limits(per_window(1))
        .limits_for(pattern("*.org"), per_window(2))
        .limits_for(pattern("*.example.org"), per_window(3))
        .limits_for(pattern("*.git.example.org"), per_window(4))
        .limits_for(pattern("a.git.example.org"), per_window(5))
        .limits_for(pattern("127.0.0.1"), per_window(6))
        .build();
    let expected = [
        ("https://example.com", 1),
        ("https://example.org", 2),
        ("https://notexample.org", 2),
        ("https://www.example.org", 3),
        ("https://git.example.org", 3),
        ("https://b.git.example.org", 4),
        ("https://x.y.git.example.org", 4),
        ("https://A.Git.example.org.", 5),
        ("https://0x7f.1", 6),
        ("https://127.0.0.2", 1),
        ("https://org", 1),
    ];
    for (url, most) in expected {
        assert_eq!(room(&throttle, url), most, "{url}");
    }
}

/// L11: each domain below a suffix has a budget of its own.
#[test]
fn domains_below_a_suffix_do_not_share_a_budget() {
    let throttle =
        DomainThrottle::builder().limits_for(pattern("*.example.org"), per_window(1)).build();
    let permit = throttle.try_acquire(&at("https://a.example.org"), "k").expect("open");
    assert_eq!(room(&throttle, "https://a.example.org"), 0);
    assert_eq!(room(&throttle, "https://b.example.org"), 1);
    permit.finish(Feedback::Ok);
}

/// L11: limits change while running: permits that are alive survive a lowered limit, and nobody new
/// goes before there is room under it.
#[test]
fn permits_survive_a_lowered_limit() {
    let throttle = DomainThrottle::new();
    let server = at("https://example.org");
    let mut permits: Vec<_> =
        (0..5).map(|n| throttle.try_acquire(&server, &n.to_string()).expect("open")).collect();
    throttle.set_override(pattern("example.org"), limits(2, 30, secs(60)));
    assert_eq!(throttle.counts(server.domain()).expect("in use").in_flight, 5);
    for left in (1..5).rev() {
        permits.pop();
        let expected = if left >= 2 { 0 } else { 1 };
        assert_eq!(room(&throttle, "https://example.org"), expected, "{left} are on");
    }
    throttle.remove_override(&pattern("example.org"));
    assert_eq!(room(&throttle, "https://example.org"), 4);
    throttle.set_limits(limits(3, 30, secs(60)));
    assert_eq!(room(&throttle, "https://example.org"), 2);
}

/// L6, L11: who waits sees a raised limit at once.
#[tokio::test(start_paused = true)]
async fn a_raised_limit_lets_waiters_go_at_once() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 1, secs(60))).build();
    let server = at("https://example.org");
    throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Ok);
    let waiter = tokio::spawn({
        let (throttle, server) = (throttle.clone(), server.clone());
        async move { throttle.acquire(&server, "b").await.map(drop) }
    });
    settle().await;
    let start = Instant::now();
    throttle.set_override(server.domain().clone(), limits(1, 2, secs(60)));
    waiter.await.expect("no panic").expect("open");
    assert_eq!(start.elapsed(), secs(0));
}

/// L11: a limit that is lowered while a permit is on its way takes it back.
#[tokio::test(start_paused = true)]
async fn a_lowered_limit_holds_for_permits_on_their_way() {
    bounded();
    use crate::support::{Calls, Waiting, poll};
    use domain_throttle::Throttle;
    let throttle = DomainThrottle::builder().limits(limits(2, 30, secs(60))).build();
    let servers = [at("https://example.org")];
    let one = throttle.try_acquire(&servers[0], "a").expect("open");
    let two = throttle.try_acquire(&servers[0], "b").expect("open");
    let calls = Calls::new();
    let mut waiting: Waiting<'_> = throttle.acquire_any(&servers, "c");
    assert!(poll(&mut waiting, &calls).is_none());
    drop(one);
    throttle.set_limits(limits(1, 30, secs(60)));
    assert!(poll(&mut waiting, &calls).is_none());
    drop(two);
    assert!(poll(&mut waiting, &calls).is_some());
}

/// L11: a longer window holds back what the shorter one would let go.
#[tokio::test(start_paused = true)]
async fn a_longer_window_counts_the_starts_that_are_remembered() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(9, 1, secs(10))).build();
    let server = at("https://example.org");
    throttle.try_acquire(&server, "a").expect("open").finish(Feedback::Ok);
    let start = Instant::now();
    throttle.set_limits(limits(9, 1, secs(7_200)));
    let Err(Denied::Window { until }) = throttle.check(&server, "a") else { panic!("not full") };
    let exact = (start + secs(7_200)).into_std();
    // Ticks of a longer window are coarser, and never early.
    assert!(until >= exact && until - exact < std::time::Duration::from_micros(5));
}

/// L1: a margin makes every window longer, so that the limit holds at the server too.
#[tokio::test(start_paused = true)]
async fn a_margin_keeps_the_limit_at_the_server_when_requests_move_together() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(9, 1, secs(60))).margin(secs(2)).build();
    let server = at("https://example.org");
    let start = Instant::now();
    throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
    throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
    assert_eq!(start.elapsed(), secs(62));
    let counts = throttle.counts(&"example.org".parse::<Domain>().expect("a domain"));
    assert_eq!(counts.expect("in use").limits.window, secs(62));
}
