//! What is told to the `metrics` and `tracing` facades, each behind its feature. Nothing here is
//! called under a lock.

use std::time::Duration;

#[cfg(feature = "metrics")]
use crate::tally::NAMED;
use crate::{Denied, Domain, Endpoint, Feedback, Moment, Settled};

/// A permit reached its user. `waited` is for those who stood in line.
#[allow(unused_variables, reason = "each feature tells something else")]
pub(crate) fn granted(tally: u8, at: &Endpoint, waited: Option<Duration>) {
    #[cfg(feature = "metrics")]
    {
        metrics::counter!("domain_throttle_permits_total", "domain" => label(tally, at))
            .increment(1);
        metrics::gauge!("domain_throttle_in_flight", "domain" => label(tally, at)).increment(1);
        metrics::histogram!("domain_throttle_wait_seconds").record(waited.unwrap_or_default());
    }
    #[cfg(feature = "tracing")]
    tracing::trace!(domain = %at.domain(), endpoint = %at, waited = ?waited.unwrap_or_default(), "permit granted");
}

/// A permit came back.
#[allow(unused_variables, reason = "each feature tells something else")]
pub(crate) fn settled(tally: u8, at: &Endpoint, feedback: Feedback, settled: Settled, now: Moment) {
    #[cfg(feature = "metrics")]
    {
        metrics::gauge!("domain_throttle_in_flight", "domain" => label(tally, at)).decrement(1);
        metrics::counter!("domain_throttle_feedback_total", "feedback" => feedback_name(feedback))
            .increment(1);
        for (what, until) in
            [("domain", settled.domain_paused), ("endpoint", settled.endpoint_paused)]
        {
            if until.is_some() {
                metrics::counter!("domain_throttle_pauses_total", "what" => what).increment(1);
            }
        }
    }
    #[cfg(feature = "tracing")]
    {
        if let Some(until) = settled.domain_paused {
            tracing::info!(domain = %at.domain(), length = ?until.saturating_since(now), "domain paused");
        }
        if let Some(until) = settled.endpoint_paused {
            tracing::info!(domain = %at.domain(), endpoint = %at, length = ?until.saturating_since(now), "endpoint paused");
        }
        tracing::trace!(domain = %at.domain(), endpoint = %at, feedback = feedback_name(feedback), "permit returned");
    }
}

/// `try_acquire` said no.
#[allow(unused_variables, reason = "each feature tells something else")]
pub(crate) fn denied(domain: &Domain, denied: &Denied) {
    #[cfg(feature = "metrics")]
    metrics::counter!("domain_throttle_denied_total", "cause" => cause(denied)).increment(1);
    #[cfg(feature = "tracing")]
    tracing::debug!(domain = %domain, cause = cause(denied), "permit denied");
}

/// Somebody stands in line.
pub(crate) fn joined() {
    #[cfg(feature = "metrics")]
    metrics::gauge!("domain_throttle_waiters").increment(1);
}

/// Somebody left the line, with or without a permit.
pub(crate) fn left() {
    #[cfg(feature = "metrics")]
    metrics::gauge!("domain_throttle_waiters").decrement(1);
}

/// The domain's name, or "other" when enough domains have names.
#[cfg(feature = "metrics")]
fn label(tally: u8, at: &Endpoint) -> metrics::SharedString {
    if tally < NAMED { at.domain().shared().clone().into() } else { "other".into() }
}

#[cfg(any(feature = "metrics", feature = "tracing"))]
fn feedback_name(feedback: Feedback) -> &'static str {
    match feedback {
        Feedback::Ok => "ok",
        Feedback::Failed => "failed",
        Feedback::RetryAfter(_) => "retry_after",
        Feedback::Broken => "broken",
        Feedback::Unused => "unused",
    }
}

#[cfg(any(feature = "metrics", feature = "tracing"))]
fn cause(denied: &Denied) -> &'static str {
    match denied {
        Denied::KeyBusy => "key_busy",
        Denied::Concurrency => "concurrency",
        Denied::Window { .. } => "window",
        Denied::Paused { .. } => "paused",
        Denied::Queued => "queued",
        Denied::TooManyDomains => "too_many_domains",
        Denied::Closed => "closed",
        Denied::Backend(_) => "backend",
    }
}
