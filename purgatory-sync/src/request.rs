use std::{error::Error, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use keyed_debounce::{Debounce, ScheduleError, Scheduled};
use tokio::sync::OwnedSemaphorePermit;
use tracing::warn;

use crate::{Identifier, SyncEvent, board::Ticket, clock, engine::Shared, fetching::with_causes};

/// Why an identifier was not queued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeldError {
    /// As many identifiers are queued as may be. The event is held all the same: the engine asks the
    /// store for what it holds once there is room.
    #[error("the queue is full: {0:?} is taken up once there is room")]
    Full(Identifier),
    /// The engine stops or has stopped. What is held is taken up at the next start.
    #[error("the engine has stopped: {0:?} is taken up at the next start")]
    Stopped(Identifier),
    /// The scheduler failed. The engine asks the store for what it holds later.
    #[error("the scheduler failed to take {identifier:?}")]
    Scheduler {
        /// The identifier that was not queued.
        identifier: Identifier,
        /// What the scheduler said.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// How soon an identifier runs again whose request may have been answered by a pass that began
/// meanwhile. Long, so that a scheduler that is slow to answer has answered by then.
const CONFIRM: Debounce = Debounce::after(Duration::from_secs(30));

type Call = BoxFuture<'static, Result<Scheduled, ScheduleError<Identifier>>>;

/// Asks the scheduler for a run. A scheduler in memory answers at once; where it does not, a task
/// waits for the answer, and what it refuses is asked from the store later.
pub(crate) fn request(
    shared: &Arc<Shared>,
    id: &Identifier,
    debounce: Debounce,
) -> Result<(), HeldError> {
    let mut debounce = debounce;
    loop {
        if shared.stopping.is_cancelled() {
            return Err(HeldError::Stopped(id.clone()));
        }
        let ticket = shared.board.calling(id);
        let mut call = call(shared, id, debounce);
        match (&mut call).now_or_never() {
            Some(answer) => {
                if settle(shared, id, debounce, &ticket, answer)? {
                    return Ok(());
                }
                debounce = CONFIRM;
            }
            None => {
                let Ok(room) = Arc::clone(&shared.calls).try_acquire_owned() else {
                    let full = ScheduleError::Full(id.clone());
                    return settle(shared, id, debounce, &ticket, Err(full)).map(|_| ());
                };
                shared.spawn(wait(Arc::clone(shared), id.clone(), debounce, ticket, call, room));
                return Ok(());
            }
        }
    }
}

fn call(shared: &Arc<Shared>, id: &Identifier, debounce: Debounce) -> Call {
    let (scheduler, key) = (Arc::clone(&shared.scheduler), id.clone());
    let call = async move { scheduler.schedule(key, debounce).await };
    let id = id.clone();
    let caught = AssertUnwindSafe(call).catch_unwind().map(move |result| {
        let panicked = |_| Err(ScheduleError::Backend { key: id, source: "it panicked".into() });
        result.unwrap_or_else(panicked)
    });
    Box::pin(caught)
}

/// Waits for an answer that did not come at once.
async fn wait(
    shared: Arc<Shared>,
    id: Identifier,
    debounce: Debounce,
    ticket: Ticket,
    mut first: Call,
    _room: OwnedSemaphorePermit,
) {
    let (mut ticket, mut debounce) = (ticket, debounce);
    loop {
        let answer = tokio::select! {
            biased;
            answer = &mut first => answer,
            () = shared.stopping.cancelled() => return shared.board.refused(&id),
        };
        match settle(&shared, &id, debounce, &ticket, answer) {
            Ok(true) => return shared.board.wake(&id),
            Ok(false) => {}
            Err(error) => {
                warn!(identifier = id.as_str(), error = %with_causes(&error), "not queued");
                return;
            }
        }
        (ticket, debounce) = (shared.board.calling(&id), CONFIRM);
        first = call(&shared, &id, debounce);
    }
}

/// Notes the answer. False: a pass began meanwhile, and the request has to be made again.
fn settle(
    shared: &Shared,
    id: &Identifier,
    debounce: Debounce,
    ticket: &Ticket,
    answer: Result<Scheduled, ScheduleError<Identifier>>,
) -> Result<bool, HeldError> {
    let error = match answer {
        Ok(_) => {
            let due = clock::now().checked_add(debounce.max_wait);
            return Ok(shared.board.accepted(id, ticket, due));
        }
        Err(error) => error,
    };
    shared.board.refused(id);
    match error {
        ScheduleError::Closed(_) => Err(HeldError::Stopped(id.clone())),
        ScheduleError::Full(_) => {
            shared.restore.overflowed();
            shared.tell(SyncEvent::QueueFull(id.clone()));
            Err(HeldError::Full(id.clone()))
        }
        ScheduleError::Backend { source, .. } => {
            shared.restore.overflowed();
            Err(HeldError::Scheduler { identifier: id.clone(), source })
        }
        _ => Err(HeldError::Scheduler { identifier: id.clone(), source: "unknown".into() }),
    }
}
