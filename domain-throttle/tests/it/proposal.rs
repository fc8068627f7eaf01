//! The unit tests that were asked for, one each. What deals with URLs that were tried belongs to
//! the engine above (`purgatory-sync`, its rounds): `get_untried_urls`, `urls_tried`,
//! `all_urls_tried`, and the cleaning up of those, for one domain and for all.

use domain_throttle::{Denied, DomainThrottle, Feedback, Limits};

use crate::support::{at, bounded, secs};

/// L2: the sixth request to a domain is blocked.
#[test]
fn concurrent_limit_the_sixth_request_is_blocked() {
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/a.git");
    let permits: Vec<_> =
        (0..5).map(|n| throttle.try_acquire(&server, &n.to_string()).expect("open")).collect();
    assert!(matches!(throttle.try_acquire(&server, "6"), Err(Denied::Concurrency)));
    drop(permits);
}

/// L1: the thirty-first request in a minute is blocked.
#[tokio::test(start_paused = true)]
async fn rate_limit_the_thirty_first_request_in_a_minute_is_blocked() {
    bounded();
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/a.git");
    for n in 0..30 {
        throttle.try_acquire(&server, &n.to_string()).expect("open").finish(Feedback::Ok);
        tokio::time::advance(secs(1)).await;
    }
    assert!(matches!(throttle.try_acquire(&server, "31"), Err(Denied::Window { .. })));
    tokio::time::advance(secs(30)).await;
    assert!(throttle.try_acquire(&server, "31").is_ok());
}

/// L5: `has_capacity` checks both limits, and takes nothing.
#[tokio::test(start_paused = true)]
async fn has_capacity_checks_both_limits() {
    bounded();
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/a.git");
    for _ in 0..100 {
        assert!(throttle.check(&server, "x").is_ok());
    }
    let five: Vec<_> =
        (0..5).map(|n| throttle.try_acquire(&server, &n.to_string()).expect("open")).collect();
    assert!(matches!(throttle.check(&server, "x"), Err(Denied::Concurrency)));
    drop(five);
    assert!(throttle.check(&server, "x").is_ok());
    for n in 0..25 {
        throttle.try_acquire(&server, &n.to_string()).expect("open").finish(Feedback::Ok);
    }
    assert!(matches!(throttle.check(&server, "x"), Err(Denied::Window { .. })));
}

/// L3: `start_fetch` fails if one is in progress for this domain and identifier; another identifier
/// and another domain are free to go.
#[test]
fn start_fetch_fails_while_one_is_in_progress_for_domain_and_identifier() {
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/a.git");
    let permit = throttle.try_acquire(&server, "identifier").expect("open");
    let elsewhere = at("http://EXAMPLE.org:8080/b.git");
    assert!(matches!(throttle.try_acquire(&elsewhere, "identifier"), Err(Denied::KeyBusy)));
    assert!(throttle.try_acquire(&server, "other").is_ok());
    assert!(throttle.try_acquire(&at("https://b.example"), "identifier").is_ok());
    drop(permit);
}

/// L9: `complete_fetch` gives the slot and the identifier back.
#[test]
fn complete_fetch_frees_the_slot_and_the_identifier() {
    let throttle = DomainThrottle::new();
    let server = at("https://example.org/a.git");
    for _ in 0..30 {
        let permit = throttle.try_acquire(&server, "identifier").expect("open");
        assert_eq!(throttle.counts(server.domain()).expect("in use").in_flight, 1);
        permit.finish(Feedback::Ok);
        assert_eq!(throttle.counts(server.domain()).expect("in use").in_flight, 0);
    }
}

/// L3, L8: `remove_identifier`: nothing of an identifier stays behind once its permits and waits
/// are gone; there is no call to forget.
#[tokio::test(start_paused = true)]
async fn an_identifier_leaves_nothing_behind() {
    bounded();
    let throttle = DomainThrottle::new();
    for server in ["https://a.example", "https://b.example"].map(at) {
        throttle.try_acquire(&server, "identifier").expect("open").finish(Feedback::Ok);
    }
    tokio::time::sleep(secs(120)).await;
    assert_eq!((throttle.domains(), throttle.waiters()), (0, 0));
}

/// L1, L2: the defaults are the numbers that were asked for; zero cannot be said.
#[test]
fn the_defaults_are_five_and_thirty_a_minute() {
    let limits = Limits::default();
    assert_eq!((limits.max_concurrent.get(), limits.max_per_window.get()), (5, 30));
    assert_eq!(limits.window, secs(60));
    // The limits are `NonZeroU32`: this is the only way to write one, and it ends here.
    assert_eq!(std::num::NonZeroU32::new(0), None);
}
