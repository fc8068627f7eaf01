use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{slab::Slot, timestamp::Timestamp};

/// D16: the least time between two starts of a key. Without one, nothing is kept here.
#[derive(Debug)]
pub(crate) struct Intervals {
    interval: Option<Duration>,
    /// The last start of each key that has run, plus the interval.
    not_before: BTreeMap<Slot, Timestamp>,
    /// Absent keys whose last start is remembered, by until when.
    remembered: BTreeSet<(Timestamp, Slot)>,
}

impl Intervals {
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self { interval, not_before: BTreeMap::new(), remembered: BTreeSet::new() }
    }

    pub(crate) fn started(&mut self, slot: Slot, now: Timestamp) {
        if let Some(interval) = self.interval {
            self.not_before.insert(slot, now + interval);
        }
    }

    /// The key may not start before.
    pub(crate) fn not_before(&self, slot: Slot) -> Timestamp {
        match self.interval {
            None => Timestamp::ORIGIN,
            Some(_) => self.not_before.get(&slot).copied().unwrap_or(Timestamp::ORIGIN),
        }
    }

    /// The key has become absent. Says whether its last start has to be remembered.
    pub(crate) fn must_remember(&mut self, slot: Slot, now: Timestamp) -> bool {
        let until = self.not_before(slot);
        if until > now {
            self.remembered.insert((until, slot));
            return true;
        }
        if self.interval.is_some() {
            self.not_before.remove(&slot);
        }
        false
    }

    /// An absent key whose last start was remembered is requested.
    pub(crate) fn recall(&mut self, slot: Slot) {
        self.remembered.remove(&(self.not_before(slot), slot));
    }

    /// An absent key whose last start is no longer needed.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Option<Slot> {
        let &(until, slot) = self.remembered.first()?;
        if until > now {
            return None;
        }
        self.remembered.pop_first();
        self.not_before.remove(&slot);
        Some(slot)
    }

    /// How many absent keys are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.remembered.len()
    }
}
