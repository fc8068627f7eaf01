//! The settings as a value and as a file.

use std::time::Duration;

use purgatory_sync::{Arrival, OurDomain, SyncConfig};

use crate::common::*;

/// P12: the five settings of the proposal and their defaults.
#[test]
fn the_five_settings_and_their_defaults() {
    let config = SyncConfig::new();
    assert_eq!(config.loop_interval(), ms(1_000));
    assert_eq!(config.domain_concurrent(), 5);
    assert_eq!(config.domain_rate_limit(), 30);
    assert_eq!(config.submitted_delay(), secs(180));
    assert_eq!(config.synced_delay(), ms(500));
    assert_eq!(config.debounce(Arrival::Synced).max_wait, secs(5));
    assert_eq!(config.limits().window, secs(60));
}

/// P13: the bounds and their defaults.
#[test]
fn the_bounds_and_their_defaults() {
    let config = SyncConfig::default();
    assert_eq!(config.max_fetches(), 32);
    assert_eq!(config.max_queued(), 100_000);
    assert_eq!(config.oids_per_want(), 5_000);
    assert_eq!((config.urls_per_want(), config.own_urls_per_want()), (20, 3));
    assert_eq!(config.wants_per_look(), 200);
    assert_eq!(config.fetches_per_pass(), 64);
    assert_eq!(config.fetch_deadline(), secs(600));
}

#[test]
fn a_file_names_what_differs_and_what_is_left_out_has_its_default() {
    let config: SyncConfig =
        serde_json::from_str(r#"{"synced_delay_ms": 250, "max_fetches": 8}"#).unwrap();
    assert_eq!((config.synced_delay(), config.max_fetches()), (ms(250), 8));
    assert_eq!(config.submitted_delay(), secs(180));
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<SyncConfig>(&text).unwrap(), config);
    assert_eq!(serde_json::from_str::<SyncConfig>("{}").unwrap(), SyncConfig::default());
}

#[test]
fn a_wrong_value_is_named_with_what_is_allowed() {
    let wrong = |text: &str| serde_json::from_str::<SyncConfig>(text).unwrap_err().to_string();
    let error = wrong(r#"{"domain_concurrent": 0}"#);
    assert!(error.contains("domain_concurrent is 0: allowed is 1 to 10000"), "{error}");
    let error = wrong(r#"{"synced_delay_ms": 99999999}"#);
    assert!(error.contains("synced_delay_ms is 99999999: allowed is 1 to 3600000"), "{error}");
    let error = wrong(r#"{"sync_loop": 1}"#);
    assert!(error.contains("unknown field `sync_loop`"), "{error}");
    assert!(error.contains("loop_interval_ms"), "{error}");
    let error = wrong(r#"{"max_fetches": -1}"#);
    assert!(error.contains("-1"), "{error}");
}

#[test]
fn a_wrong_value_in_code_is_refused_too() {
    let error = SyncConfig::new().with_domain_rate_limit(0).unwrap_err();
    assert_eq!(error.name(), "domain_rate_limit");
    assert_eq!(error.to_string(), "domain_rate_limit is 0: allowed is 1 to 1000000");
    assert!(SyncConfig::new().with_submitted_delay(Duration::MAX).is_err());
    assert!(SyncConfig::new().with_loop_interval(Duration::ZERO).is_err());
    assert!(SyncConfig::new().with_max_queued(usize::MAX).is_err());
    // A part of a millisecond does not become zero.
    let config = SyncConfig::new().with_synced_delay(Duration::from_micros(1)).unwrap();
    assert_eq!(config.synced_delay(), ms(1));
}

/// P7: what names this service.
#[test]
fn our_domains_are_parsed() {
    for (text, shown) in [
        ("git.example.org", "git.example.org"),
        ("GIT.example.ORG.", "git.example.org"),
        ("git.example.org:8443", "git.example.org:8443"),
        ("127.1", "127.0.0.1"),
        ("[::1]:8080", "[::1]:8080"),
        ("[::1]", "[::1]"),
        ("bücher.example", "xn--bcher-kva.example"),
    ] {
        assert_eq!(text.parse::<OurDomain>().unwrap().to_string(), shown);
    }
    for text in ["", ":80", "a:0", "a:99999", "a:b", "https://a", "a/b", "user@a", "a b", "a:+1"] {
        let error = text.parse::<OurDomain>().unwrap_err().to_string();
        assert!(error.contains("give a host or host:port"), "{text}: {error}");
    }
}
