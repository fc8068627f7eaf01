//! The six metrics. No identifier is a label; domains are, the first hundred, then "other".

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use domain_throttle::Domain;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const QUEUE_SIZE: &str = "purgatory_sync_queue_size";
const ATTEMPTS: &str = "purgatory_sync_attempts_total";
const OIDS_FETCHED: &str = "purgatory_sync_oids_fetched_total";
const IN_FLIGHT: &str = "purgatory_domain_in_flight";
const REQUESTS: &str = "purgatory_domain_requests_total";
const BACKOFF: &str = "purgatory_sync_backoff_seconds";

/// How many domains get a label of their own.
const MAX_DOMAINS: usize = 100;

pub(crate) fn describe() {
    describe_gauge!(QUEUE_SIZE, "Identifiers that are queued or running.");
    describe_counter!(ATTEMPTS, "Passes that began.");
    describe_counter!(OIDS_FETCHED, "Objects that a fetch brought here.");
    describe_gauge!(IN_FLIGHT, "Fetches that are on, by domain.");
    describe_counter!(REQUESTS, "Fetches that began, by domain.");
    describe_histogram!(BACKOFF, "Waits after passes that left something held, in seconds.");
}

// The gauge is moved and never set: two threads that set it could leave the older value.
pub(crate) fn queue_grew() {
    gauge!(QUEUE_SIZE).increment(1);
}

pub(crate) fn queue_shrank(by: usize) {
    // As a float: the facade has no other numbers, and a queue is far below 2^53.
    #[expect(clippy::cast_precision_loss, reason = "a queue has far fewer than 2^53 entries")]
    gauge!(QUEUE_SIZE).decrement(by as f64);
}

pub(crate) fn attempt() {
    counter!(ATTEMPTS).increment(1);
}

pub(crate) fn oids_fetched(count: usize) {
    counter!(OIDS_FETCHED).increment(u64::try_from(count).unwrap_or(u64::MAX));
}

pub(crate) fn backoff(wait: Duration) {
    histogram!(BACKOFF).record(wait.as_secs_f64());
}

/// The domains that have a label of their own.
#[derive(Debug, Default)]
pub(crate) struct DomainLabels(Mutex<HashSet<Domain>>);

impl DomainLabels {
    /// A fetch of this domain begins; it ends when the guard is dropped.
    pub(crate) fn fetch(&self, domain: &Domain) -> InFlight {
        let label = self.of(domain);
        counter!(REQUESTS, "domain" => label.clone()).increment(1);
        gauge!(IN_FLIGHT, "domain" => label.clone()).increment(1);
        InFlight { label }
    }

    fn of(&self, domain: &Domain) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(domain) {
            if known.len() >= MAX_DOMAINS {
                return "other".to_owned();
            }
            known.insert(domain.clone());
        }
        domain.as_str().to_owned()
    }
}

/// A fetch that is on.
#[must_use = "the fetch counts as on while this lives"]
#[derive(Debug)]
pub(crate) struct InFlight {
    label: String,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        gauge!(IN_FLIGHT, "domain" => std::mem::take(&mut self.label)).decrement(1);
    }
}
