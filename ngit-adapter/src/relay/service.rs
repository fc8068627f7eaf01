use std::{error::Error, fmt, path::Path, sync::Arc, time::Duration};

use nostr_database::NostrDatabase;
use nostr_lmdb::NostrLmdb;
use nostr_memory::MemoryDatabase;
use purgatory_sync::{GitFetcher, PurgatorySync, SyncEvent, domain_throttle::DomainThrottle};
use tokio::{net::TcpListener, sync::watch, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Backend, RelayConfig,
    front::Front,
    hub::Hub,
    listener, metrics, missing,
    peers::{self, Dialer, PeerSettings},
    recent::{Recent, Teller},
    shared::{Parts, Shared},
    upkeep,
};
use crate::{
    RefKeeper,
    git::{self, AddressPolicy, Repositories, SmartHttpFetcher, SystemLookup},
    store::NostrEventStore,
};

/// A relay and git server on one port: nostr over websocket, git over smart HTTP, `/metrics`, `/healthz`, and a
/// status page.
///
/// It holds git events until their data is here, hunts for it, and serves both then.
pub struct Relay {
    shared: Arc<Shared>,
    peers: (PeerSettings, Dialer),
    render: Option<Arc<dyn Fn() -> String + Send + Sync>>,
}

/// How long connections have to end at a stop, beyond what requests have.
const PATIENCE: Duration = Duration::from_secs(8);

/// How many threads may read the database at once: each that waits for it may be one, and there are 512 at most.
const MAX_READERS: u32 = 1_024;

impl Relay {
    /// Opens the folders, the database and what is held, and begins to look for what is missing.
    ///
    /// # Errors
    ///
    /// [`RelayError`] says what cannot be used: a folder, the database, git.
    ///
    /// # Cancel safety
    ///
    /// A dropped call leaves nothing running.
    pub async fn open(config: RelayConfig) -> Result<Self, RelayError> {
        metrics::describe();
        let git_data = config.git_data.clone();
        let repositories = tokio::task::spawn_blocking(move || Repositories::open(git_data))
            .await
            .map_err(RelayError::because("the folder of repositories was not opened"))?
            .map_err(RelayError::because("the repositories cannot be used"))?;
        let fetcher = SmartHttpFetcher::builder(repositories.clone())
            .limits(config.git)
            .allow_private_networks(config.allow_private_networks)
            .build()
            .await
            .map_err(RelayError::because("git data cannot be fetched"))?;
        let dialer = dialer(config.allow_private_networks)?;
        let (hub, recent) = (Hub::new(), Recent::default());
        let announced = watch::Sender::new(0);
        let teller =
            Teller { hub: hub.clone(), recent: recent.clone(), announced: announced.clone() };
        let store = open_store(&config, Arc::new(repositories), Arc::new(teller)).await?;
        let throttle = Arc::new(DomainThrottle::builder().limits(config.sync.limits()).build());
        let sync = spawn_engine(&config, &store, &fetcher, &throttle);
        let parts = Parts {
            store,
            fetcher,
            sync,
            throttle,
            hub,
            recent,
            ours: config.domain,
            owner: config.owner,
            limits: config.limits,
            git_limits: config.git,
            announced,
        };
        let peers = (config.peers, dialer);
        Ok(Self { shared: Arc::new(Shared::new(parts)), peers, render: None })
    }

    /// Serves this text at `/metrics`: what an exporter of the `metrics` facade collected, in Prometheus' format.
    #[must_use]
    pub fn with_metrics(self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { render: Some(Arc::new(render)), ..self }
    }

    /// Serves on `listener` until `stop` is done, then ends: connections are closed, requests and fetches have some
    /// seconds to end, and what is held is on the disk.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, what is on is cut off. What was acknowledged is on the disk.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let Self { shared, peers: (settings, dialer), render } = self;
        let (stopping, tasks) = (CancellationToken::new(), TaskTracker::new());
        let _stops_with_us = stopping.clone().drop_guard();
        tasks.spawn(upkeep::run(Arc::clone(&shared), stopping.clone()));
        tasks.spawn(missing::run(Arc::clone(&shared), settings.again_every, stopping.clone()));
        let peers =
            peers::run(Arc::clone(&shared), settings, dialer, stopping.clone(), tasks.clone());
        tasks.spawn(peers);
        let front = Front::new(Arc::clone(&shared), stopping.clone(), tasks.clone(), render);
        let most = usize::try_from(shared.limits().connections.get()).unwrap_or(usize::MAX);
        let accepting = listener::accept(listener, front.into_router(), most, &stopping, &tasks);
        tokio::select! {
            () = accepting => {}
            () = stop => {}
        }
        stopping.cancel();
        tasks.close();
        // The engine ends its fetches while the connections end.
        let ((), ended) = futures::join!(shared.sync().shutdown(), timeout(PATIENCE, tasks.wait()));
        if ended.is_err() {
            tracing::warn!("some connections did not end in time and are cut off");
        }
        shared.fetcher().cleaned_up().await;
        shared.cleaned_up().await;
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("shared", &self.shared).finish_non_exhaustive()
    }
}

async fn open_store(
    config: &RelayConfig,
    repositories: Arc<Repositories>,
    teller: Arc<Teller>,
) -> Result<NostrEventStore, RelayError> {
    let database = open_database(config.backend, &config.relay_data).await?;
    let refs: Arc<dyn RefKeeper> = repositories;
    let mut builder =
        NostrEventStore::builder(database, refs).observer(teller).config(config.store.clone());
    // With a database that forgets, remembering what is held would be half of the truth.
    if config.backend != Backend::Memory {
        builder = builder.journal(config.relay_data.join("held.journal"));
    }
    builder.build().await.map_err(RelayError::because("what is held cannot be read"))
}

fn dialer(allow_private_networks: bool) -> Result<Dialer, RelayError> {
    let tls = git::tls(&[]).map_err(RelayError::because("TLS cannot be set up"))?;
    let policy =
        if allow_private_networks { AddressPolicy::any() } else { AddressPolicy::public_only() };
    Ok(Dialer::new(Arc::new(SystemLookup), policy, Arc::new(tls)))
}

async fn open_database(
    backend: Backend,
    folder: &Path,
) -> Result<Arc<dyn NostrDatabase>, RelayError> {
    if backend == Backend::Memory {
        return Ok(Arc::new(MemoryDatabase::unbounded()));
    }
    let path = folder.join("lmdb");
    let failed = || format!("the database in {} cannot be opened", path.display());
    std::fs::create_dir_all(&path).map_err(RelayError::because(failed()))?;
    let builder = NostrLmdb::builder(&path).max_readers(MAX_READERS);
    let database = builder.build().await.map_err(RelayError::because(failed()))?;
    Ok(Arc::new(database))
}

fn spawn_engine(
    config: &RelayConfig,
    store: &NostrEventStore,
    fetcher: &SmartHttpFetcher,
    throttle: &Arc<DomainThrottle>,
) -> PurgatorySync {
    let noted = store.clone();
    let observer = move |event: &SyncEvent| {
        if let SyncEvent::FetchEnded(fetch) = event {
            noted.fetch_ended(&fetch.identifier);
            if fetch.received > 0 {
                noted.data_arrived(&fetch.identifier);
            }
        }
    };
    let fetcher: Arc<dyn GitFetcher> = Arc::new(fetcher.clone());
    PurgatorySync::builder(Arc::new(store.clone()), fetcher)
        .throttle(throttle.clone())
        .config(config.sync.clone())
        .our_domains([config.domain.clone()])
        .observer(Arc::new(observer))
        .spawn()
}

/// Why a relay cannot be opened: what cannot be used, and in [`source`](Error::source) why.
#[derive(Debug)]
pub struct RelayError {
    what: String,
    source: Box<dyn Error + Send + Sync>,
}

impl RelayError {
    fn because<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self { what, source: source.into() }
    }
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for RelayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
