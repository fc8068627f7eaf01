use std::{error::Error, fmt, sync::Arc};

use async_trait::async_trait;

use crate::{Debounce, Run};

/// A queue of keys, each of which is run once after it goes quiet and never twice at once.
///
/// This is the port: [`KeyedDebouncer`](crate::KeyedDebouncer) implements it in memory, others may
/// implement it over a store of their own. Code that takes work from a queue takes a
/// `&dyn Scheduler<K>`.
///
/// # What an implementation owes
///
/// - A request that was answered with `Ok` is followed by a run of its key that begins after it,
///   no later than its `max_wait` (plus the wait for a caller of [`next`](Scheduler::next)), or as
///   the run ends that is on at that time.
/// - Two runs of one key never overlap. A backend with leases keeps this within the lease: it
///   renews the lease while the [`Run`] lives and wakes [`Run::lost`] when it cannot.
/// - After a crash of the process a durable backend hands out again what was running; an in-memory
///   one has lost everything, and its user schedules anew.
///
/// All methods may be called at any time from any task, also at the same time.
#[async_trait]
pub trait Scheduler<K>: Send + Sync {
    /// Asks for a run of `key`.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Full`] if the key is new and there is no room, [`ScheduleError::Closed`]
    /// after [`close`](Scheduler::close), [`ScheduleError::Backend`] if the store failed. Each
    /// gives the key back. After an error the request does not count.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the request may or may not count.
    async fn schedule(&self, key: K, debounce: Debounce) -> Result<Scheduled, ScheduleError<K>>;

    /// Waits for the next key that is due and takes hold of it.
    ///
    /// # Errors
    ///
    /// [`SchedulerError::Closed`] after [`close`](Scheduler::close): no run will come any more.
    /// [`SchedulerError::Backend`] if the store failed: the caller may try again.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a key that did not reach the caller stays ready, in its place, and counts no failure.
    async fn next(&self) -> Result<Run<K>, SchedulerError>;

    /// Forgets what waits for `key`, and a request made during its run. The run itself goes on, and
    /// without a later request its outcome is dropped. Says whether there was anything to forget.
    ///
    /// # Errors
    ///
    /// [`SchedulerError::Backend`] if the store failed. An in-memory scheduler never fails here.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the key may or may not be forgotten.
    async fn cancel(&self, key: &K) -> Result<bool, SchedulerError>;

    /// Stops hand-outs and wakes everybody who waits in [`next`](Scheduler::next). Calling it twice is fine.
    /// Runs that are on go on.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the scheduler may or may not be closed. Call it again.
    async fn close(&self);
}

/// A shared scheduler is a scheduler.
#[async_trait]
impl<K, S> Scheduler<K> for Arc<S>
where
    K: Send + Sync + 'static,
    S: Scheduler<K> + ?Sized,
{
    async fn schedule(&self, key: K, debounce: Debounce) -> Result<Scheduled, ScheduleError<K>> {
        (**self).schedule(key, debounce).await
    }

    async fn next(&self) -> Result<Run<K>, SchedulerError> {
        (**self).next().await
    }

    async fn cancel(&self, key: &K) -> Result<bool, SchedulerError> {
        (**self).cancel(key).await
    }

    async fn close(&self) {
        (**self).close().await;
    }
}

/// What a request did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheduled {
    /// The key was not known. It waits now.
    New,
    /// The key was waiting, ready or in backoff. The request joined what was there.
    Joined,
    /// The key is running. It runs again for this request.
    AfterRun,
}

/// Why a request was refused. Gives the key back.
#[non_exhaustive]
pub enum ScheduleError<K> {
    /// The key is new and the scheduler holds as many as it may.
    Full(K),
    /// The scheduler was closed.
    Closed(K),
    /// The store behind the scheduler failed.
    Backend {
        /// The key that was not scheduled.
        key: K,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl<K> ScheduleError<K> {
    /// Takes the key back.
    pub fn into_key(self) -> K {
        match self {
            Self::Full(key) | Self::Closed(key) | Self::Backend { key, .. } => key,
        }
    }
}

// By hand, so that an error can be printed whatever the key is.
impl<K> fmt::Debug for ScheduleError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Closed(_) => f.write_str("Closed(..)"),
            Self::Backend { source, .. } => {
                f.debug_struct("Backend").field("source", source).finish_non_exhaustive()
            }
        }
    }
}

impl<K> fmt::Display for ScheduleError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the scheduler is full: it holds as many keys as its capacity allows",
            Self::Closed(_) => "the scheduler is closed",
            Self::Backend { .. } => "the scheduler's store failed to take the request",
        })
    }
}

impl<K> Error for ScheduleError<K> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Backend { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

/// Why a scheduler gave no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// The scheduler was closed: nothing will come any more.
    #[error("the scheduler is closed")]
    Closed,
    /// The store behind the scheduler failed.
    #[error("the scheduler's store failed")]
    Backend(#[source] Box<dyn Error + Send + Sync>),
}
