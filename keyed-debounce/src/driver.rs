use std::{future::Future, num::NonZeroUsize, sync::Arc};

use tokio::task::JoinSet;

use crate::{Run, Scheduler, SchedulerError};

/// Runs `handler` for each key that `scheduler` hands out, at most `max_parallel` at once, each in a
/// task of its own.
///
/// The push side of any [`Scheduler`]; [`KeyedDebouncer::run`](crate::KeyedDebouncer::run) is this.
/// The handler ends its run with [`Run::finish`]. A handler that panics, or forgets to, drops its run:
/// that key is retried, others do not notice.
///
/// Returns `Ok` when the scheduler is closed and all handlers have ended.
///
/// # Errors
///
/// [`SchedulerError::Backend`] when the scheduler's store failed. All handlers have ended then, too,
/// and the caller may start again.
///
/// # Cancel safety
///
/// Dropping the future aborts the handlers that are on; their keys are retried.
pub async fn drive<K, S, F, Fut>(
    scheduler: &S,
    max_parallel: NonZeroUsize,
    handler: F,
) -> Result<(), SchedulerError>
where
    K: Send + Sync + 'static,
    S: Scheduler<K> + ?Sized,
    F: Fn(Run<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let handler = Arc::new(handler);
    let mut handlers = JoinSet::new();
    let end = loop {
        tokio::select! {
            // What a handler threw was reported by the panic hook, and its run is settled.
            Some(_ended) = handlers.join_next() => {}
            next = scheduler.next(), if handlers.len() < max_parallel.get() => match next {
                Ok(run) => {
                    let handler = Arc::clone(&handler);
                    handlers.spawn(async move { handler(run).await });
                }
                Err(SchedulerError::Closed) => break Ok(()),
                Err(failed) => break Err(failed),
            },
        }
    };
    while handlers.join_next().await.is_some() {}
    end
}
