//! What happens, in words.

use std::time::Duration;

use purgatory_sync::{FetchEnded, FetchErrorKind, FetchOutcome};

/// What a server answered.
pub(super) fn answer(fetch: &FetchEnded) -> String {
    match fetch.outcome {
        FetchOutcome::Failed(FetchErrorKind::Network) => "no connection".to_owned(),
        FetchOutcome::Failed(FetchErrorKind::NotFound) => "no such repository".to_owned(),
        FetchOutcome::Failed(FetchErrorKind::RateLimited) => "asks to come later".to_owned(),
        FetchOutcome::Failed(kind) => kind.as_str().replace('_', " "),
        FetchOutcome::Cancelled => "cut off".to_owned(),
        _ => format!("{} of {}", fetch.received, count(fetch.wanted, "object")),
    }
}

/// So many things of a kind.
pub(super) fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Seconds, rounded up: nothing is promised too early.
pub(super) fn whole_seconds(time: Duration) -> String {
    format!("{} s", time.as_millis().div_ceil(1_000))
}

/// A share of a limit.
pub(super) fn of(number: usize, limit: u32) -> String {
    format!("{number} of {limit}")
}
