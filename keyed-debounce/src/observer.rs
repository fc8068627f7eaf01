use std::time::Duration;

use crate::{Outcome, Scheduled};

/// Is told what happens in a [`KeyedDebouncer`](crate::KeyedDebouncer).
///
/// Called after the fact, outside the lock, on the thread that caused it: it may call the debouncer,
/// and it should be quick. Events that different threads cause may arrive in another order than they
/// happened. A panic in an observer is caught; the debouncer goes on.
///
/// Each `Fn(&Event<'_, K>)` that is `Send + Sync` is an observer.
pub trait Observer<K>: Send + Sync {
    /// Something happened.
    fn on_event(&self, event: &Event<'_, K>);
}

impl<K, F: Fn(&Event<'_, K>) + Send + Sync> Observer<K> for F {
    fn on_event(&self, event: &Event<'_, K>) {
        self(event);
    }
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a, K> {
    /// A request was taken.
    #[non_exhaustive]
    Scheduled {
        /// The key.
        key: &'a K,
        /// What the request did.
        how: Scheduled,
    },
    /// A request was refused.
    #[non_exhaustive]
    Refused {
        /// The key.
        key: &'a K,
        /// Whether the debouncer was closed; otherwise it was full.
        closed: bool,
    },
    /// A run began.
    #[non_exhaustive]
    Started {
        /// The key.
        key: &'a K,
        /// Which try this is, from 1.
        attempt: u32,
        /// How long the key had been due.
        late_by: Duration,
    },
    /// A run ended.
    #[non_exhaustive]
    Finished {
        /// The key.
        key: &'a K,
        /// How.
        outcome: Outcome,
        /// How long the run took.
        took: Duration,
        /// How long until the key is due again; `None` if it was forgotten.
        due_in: Option<Duration>,
        /// Whether the key waits because of its outcome, and nobody requested it during the run.
        backs_off: bool,
        /// How many runs of the key failed in a row.
        failures: u32,
    },
    /// What waited for a key was forgotten.
    #[non_exhaustive]
    Cancelled {
        /// The key.
        key: &'a K,
        /// Whether a run of the key is on; otherwise the key is absent now.
        running: bool,
    },
    /// The debouncer was closed.
    Closed,
}
