use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use crate::rounds::Rounds;

/// What is kept of an identifier from pass to pass, as long as it is queued.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Which URLs were reached.
    pub(crate) rounds: Rounds,
    /// The turn that the next pass begins with, where there are more wants than fit into one look.
    pub(crate) turn: usize,
    /// What the last release was called for that let nothing go, and how many signals had come before
    /// that look: it is not called for the same again.
    pub(crate) fruitless: Option<Fruitless>,
}

/// A release that let nothing go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fruitless {
    pub(crate) fingerprint: u64,
    pub(crate) signals: u64,
}

/// A [`Memory`] that outlives the pass that uses it, also when that pass panics.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    memory: Mutex<Memory>,
    signals: AtomicU64,
}

impl SharedMemory {
    /// Never held across an await or a call into a port.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody said that something changed.
    pub(crate) fn signal(&self) {
        self.signals.fetch_add(1, Ordering::SeqCst);
    }

    /// How often somebody said so.
    pub(crate) fn signals(&self) -> u64 {
        self.signals.load(Ordering::SeqCst)
    }
}
