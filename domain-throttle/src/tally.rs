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
    granted: AtomicU64,
    settled: AtomicU64,
    unused: AtomicU64,
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

    /// A permit goes out. The lock of the domain's shard must be held, here and in [`settled`](Self::settled).
    #[inline]
    pub(crate) fn granted(&self, slot: u8) {
        add_one(slot, &self.counts[usize::from(slot)].granted);
    }

    #[inline]
    pub(crate) fn settled(&self, slot: u8, feedback: Feedback) {
        let count = &self.counts[usize::from(slot)];
        add_one(slot, &count.settled);
        if feedback == Feedback::Unused {
            add_one(slot, &count.unused);
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
        // In this order no difference is below zero.
        let unused = count.unused.load(Ordering::Acquire);
        let settled = count.settled.load(Ordering::Acquire);
        let granted = count.granted.load(Ordering::Acquire);
        DomainTally {
            domain,
            in_flight: granted.saturating_sub(settled),
            requests: granted.saturating_sub(unused),
        }
    }
}

/// A domain with a name has its slot to itself, and its lock is held: no other thread adds. The others
/// share theirs.
#[inline]
fn add_one(slot: u8, count: &AtomicU64) {
    if slot < NAMED {
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Release);
    } else {
        count.fetch_add(1, Ordering::Release);
    }
}
