use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Moment, slot::SlotId};

/// When which domain wants to be looked at: one entry per domain at most.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    entries: Mutex<BTreeSet<(Moment, SlotId)>>,
}

impl Timers {
    /// Moves a domain's entry. Says whether it is the earliest now.
    pub(crate) fn set(&self, slot: SlotId, from: Option<Moment>, to: Moment) -> bool {
        let mut entries = self.lock();
        if let Some(from) = from {
            entries.remove(&(from, slot));
        }
        entries.insert((to, slot));
        entries.first() == Some(&(to, slot))
    }

    pub(crate) fn first(&self) -> Option<Moment> {
        self.lock().first().map(|&(at, _)| at)
    }

    /// Takes an entry that is due.
    pub(crate) fn pop_due(&self, now: Moment) -> Option<(Moment, SlotId)> {
        let mut entries = self.lock();
        let due = entries.first().copied().filter(|&(at, _)| at <= now)?;
        entries.remove(&due);
        Some(due)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(Moment, SlotId)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
