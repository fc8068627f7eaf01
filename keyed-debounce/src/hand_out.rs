use std::{fmt, ops::Deref, sync::Arc};

use crate::{Scheduled, key_store::Key, slab::Slot, timestamp::Timestamp};

/// A key that was taken from a [`Schedule`](crate::schedule::Schedule) to be run.
#[must_use = "the key stays running until its ticket is given to `finish`"]
pub struct HandOut<K> {
    /// The key, shared with the schedule, which stores it once.
    pub key: Arc<K>,
    /// One more than its failures in a row.
    pub attempt: u32,
    /// When it was due.
    pub due: Timestamp,
    /// Ends the run.
    pub ticket: Ticket,
}

/// The right to end one run, once.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) slot: Slot,
    pub(crate) run: u32,
}

/// What became of a key whose run ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished<K> {
    /// Where the key is now.
    pub then: Then,
    /// The key, if it is no longer kept. Dropping it runs the key's `Drop`: do so outside of your
    /// lock.
    pub forgotten: Option<Forgotten<K>>,
}

/// Where a key is after its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Then {
    /// It is absent.
    Forgotten,
    /// It was requested during the run and runs again.
    Requested {
        /// When.
        due: Timestamp,
    },
    /// Its outcome asked for another run.
    Backoff {
        /// When.
        due: Timestamp,
        /// How many runs failed in a row.
        failures: u32,
    },
}

/// What [`cancel`](crate::schedule::Schedule::cancel) found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Cancelled<K> {
    /// Whether there was something to forget: a key that waited, or a request during a run.
    pub found: bool,
    /// Whether a run of the key is on, so that the key is not absent now.
    pub running: bool,
    /// The key, if it is no longer kept.
    pub forgotten: Option<Forgotten<K>>,
}

/// A key that is no longer kept.
pub struct Forgotten<K>(pub(crate) Key<K>);

/// A request that was taken.
pub(crate) struct Accepted<K> {
    pub(crate) how: Scheduled,
    pub(crate) slot: Slot,
    /// The key, if an equal one is stored already.
    pub(crate) spare: Option<K>,
}

impl<K> Deref for Forgotten<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0
    }
}

impl<K: fmt::Debug> fmt::Debug for Forgotten<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Forgotten").field(&**self).finish()
    }
}

impl<K: fmt::Debug> fmt::Debug for HandOut<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandOut")
            .field("key", &self.key)
            .field("attempt", &self.attempt)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}
