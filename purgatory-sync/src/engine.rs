use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use domain_throttle::Throttle;
use futures::FutureExt;
use keyed_debounce::{Run, Scheduler, SchedulerError};
use tokio::{runtime::Handle, select, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{error, warn};

use crate::{
    EventStore, GitFetcher, Identifier, Observer, OurDomain, SyncConfig, SyncEvent, board::Board,
    clock, lines::Lines, metrics::DomainLabels, pass_task, restore::Restore,
};

/// How long the engine waits before it asks a scheduler again that failed.
const SCHEDULER_REST: Duration = Duration::from_secs(1);

/// How long cancelled tasks have to be gone. Only one that blocks its thread needs longer.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// All that the tasks of one engine share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn EventStore>,
    pub(crate) fetcher: Arc<dyn GitFetcher>,
    pub(crate) scheduler: Arc<dyn Scheduler<Identifier>>,
    pub(crate) throttle: Arc<dyn Throttle>,
    pub(crate) config: SyncConfig,
    pub(crate) ours: Vec<OurDomain>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) board: Board,
    pub(crate) lines: Lines,
    pub(crate) labels: DomainLabels,
    pub(crate) restore: Restore,
    /// Every fetch that is on holds one of these.
    pub(crate) slots: Arc<Semaphore>,
    /// Every call of the scheduler that has not returned holds one of these.
    pub(crate) calls: Arc<Semaphore>,
    /// Waits end, no fetch begins.
    pub(crate) stopping: CancellationToken,
    /// Running fetches end.
    pub(crate) abort: CancellationToken,
    /// Everything has ended.
    pub(crate) ended: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) runtime: Handle,
}

impl Shared {
    /// Tells the observer. Never called with a lock held.
    pub(crate) fn tell(&self, event: SyncEvent) {
        if let Some(observer) = &self.observer {
            let told = catch_unwind(AssertUnwindSafe(|| observer.observe(&event)));
            if told.is_err() {
                error!("the observer panicked");
            }
        }
    }

    /// How long the default scheduler waits after this many failures in a row.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let initial = self.config.backoff_initial();
        initial.saturating_mul(1 << doublings).min(self.config.backoff_max().max(initial))
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(task, &self.runtime);
    }
}

/// Starts the tasks of the engine.
pub(crate) fn start(shared: &Arc<Shared>) {
    shared.spawn(dispatch(Arc::clone(shared)));
    shared.spawn(crate::restore::keep(Arc::clone(shared)));
    shared.runtime.spawn(supervise(Arc::clone(shared)));
}

/// Hands every run of the scheduler to a task of its own.
async fn dispatch(shared: Arc<Shared>) {
    loop {
        let next = AssertUnwindSafe(async { shared.scheduler.next().await }).catch_unwind();
        let next = select! {
            biased;
            () = shared.stopping.cancelled() => return,
            next = next => next,
        };
        match next {
            Ok(Ok(run)) => begin(&shared, run),
            Ok(Err(SchedulerError::Closed)) => {
                if !shared.stopping.is_cancelled() {
                    warn!("the scheduler was closed from outside: the engine stops");
                    shared.stopping.cancel();
                }
                return;
            }
            Ok(Err(failure)) => {
                warn!(error = %crate::fetching::with_causes(&failure), "the scheduler failed");
                rest(&shared).await;
            }
            Err(_) => {
                error!("the scheduler panicked");
                rest(&shared).await;
            }
        }
    }
}

fn begin(shared: &Arc<Shared>, run: Run<Identifier>) {
    shared.spawn(pass_task::run(Arc::clone(shared), run));
}

async fn rest(shared: &Shared) {
    select! {
        () = shared.stopping.cancelled() => {}
        () = clock::pause(SCHEDULER_REST) => {}
    }
}

/// Waits for the end and brings it about: waits end at once, fetches have the grace.
async fn supervise(shared: Arc<Shared>) {
    shared.stopping.cancelled().await;
    let grace = shared.config.shutdown_grace();
    let close = AssertUnwindSafe(async { shared.scheduler.close().await }).catch_unwind();
    let all = async {
        if close.await.is_err() {
            error!("the scheduler panicked");
        }
        shared.tasks.close();
        shared.tasks.wait().await;
    };
    let in_time = select! {
        biased;
        () = all => true,
        () = clock::pause(grace) => false,
    };
    if !in_time {
        shared.abort.cancel();
        shared.tasks.close();
        select! {
            biased;
            () = shared.tasks.wait() => {}
            () = clock::pause(ABORT_GRACE) => error!("a task did not end: it blocks its thread"),
        }
    }
    shared.board.clear();
    shared.ended.cancel();
}
