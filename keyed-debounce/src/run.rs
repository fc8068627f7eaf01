use std::{fmt, future::pending, sync::Arc};

use async_trait::async_trait;

use crate::{Outcome, key_store::Key};

/// What a backend gives to a [`Run`]: how the hold on the key is settled, and what wakes its holder.
///
/// The in-memory scheduler implements this for its own runs. A backend over a store of its own
/// implements it to learn how a run ended.
#[async_trait]
pub trait RunHook: Send + Sync {
    /// The run has ended with `outcome`. Called exactly once: by [`Run::finish`], or with
    /// [`Outcome::Retry`] when the run is dropped, also while a thread panics.
    ///
    /// It must not block, must not panic and cannot await: a backend that has to talk to a store
    /// hands the outcome to a task of its own.
    fn settle(self: Box<Self>, outcome: Outcome);

    /// Waits until the key is requested again during this run. Returns at once if it already was.
    ///
    /// A backend that cannot tell keeps the default, which never returns.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe: the caller waits for it beside its work.
    async fn scheduled_again(&self) {
        pending::<()>().await;
    }

    /// Waits until the hold on the key is lost, for example because a lease could not be renewed.
    ///
    /// The default never returns: a hold in memory cannot be lost.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe: the caller waits for it beside its work.
    async fn lost(&self) {
        pending::<()>().await;
    }
}

/// One hold of a key, from hand-out to finish.
///
/// While it lives, nobody else gets a run of the same key. Say how the work ended with
/// [`finish`](Run::finish). A run that is dropped instead (a panic, an abort, an early return)
/// counts as [`Outcome::Retry`].
#[must_use = "a run that is dropped counts as failed: call `finish`"]
pub struct Run<K> {
    key: Key<K>,
    attempt: u32,
    hook: Option<Box<dyn RunHook>>,
}

impl<K> Run<K> {
    /// Builds the guard of a hold. For those who write a [`Scheduler`](crate::Scheduler).
    ///
    /// `attempt` counts from 1: one more than the failures of this key in a row.
    pub fn new(key: K, attempt: u32, hook: Box<dyn RunHook>) -> Self {
        Self { key: Key::Own(key), attempt, hook: Some(hook) }
    }

    /// As [`Run::new`], with a key that the scheduler keeps too.
    pub(crate) fn shared(key: Arc<K>, attempt: u32, hook: Box<dyn RunHook>) -> Self {
        Self { key: Key::Shared(key), attempt, hook: Some(hook) }
    }

    /// The key to work on.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Which try this is: 1 for the first, one more for each failure in a row before it.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Waits until the key is requested again during this run; returns at once if it already was.
    ///
    /// Long work may use it to look again at once. The request is not consumed: the key still runs
    /// again after this run.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost when the future is dropped.
    pub async fn scheduled_again(&self) {
        match &self.hook {
            Some(hook) => hook.scheduled_again().await,
            None => pending().await,
        }
    }

    /// Waits until the hold is lost. Work that goes on after that may overlap with another run.
    ///
    /// A run of the in-memory scheduler is never lost.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn lost(&self) {
        match &self.hook {
            Some(hook) => hook.lost().await,
            None => pending().await,
        }
    }

    /// Ends the run. Never blocks.
    pub fn finish(mut self, outcome: Outcome) {
        self.settle(outcome);
    }

    fn settle(&mut self, outcome: Outcome) {
        if let Some(hook) = self.hook.take() {
            hook.settle(outcome);
        }
    }
}

impl<K> Drop for Run<K> {
    fn drop(&mut self) {
        self.settle(Outcome::Retry);
    }
}

impl<K: fmt::Debug> fmt::Debug for Run<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("key", &*self.key)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
