//! What the tests share: an engine over servers in memory, on the paused clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

pub(crate) use purgatory_sync::testing::{HeldEvent, Reply, Trouble, oid, url};
use purgatory_sync::{
    CloneUrl, Identifier, PassEnded, PurgatorySync, SyncConfig, SyncEvent,
    testing::{MemoryStore, ScriptedFetcher},
};
use tokio::time::{Instant, sleep};

/// An engine, its ports and what it told.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) git: ScriptedFetcher,
    pub(crate) sync: PurgatorySync,
    pub(crate) told: Told,
    pub(crate) began: Instant,
}

/// What an observer was told, and when.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Vec<(Instant, SyncEvent)>>>);

impl Told {
    pub(crate) fn observer(&self) -> Arc<dyn purgatory_sync::Observer> {
        let told = self.clone();
        Arc::new(move |event: &SyncEvent| {
            told.0.lock().unwrap().push((Instant::now(), event.clone()));
        })
    }

    pub(crate) fn all(&self) -> Vec<(Instant, SyncEvent)> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn passes(&self) -> Vec<PassEnded> {
        let ended = |(_, event)| match event {
            SyncEvent::PassEnded(pass) => Some(pass),
            _ => None,
        };
        self.all().into_iter().filter_map(ended).collect()
    }

    /// When each pass of `id` began.
    pub(crate) fn starts(&self, id: &str) -> Vec<Instant> {
        let started = |(at, event)| match event {
            SyncEvent::PassStarted(pass) if pass.identifier.as_str() == id => Some(at),
            _ => None,
        };
        self.all().into_iter().filter_map(started).collect()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|config| config)
    }

    /// With these settings.
    pub(crate) fn with(change: impl FnOnce(SyncConfig) -> SyncConfig) -> Self {
        Self::build(change, |builder| builder)
    }

    pub(crate) fn build(
        change: impl FnOnce(SyncConfig) -> SyncConfig,
        more: impl FnOnce(purgatory_sync::Builder) -> purgatory_sync::Builder,
    ) -> Self {
        Self::over(MemoryStore::new(), ScriptedFetcher::new(), change, more)
    }

    pub(crate) fn over(
        store: MemoryStore,
        git: ScriptedFetcher,
        change: impl FnOnce(SyncConfig) -> SyncConfig,
        more: impl FnOnce(purgatory_sync::Builder) -> purgatory_sync::Builder,
    ) -> Self {
        let told = Told::default();
        let builder = PurgatorySync::builder(Arc::new(store.clone()), Arc::new(git.clone()))
            .config(change(SyncConfig::default()))
            .observer(told.observer());
        Self { store, git, sync: more(builder).spawn(), told, began: Instant::now() }
    }

    /// A state of `id` that waits for these objects arrives from another relay.
    pub(crate) fn state(&self, id: &str, name: &str, oids: &[u64]) {
        let event = HeldEvent::state(name, "main", oids.iter().map(|&number| oid(number)));
        self.store.hold(id, event);
        self.sync.event_held(id, purgatory_sync::Arrival::Synced).unwrap();
    }

    pub(crate) fn announce(&self, id: &str, urls: &[&CloneUrl]) {
        self.store.announce(id, "main", urls.iter().map(|&url| url.clone()));
    }

    /// How long after the start, in milliseconds, each fetch began.
    pub(crate) fn fetch_times(&self) -> Vec<u64> {
        let began = self.began.into_std();
        self.git.fetches().iter().map(|fetch| millis(fetch.began.duration_since(began))).collect()
    }

    /// Waits until nothing is queued.
    pub(crate) async fn idle(&self) {
        wait_for(|| self.sync.queued() == 0 && self.sync.snapshot().is_idle()).await;
    }

    pub(crate) fn state_of(&self, id: &str) -> Option<purgatory_sync::State> {
        let id = Identifier::from(id);
        let all = self.sync.snapshot().identifiers;
        all.into_iter().find(|each| each.identifier == id).map(|each| each.state)
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

/// Lets the paused clock pass until the condition holds; two hours at most.
pub(crate) async fn wait_for(mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(7_200);
    while !condition() {
        assert!(Instant::now() < until, "it did not happen within two hours");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Lets the paused clock pass.
pub(crate) async fn pass(length: Duration) {
    sleep(length).await;
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Uses up the 30 requests that a domain gets in a minute, at once.
pub(crate) async fn fill_window(world: &World, host: &str) {
    let first = 1_000 * (1 + world.git.fetches().len() as u64);
    for number in first..first + 30 {
        let id = format!("filler{number}");
        let server = url(&format!("{host}/filler{number}.git"));
        world.git.serve(&server, [oid(number)]);
        world.announce(&id, &[&server]);
        world.state(&id, &id, &[number]);
    }
    let before = world.git.fetches().len();
    wait_for(|| world.git.fetches().len() == before + 30).await;
    world.idle().await;
}
