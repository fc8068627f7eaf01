use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Domain, Feedback};

/// How many domains are counted by name; all others are counted together.
pub(crate) const NAMED: u8 = 100;

/// What was asked of a domain so far, for a dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainTally {
    /// The domain; `None` is all that are not counted by name.
    pub domain: Option<Domain>,
    /// Permits that are alive.
    pub in_flight: u64,
    /// Permits that were used, those in flight included.
    pub requests: u64,
}

/// Counts per domain that outlive the domain's state, for the first 100 domains and the rest.
#[derive(Debug)]
pub(crate) struct Tallies {
    names: Mutex<HashMap<Domain, u8>>,
    counts: Box<[Count]>,
}

#[derive(Debug, Default)]
struct Count {
    in_flight: AtomicU64,
    requests: AtomicU64,
}

impl Default for Tallies {
    fn default() -> Self {
        let counts = (0..=NAMED).map(|_| Count::default()).collect();
        Self { names: Mutex::default(), counts }
    }
}

impl Tallies {
    /// Where the requests of a domain are counted: a slot of its own as long as there are some.
    pub(crate) fn slot(&self, domain: &Domain) -> u8 {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&slot) = names.get(domain) {
            return slot;
        }
        let next = u8::try_from(names.len()).unwrap_or(NAMED);
        if next < NAMED {
            names.insert(domain.clone(), next);
        }
        next
    }

    pub(crate) fn granted(&self, slot: u8) {
        let count = &self.counts[usize::from(slot)];
        count.in_flight.fetch_add(1, Ordering::Relaxed);
        count.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn settled(&self, slot: u8, feedback: Feedback) {
        let count = &self.counts[usize::from(slot)];
        count.in_flight.fetch_sub(1, Ordering::Relaxed);
        if feedback == Feedback::Unused {
            count.requests.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// All counts, by name; the rest last, if there is any.
    pub(crate) fn all(&self) -> Vec<DomainTally> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut named: Vec<_> = names.into_iter().collect();
        named.sort();
        let named = named.into_iter().map(|(domain, slot)| self.read(Some(domain), slot));
        let rest = self.read(None, NAMED);
        named.chain((rest.requests > 0).then_some(rest)).collect()
    }

    fn read(&self, domain: Option<Domain>, slot: u8) -> DomainTally {
        let count = &self.counts[usize::from(slot)];
        DomainTally {
            domain,
            in_flight: count.in_flight.load(Ordering::Relaxed),
            requests: count.requests.load(Ordering::Relaxed),
        }
    }
}
