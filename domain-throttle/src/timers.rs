use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Moment, cell::Cell};

/// When which domain wants to be looked at: one entry per domain at most.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    entries: Mutex<BTreeMap<(Moment, usize), Arc<Cell>>>,
}

impl Timers {
    /// Moves a domain's entry. Says whether it is the earliest now.
    pub(crate) fn set(&self, cell: &Arc<Cell>, from: Option<Moment>, to: Moment) -> bool {
        let address = Arc::as_ptr(cell).addr();
        let mut entries = self.lock();
        if let Some(from) = from {
            entries.remove(&(from, address));
        }
        entries.insert((to, address), cell.clone());
        entries.first_key_value().is_some_and(|(key, _)| *key == (to, address))
    }

    pub(crate) fn first(&self) -> Option<Moment> {
        self.lock().first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes an entry that is due.
    pub(crate) fn pop_due(&self, now: Moment) -> Option<(Moment, Arc<Cell>)> {
        let mut entries = self.lock();
        let first = entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), cell) = first.remove_entry();
        Some((at, cell))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Moment, usize), Arc<Cell>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
