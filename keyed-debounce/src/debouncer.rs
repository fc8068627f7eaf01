use std::{fmt, future::Future, hash::Hash, num::NonZeroUsize, sync::Arc};

use crate::{
    Builder, Counts, Debounce, Event, KeyState, Run, ScheduleError, Scheduled, Scheduler,
    SchedulerError, driver::drive, shared::Owner,
};
use async_trait::async_trait;

/// The scheduler in memory.
///
/// A handle: clones share one queue. The queue needs no task of its own. It lives as long as a handle
/// or a [`Run`] does, and those who wait in [`next`](Self::next) or [`run`](Self::run) keep its one
/// timer.
///
/// The rules it keeps are listed by name at the [crate root](crate).
pub struct KeyedDebouncer<K> {
    pub(crate) shared: Owner<K>,
    pub(crate) max_parallel: NonZeroUsize,
}

impl<K: Hash + Eq + Send + Sync + 'static> KeyedDebouncer<K> {
    /// A debouncer without limits that backs off as [`Exponential::DEFAULT`](crate::Exponential::DEFAULT) says.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Sets up a debouncer.
    pub fn builder() -> Builder<K> {
        Builder::new()
    }

    /// Requests a run of `key`. From any thread, inside a runtime or not; never waits for anything
    /// but a short lock.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Full`] if the key is new and there is no room, [`ScheduleError::Closed`]
    /// after [`close`](Self::close) or [`drain`](Self::drain). Both give the key back, and nothing
    /// has changed. It is never [`ScheduleError::Backend`].
    ///
    /// # Panics
    ///
    /// If the key's `Hash` or `Eq` does; nothing has changed then. Those two must not call the
    /// debouncer.
    pub fn schedule(&self, key: K, debounce: Debounce) -> Result<Scheduled, ScheduleError<K>> {
        self.shared.schedule(key, debounce)
    }

    /// Forgets what waits for `key`, and a request made during its run. The run itself goes on, and
    /// without a later request its outcome is dropped. Says whether there was anything to forget.
    pub fn cancel(&self, key: &K) -> bool {
        self.shared.cancel(key)
    }

    /// What is known of `key`; `None` if it is absent.
    pub fn state(&self, key: &K) -> Option<KeyState> {
        self.shared.state_of(key)
    }

    /// Runs `handler` for each key as it becomes due, several keys in parallel, as many as
    /// [`Builder::max_parallel`] allows. Returns when the debouncer is closed or drained and
    /// all its handlers have ended.
    ///
    /// The handler ends its run with [`Run::finish`]. A handler that panics, or forgets to, has
    /// failed: a [`Outcome::Retry`](crate::Outcome::Retry) for that key alone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the handlers that are on; their keys are retried.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with a time driver.
    pub async fn run<F, Fut>(&self, handler: F)
    where
        F: Fn(Run<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        // In memory nothing but closing ends it.
        let _closed = drive(self, self.max_parallel, handler).await;
    }
}

impl<K: Send + Sync + 'static> KeyedDebouncer<K> {
    /// Stops hand-outs, refuses requests and wakes everybody who waits in [`next`](Self::next).
    /// Calling it twice is fine. Runs that are on go on.
    pub fn close(&self) {
        self.shared.change(|state, _| state.schedule.close());
        self.shared.observe(&Event::Closed);
    }

    /// How many keys are in which state, computed from the state of each.
    ///
    /// Looks at all keys, some thousands at a time so that others get at the lock in between: with
    /// more keys than that the numbers are those of slightly different moments.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// How many keys are not absent. Does not look at each.
    pub fn len(&self) -> usize {
        self.shared.lock().schedule.len()
    }

    /// Whether all keys are absent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[async_trait]
impl<K: Hash + Eq + Send + Sync + 'static> Scheduler<K> for KeyedDebouncer<K> {
    async fn schedule(&self, key: K, debounce: Debounce) -> Result<Scheduled, ScheduleError<K>> {
        Self::schedule(self, key, debounce)
    }

    async fn next(&self) -> Result<Run<K>, SchedulerError> {
        Self::next(self).await
    }

    async fn cancel(&self, key: &K) -> Result<bool, SchedulerError> {
        Ok(Self::cancel(self, key))
    }

    async fn close(&self) {
        Self::close(self);
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> Default for KeyedDebouncer<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Clone for KeyedDebouncer<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), max_parallel: self.max_parallel }
    }
}

impl<K> fmt::Debug for KeyedDebouncer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedDebouncer")
            .field("schedule", &self.shared.lock().schedule)
            .field("max_parallel", &self.max_parallel)
            .finish_non_exhaustive()
    }
}
