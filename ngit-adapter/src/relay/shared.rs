use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use nostr::{event::Kind, filter::Filter, key::PublicKey};
use nostr_database::NostrDatabase;
use purgatory_sync::{
    EventStore, GitFetcher, Identifier, Oid, OurDomain, PurgatorySync,
    domain_throttle::DomainThrottle,
};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio_util::task::TaskTracker;

use super::{
    hub::Hub,
    limits::{MAX_ALL_RECONCILIATIONS, MAX_QUERIES, RelayLimits},
    peers::Board,
    recent::Recent,
};
use crate::{
    RepositoryId,
    git::{Limits, Repositories, SmartHttpFetcher},
    nip34,
    store::NostrEventStore,
};

/// What all connections and requests of one relay have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    parts: Parts,
    queries: Semaphore,
    reconciliations: Arc<Semaphore>,
    removals: TaskTracker,
    peers: Board,
}

/// What a relay is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) store: NostrEventStore,
    pub(super) fetcher: SmartHttpFetcher,
    pub(super) sync: PurgatorySync,
    pub(super) throttle: Arc<DomainThrottle>,
    pub(super) hub: Hub,
    pub(super) recent: Recent,
    pub(super) ours: OurDomain,
    pub(super) owner: Option<PublicKey>,
    pub(super) limits: RelayLimits,
    pub(super) git_limits: Limits,
    /// How often the announcements changed.
    pub(super) announced: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            parts,
            queries: Semaphore::new(MAX_QUERIES),
            reconciliations: Arc::new(Semaphore::new(MAX_ALL_RECONCILIATIONS)),
            removals: TaskTracker::new(),
            peers: Board::default(),
        }
    }

    pub(crate) fn store(&self) -> &NostrEventStore {
        &self.parts.store
    }

    /// What is served.
    pub(crate) fn database(&self) -> &dyn NostrDatabase {
        &**self.parts.store.database()
    }

    pub(crate) fn fetcher(&self) -> &SmartHttpFetcher {
        &self.parts.fetcher
    }

    pub(crate) fn repositories(&self) -> &Repositories {
        self.parts.fetcher.repositories()
    }

    pub(crate) fn sync(&self) -> &PurgatorySync {
        &self.parts.sync
    }

    pub(crate) fn throttle(&self) -> &DomainThrottle {
        &self.parts.throttle
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.parts.hub
    }

    pub(super) fn recent(&self) -> &Recent {
        &self.parts.recent
    }

    /// How it stands with the peers.
    pub(super) fn peers(&self) -> &Board {
        &self.peers
    }

    /// Notes that an announcement came, or that one may have gone.
    pub(super) fn announcements_changed(&self) {
        self.parts.announced.send_modify(|version| *version += 1);
    }

    /// How often the announcements changed.
    pub(super) fn announced_version(&self) -> u64 {
        *self.parts.announced.borrow()
    }

    pub(super) fn announced_changes(&self) -> watch::Receiver<u64> {
        self.parts.announced.subscribe()
    }

    /// The name of this service.
    pub(crate) fn ours(&self) -> &OurDomain {
        &self.parts.ours
    }

    pub(crate) fn owner(&self) -> Option<&PublicKey> {
        self.parts.owner.as_ref()
    }

    pub(crate) fn limits(&self) -> &RelayLimits {
        &self.parts.limits
    }

    pub(crate) fn most_results(&self) -> usize {
        as_usize(self.parts.limits.results.get())
    }

    pub(crate) fn most_subscriptions(&self) -> usize {
        as_usize(self.parts.limits.subscriptions.get())
    }

    pub(crate) fn most_reconciled(&self) -> usize {
        as_usize(self.parts.limits.reconciled.get())
    }

    pub(crate) fn reconciliations(&self) -> &Arc<Semaphore> {
        &self.reconciliations
    }

    /// Waits for its turn at the database.
    pub(crate) async fn query_turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.queries.acquire().await.ok()
    }

    /// Tells the engine that something changed. It may be full or stopping: it looks by itself then.
    pub(crate) fn look_again(&self, identifier: &Identifier) {
        if let Err(error) = self.sync().changed(identifier.clone()) {
            tracing::debug!(identifier = identifier.as_str(), %error, "not queued now");
        }
    }

    /// What held events of an identifier want and is here.
    pub(crate) async fn wanted_here(&self, identifier: &Identifier) -> Result<Vec<Oid>, LookError> {
        let needs = self.store().needs(identifier).await?;
        let wanted: BTreeSet<_> = needs.wants.into_iter().flat_map(|want| want.oids).collect();
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        let missing: HashSet<_> =
            self.fetcher().missing(identifier, &wanted).await?.into_iter().collect();
        wanted.retain(|oid| !missing.contains(oid));
        Ok(wanted)
    }

    /// Whether the announcement of a repository is served: before that, its data is not either.
    pub(crate) async fn is_served(
        &self,
        repository: &RepositoryId,
    ) -> Result<bool, nostr_database::error::Error> {
        let identifier = repository.identifier.as_str();
        let filter = Filter::new()
            .kind(Kind::GitRepoAnnouncement)
            .author(repository.owner)
            .identifier(identifier);
        let _turn = self.query_turn().await;
        let found = self.database().query(filter).await?;
        // A database may cut long names in its index.
        Ok(found.iter().any(|event| {
            nip34::identifier(&event.tags).is_ok_and(|found| found == repository.identifier)
        }))
    }

    pub(crate) fn git_limits(&self) -> &Limits {
        &self.parts.git_limits
    }

    /// Where what a push left is removed.
    pub(crate) fn removals(&self) -> &TaskTracker {
        &self.removals
    }

    /// Waits until what cut-off pushes left is removed.
    pub(crate) async fn cleaned_up(&self) {
        self.removals.close();
        self.removals.wait().await;
    }
}

/// Why it is not known what is here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    #[error("the store failed")]
    Store(#[from] purgatory_sync::StoreError),
    #[error("the objects could not be looked at")]
    Objects(#[from] purgatory_sync::FetchError),
}

fn as_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
