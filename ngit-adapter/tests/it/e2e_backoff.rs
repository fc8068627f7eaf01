//! The whole row of delays after refused connections, with the real store, the real git client and a port at which nobody
//! listens.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    time::Duration,
};

use ngit_adapter::{
    git::{Repositories, SmartHttpFetcher},
    nip34::{EventLimits, VerifiedEvent},
    store::{Arrival, NostrEventStore},
};
use nostr::event::Event;
use nostr_memory::MemoryDatabase;
use purgatory_sync::{FetchErrorKind, FetchOutcome, Oid, PurgatorySync, SyncConfig, SyncEvent};
use tempfile::TempDir;
use tokio::{sync::watch, time::Instant};

use crate::{support_events::Person, support_server::installed_git};

/// When each attempt began, and which in a row it was.
type Attempts = Arc<Mutex<Vec<(Instant, u32)>>>;

/// The engine over the real ports, with a repository whose only URL is refused.
struct World {
    store: NostrEventStore,
    engine: PurgatorySync,
    attempts: Attempts,
    fetches: watch::Receiver<usize>,
    owner: Person,
    _folder: TempDir,
}

impl World {
    async fn new(config: SyncConfig) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let repositories = Repositories::open(folder.path().join("git")).expect("a new folder");
        let fetcher = SmartHttpFetcher::builder(repositories.clone())
            .git(installed_git())
            .allow_private_networks(true)
            .build()
            .await
            .expect("git is here");
        let database = Arc::new(MemoryDatabase::unbounded());
        let store = NostrEventStore::builder(database, Arc::new(repositories));
        let store = store.build().await.expect("nothing is read");
        let attempts = Attempts::default();
        let (ended, fetches) = watch::channel(0);
        let engine = PurgatorySync::builder(Arc::new(store.clone()), Arc::new(fetcher))
            .config(config)
            .observer(Arc::new(observer(Arc::clone(&attempts), ended)))
            .spawn();
        let owner = Person::new(1);
        let world = Self { store, engine, attempts, fetches, owner, _folder: folder };
        let url = format!("http://{}/x.git", refused());
        world.hold(world.owner.announcement("lantern", &[&url])).await;
        world.take(world.wanting(1)).await;
        world
    }

    /// A pull request for something that is nowhere.
    fn wanting(&self, number: u8) -> Event {
        let tip = Oid::sha1([number; 20]);
        Person::new(2).pull_request(&self.owner, "lantern", tip, &[])
    }

    async fn hold(&self, event: Event) {
        let event = VerifiedEvent::check(event, &EventLimits::default()).expect("it is signed");
        self.store.admit(event, Arrival::Synced).await.expect("there is room");
    }

    async fn take(&self, event: Event) {
        self.hold(event).await;
        self.engine.event_held("lantern", Arrival::Synced).expect("there is room");
    }

    /// Waits until so many requests have ended.
    async fn fetched(&mut self, count: usize) {
        self.fetches.wait_for(|fetches| *fetches >= count).await.expect("the engine runs");
    }

    fn attempts(&self) -> Vec<(Instant, u32)> {
        self.attempts.lock().expect("nobody panics with it").clone()
    }

    fn between(&self) -> Vec<Duration> {
        self.attempts().windows(2).map(|two| two[1].0 - two[0].0).collect()
    }
}

fn observer(attempts: Attempts, ended: watch::Sender<usize>) -> impl Fn(&SyncEvent) {
    move |event| match event {
        SyncEvent::PassStarted(pass) => {
            let mut attempts = attempts.lock().expect("nobody panics with it");
            attempts.push((Instant::now(), pass.attempt));
        }
        SyncEvent::FetchEnded(fetch) => {
            assert_eq!(fetch.outcome, FetchOutcome::Failed(FetchErrorKind::Network));
            ended.send_modify(|ended| *ended += 1);
        }
        _ => {}
    }
}

/// An address at which nobody listens.
fn refused() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address")
}

/// Integration 3, D7, D8, D17: with the default settings, on a clock that jumps: 20, 40, 80, 120, 120 s, and a new event
/// begins the row anew.
#[tokio::test(start_paused = true)]
async fn refused_connections_are_tried_after_20_40_80_120_and_120_seconds() {
    let mut world = World::new(SyncConfig::default()).await;
    world.fetched(6).await;
    let seconds = |between: &[Duration]| between.iter().map(Duration::as_secs).collect::<Vec<_>>();
    assert_eq!(seconds(&world.between()), [20, 40, 80, 120, 120]);

    world.take(world.wanting(2)).await;
    world.fetched(9).await;
    let all = seconds(&world.between());
    assert_eq!((&all[..5], &all[6..]), (&[20, 40, 80, 120, 120][..], &[20, 40][..]));
    // Half a second later, or with the next round.
    assert!(all[5] <= 1, "{all:?}");
    let attempts: Vec<_> = world.attempts().into_iter().map(|(_, attempt)| attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5, 6, 1, 2, 3]);
    world.engine.shutdown().await;
}

/// Integration 3, D7, D8: the same row on the real clock, a hundred times as fast. A busy machine may only make it slower.
#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_are_tried_ever_more_slowly_in_real_time() {
    let ms = Duration::from_millis;
    let config = SyncConfig::default().with_loop_interval(ms(1)).expect("it is allowed");
    let config = config.with_synced_delay(ms(5)).expect("it is allowed");
    let config = config.with_backoff_initial(ms(200)).expect("it is allowed");
    let mut world = World::new(config.with_backoff_max(ms(1_200)).expect("it is allowed")).await;
    world.fetched(6).await;
    let between = world.between();
    for (real, least) in between.iter().zip([200, 400, 800, 1_200, 1_200]) {
        assert!(*real >= ms(least), "{between:?}");
    }
    world.take(world.wanting(2)).await;
    world.fetched(8).await;
    let attempts: Vec<_> = world.attempts().into_iter().map(|(_, attempt)| attempt).collect();
    assert_eq!(attempts[..8], [1, 2, 3, 4, 5, 6, 1, 2]);
    world.engine.shutdown().await;
}
