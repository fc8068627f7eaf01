use std::{
    borrow::Borrow,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
    task::Waker,
};

use crate::{Domain, DomainState, Moment};

/// One domain's state and its lock.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) domain: Domain,
    /// Where its requests are counted.
    pub(crate) tally: u8,
    state: Mutex<Inside>,
}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) core: DomainState<Waker>,
    /// When the driver looks at this domain; `None` if it does not.
    pub(crate) armed: Option<Moment>,
    /// Which edition of the limits is in force here.
    pub(crate) edition: u32,
    /// It is no longer in the map: look there again.
    pub(crate) forgotten: bool,
}

impl Cell {
    pub(crate) fn new(domain: Domain, tally: u8, core: DomainState<Waker>, edition: u32) -> Self {
        let inside = Inside { core, armed: None, edition, forgotten: false };
        Self { domain, tally, state: Mutex::new(inside) }
    }

    /// A poisoned lock is taken as it is: no code of a user runs under it.
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<std::sync::MutexGuard<'_, Inside>> {
        self.state.try_lock().ok()
    }
}

/// A cell in the map, found by its domain's text.
#[derive(Debug)]
pub(crate) struct Entry(pub(crate) Arc<Cell>);

impl Borrow<str> for Entry {
    fn borrow(&self) -> &str {
        self.0.domain.as_str()
    }
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.domain.as_str().hash(state);
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0.domain == other.0.domain
    }
}

impl Eq for Entry {}
