use std::{fmt, sync::Arc};

use domain_throttle::Throttle;
use keyed_debounce::Scheduler;
use tokio::{runtime::Handle, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    EventStore, GitFetcher, Identifier, Observer, OurDomain, PurgatorySync, SyncConfig,
    board::Board,
    defaults,
    engine::{self, Shared},
    lines::Lines,
    metrics::{self, DomainLabels},
    restore::Restore,
};

/// Puts an engine together. Made by [`PurgatorySync::builder`].
#[must_use = "nothing runs before `spawn`"]
pub struct Builder {
    store: Arc<dyn EventStore>,
    fetcher: Arc<dyn GitFetcher>,
    scheduler: Option<Arc<dyn Scheduler<Identifier>>>,
    throttle: Option<Arc<dyn Throttle>>,
    config: SyncConfig,
    ours: Vec<OurDomain>,
    observer: Option<Arc<dyn Observer>>,
}

impl Builder {
    pub(crate) fn new(store: Arc<dyn EventStore>, fetcher: Arc<dyn GitFetcher>) -> Self {
        Self {
            store,
            fetcher,
            scheduler: None,
            throttle: None,
            config: SyncConfig::default(),
            ours: Vec::new(),
            observer: None,
        }
    }

    /// Queues identifiers in another scheduler than the one in memory. The engine closes it when it
    /// stops, and takes every key of it.
    ///
    /// Its capacity, rounds and backoff are then its own: [`SyncConfig`] only says what the metrics and
    /// the snapshot tell of the backoff.
    pub fn scheduler(mut self, scheduler: Arc<dyn Scheduler<Identifier>>) -> Self {
        self.scheduler = Some(scheduler);
        self
    }

    /// Asks another throttle than one in memory with the limits of the settings. It may be shared
    /// with whatever else asks the same servers.
    pub fn throttle(mut self, throttle: Arc<dyn Throttle>) -> Self {
        self.throttle = Some(throttle);
        self
    }

    /// Sets the settings.
    pub fn config(mut self, config: SyncConfig) -> Self {
        self.config = config;
        self
    }

    /// Names this service itself, which is never asked.
    pub fn our_domains(mut self, ours: impl IntoIterator<Item = OurDomain>) -> Self {
        self.ours.extend(ours);
        self
    }

    /// Tells this observer what happens.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Starts the engine. It queues at once what the store holds, spread out.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime whose timer is on.
    pub fn spawn(self) -> PurgatorySync {
        metrics::describe();
        let config = self.config;
        let shared = Arc::new(Shared {
            store: self.store,
            fetcher: self.fetcher,
            scheduler: self.scheduler.unwrap_or_else(|| defaults::scheduler(&config)),
            throttle: self.throttle.unwrap_or_else(|| defaults::throttle(&config)),
            ours: self.ours,
            observer: self.observer,
            board: Board::default(),
            lines: Lines::default(),
            labels: DomainLabels::default(),
            restore: Restore::default(),
            slots: Arc::new(Semaphore::new(config.max_fetches())),
            calls: Arc::new(Semaphore::new(config.max_queued())),
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
            config,
        });
        engine::start(&shared);
        PurgatorySync::over(shared)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("our_domains", &self.ours)
            .finish_non_exhaustive()
    }
}
