use std::{collections::BTreeSet, error::Error, path::PathBuf, sync::Arc, time::Duration};

use nostr::{
    event::{Event, Kind},
    filter::Filter,
    key::PublicKey,
};
use nostr_memory::MemoryDatabase;
use purgatory_sync::{
    GitFetcher, Identifier, Observer, Oid, OurDomain, PurgatorySync, Snapshot, SyncConfig,
    SyncEvent,
};
use tokio::{
    sync::Notify,
    time::{Instant, MissedTickBehavior, interval, timeout, timeout_at},
};

use super::{Failure, args::Database};
use crate::{
    git::{Git, Lookup, Repositories, SmartHttpFetcher},
    nip34::{self, GitEvent, VerifiedEvent},
    store::{Admission, AdmitError, Arrival, HeldEvent, NostrEventStore, StoreObserver, Wake},
};

/// The store, the fetcher and the engine, put together in this process.
pub(super) struct Session {
    engine: PurgatorySync,
    store: NostrEventStore,
    fetcher: SmartHttpFetcher,
    moved: Arc<Notify>,
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
const LONGEST_BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// What a session is made of.
pub(super) struct SessionOptions {
    pub(super) git: Git,
    pub(super) database: Database,
    pub(super) git_data_dir: PathBuf,
    pub(super) config: SyncConfig,
    pub(super) our_domain: Option<OurDomain>,
    pub(super) allow_private_networks: bool,
    /// Who turns host names into addresses.
    pub(super) lookup: Arc<dyn Lookup>,
}

/// Of whose repositories an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// Of those over which this author of a state has authority.
    StateOf(PublicKey),
    /// Of this owner's, which a pull request names.
    For(PublicKey),
}

impl Whose {
    /// What a released event says.
    pub(super) fn of(event: &Event) -> Vec<Self> {
        match GitEvent::read(event).ok().and_then(GitEvent::into_proposal) {
            Some(proposal) => proposal.repositories.iter().map(|it| Self::For(it.owner)).collect(),
            None => vec![Self::StateOf(event.pubkey)],
        }
    }
}

/// Who is told what happens in a session.
pub(super) trait Witness: Observer + StoreObserver + 'static {}

impl<W: Observer + StoreObserver + 'static> Witness for W {}

impl Session {
    /// Opens the folder of repositories and starts the engine.
    pub(super) async fn open<W: Witness>(
        options: SessionOptions,
        witness: Arc<W>,
    ) -> Result<Self, Failure> {
        let folder = options.git_data_dir;
        let opened = tokio::task::spawn_blocking(move || Repositories::open(folder)).await;
        let repositories = opened
            .map_err(Failure::because("the folder of repositories cannot be opened"))?
            .map_err(Failure::because("the folder of repositories cannot be opened"))?;
        let fetcher = SmartHttpFetcher::builder(repositories.clone())
            .git(options.git)
            .allow_private_networks(options.allow_private_networks)
            .lookup(options.lookup)
            .build()
            .await
            .map_err(Failure::because("fetching is not possible"))?;
        let refs = Arc::new(repositories);
        let store = match options.database {
            Database::Memory => {
                NostrEventStore::builder(Arc::new(MemoryDatabase::unbounded()), refs)
            }
            Database::Lmdb(folder) => NostrEventStore::on_lmdb(&folder, refs)
                .await
                .map_err(Failure::because("events cannot be kept"))?,
        };
        let store = store
            .observer(Arc::clone(&witness) as Arc<dyn StoreObserver>)
            .build()
            .await
            .map_err(Failure::because("events cannot be kept"))?;

        let moved = Arc::new(Notify::new());
        let observer = {
            let moved = Arc::clone(&moved);
            move |event: &SyncEvent| {
                witness.observe(event);
                // Only after these the end may have come.
                if matches!(event, SyncEvent::PassEnded(_) | SyncEvent::QueueIdle) {
                    moved.notify_one();
                }
            }
        };
        let engine = PurgatorySync::builder(Arc::new(store.clone()), Arc::new(fetcher.clone()))
            .config(options.config)
            .our_domains(options.our_domain)
            .observer(Arc::new(observer))
            .spawn();
        Ok(Self { engine, store, fetcher, moved })
    }

    /// Takes an event that came from elsewhere, and wakes the engine if that changes anything for it.
    pub(super) async fn take(&self, event: VerifiedEvent) -> Result<Admission, AdmitError> {
        let admission = self.store.admit(event, Arrival::Synced).await?;
        let identifiers = match admission.wake() {
            Wake::Nothing => Vec::new(),
            Wake::Held(identifier) => vec![identifier],
            Wake::Changed(identifiers) => identifiers,
        };
        // An announcement is part of the burst that it comes with: it too waits until it is quiet, or each would cost
        // a fetch of its own. An error means that the queue is full or that the engine stops: the event is held in the
        // store, which the engine asks itself when there is room.
        for identifier in identifiers {
            let _ = self.engine.event_held(identifier, purgatory_sync::Arrival::Synced);
        }
        Ok(admission)
    }

    /// What the engine does just now.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }

    /// Waits until nothing is held, or no source is left. For one caller at a time. Cancel safe.
    pub(super) async fn settled(&self) {
        // A look costs as much as there are identifiers: not after every pass of many.
        let mut looks = interval(BETWEEN_LOOKS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if self.engine.snapshot().no_source_left() {
                return;
            }
            // `notify_one` is remembered, so a pass that ends between the look and the wait is not missed. Nobody tells
            // when the engine has asked the store at its start, so the wait has an end.
            let _ = timeout(LONGEST_BETWEEN_LOOKS, self.moved.notified()).await;
        }
    }

    /// The announcements of a name that are served, of those owners of whose repositories `events` are.
    pub(super) async fn announcements(
        &self,
        of: &Identifier,
        events: &BTreeSet<Whose>,
    ) -> Result<Vec<Event>, Failure> {
        let mut owners = BTreeSet::new();
        for whose in events {
            match whose {
                Whose::StateOf(author) => {
                    let found = self.store.owners_for(author, of).await;
                    owners.extend(found.map_err(Failure::because("the owners are not known"))?);
                }
                Whose::For(owner) => {
                    owners.insert(*owner);
                }
            }
        }
        let filter = Filter::new().kind(Kind::GitRepoAnnouncement).identifier(of.as_str());
        let found = self.store.database().query(filter).await;
        let found = found.map_err(Failure::because("the announcements are not known"))?;
        // A database may cut long values in its index: it must be that very identifier.
        let names_it = |event: &Event| nip34::identifier(&event.tags).is_ok_and(|it| it == *of);
        let found = found.into_iter().filter(names_it);
        Ok(found.filter(|event| owners.contains(&event.pubkey)).collect())
    }

    /// Ends the engine; fetches that are on have the grace of the configuration.
    pub(super) async fn shutdown(&self) {
        self.engine.shutdown().await;
        self.fetcher.cleaned_up().await;
    }

    /// What is held, with the objects that are missing. What could not be looked at by `until` is taken as missing.
    pub(super) async fn held(&self, until: Instant) -> Result<Vec<(HeldEvent, Vec<Oid>)>, Failure> {
        let held = timeout_at(until, self.store.held()).await;
        let held = held
            .map_err(Failure::because("the look at what is held took too long"))?
            .map_err(Failure::because("what is held is not known"))?;
        let mut all = Vec::with_capacity(held.len());
        // They come by identifier: one look for all of one.
        for of_one in held.chunk_by(|one, next| one.identifier == next.identifier) {
            let oids: BTreeSet<Oid> =
                of_one.iter().flat_map(|event| event.oids.iter().copied()).collect();
            let oids: Vec<Oid> = oids.into_iter().collect();
            let look = timeout_at(until, self.fetcher.missing(&of_one[0].identifier, &oids)).await;
            let missing = if let Ok(Ok(missing)) = look { missing } else { oids };
            let missing: BTreeSet<Oid> = missing.into_iter().collect();
            all.extend(of_one.iter().map(|event| {
                let missing = event.oids.iter().filter(|oid| missing.contains(oid));
                (event.clone(), missing.copied().collect())
            }));
        }
        Ok(all)
    }
}

impl Failure {
    /// Says what failed, and then the causes, one after the other.
    pub(super) fn because<E: Error>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| {
            let mut text = format!("{}: {error}", what.into());
            let mut cause = error.source();
            while let Some(error) = cause {
                text.push_str(&format!(": {error}"));
                cause = error.source();
            }
            Self(text)
        }
    }
}
