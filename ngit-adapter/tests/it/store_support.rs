//! Signed events, a ref keeper and an observer in memory, for tests of the event store.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::Path,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use ngit_adapter::{
    RefError, RefKeeper, RepositoryId, StateRefs,
    nip34::{EventLimits, VerifiedEvent},
    nostr::{
        event::{Event, EventBuilder, EventId, FinalizeEvent, Kind, Tag},
        filter::Filter,
        key::{Keys, PublicKey, SecretKey},
        types::Timestamp,
    },
    store::{Admission, AdmitError, Arrival, NostrEventStore, StoreConfig, StoreObserver},
};
use nostr_database::{
    DatabaseEventStatus, Features, NostrDatabase, RejectedReason, SaveEventStatus, error::Error,
};
use nostr_memory::MemoryDatabase;
use purgatory_sync::{EventStore, Identifier, Needs, Oid, Released, StoreError};

/// The key pair of a number: the same in every run.
pub(crate) fn keys(number: u8) -> Keys {
    let mut secret = [0; 32];
    secret[31] = number + 1;
    Keys::new(SecretKey::from_slice(&secret).unwrap())
}

pub(crate) fn key(number: u8) -> PublicKey {
    keys(number).public_key()
}

/// The object of a number.
pub(crate) fn oid(number: u32) -> Oid {
    let mut hash = [0xab; 20];
    hash[..4].copy_from_slice(&number.to_be_bytes());
    Oid::sha1(hash)
}

pub(crate) fn event(author: u8, kind: u16, created_at: u64, tags: &[&[&str]]) -> Event {
    let tags = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap());
    EventBuilder::new(Kind::from_u16(kind), "")
        .tags(tags)
        .custom_created_at(Timestamp::from_secs(created_at))
        .finalize(&keys(author))
        .unwrap()
}

pub(crate) fn verified(event: &Event) -> VerifiedEvent {
    VerifiedEvent::check(event.clone(), &EventLimits::default()).unwrap()
}

/// An announcement with the clone URL `https://<owner>.example/r.git`.
pub(crate) fn announcement(owner: u8, id: &str, at: u64, maintainers: &[u8]) -> Event {
    let url = format!("https://o{owner}.example/r.git");
    let maintainers: Vec<String> = maintainers.iter().map(|it| key(*it).to_hex()).collect();
    let mut named = vec!["maintainers"];
    named.extend(maintainers.iter().map(String::as_str));
    event(owner, 30617, at, &[&["d", id], &["clone", &url], &named])
}

/// A state with one branch per object, the first one `main`.
pub(crate) fn state(author: u8, id: &str, at: u64, oids: &[Oid]) -> Event {
    let mut tags = vec![vec!["d".to_owned(), id.to_owned()]];
    for (number, oid) in oids.iter().enumerate() {
        let branch = if number == 0 { "main".to_owned() } else { format!("b{number}") };
        tags.push(vec![format!("refs/heads/{branch}"), oid.to_string()]);
    }
    tags.push(vec!["HEAD".to_owned(), "ref: refs/heads/main".to_owned()]);
    let tags: Vec<Vec<&str>> =
        tags.iter().map(|it| it.iter().map(String::as_str).collect()).collect();
    event(author, 30618, at, &tags.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

pub(crate) fn coordinate(owner: u8, id: &str) -> String {
    format!("30617:{}:{id}", key(owner).to_hex())
}

pub(crate) fn pull_request(author: u8, owners: &[u8], id: &str, at: u64, tip: Oid) -> Event {
    let coordinates: Vec<String> = owners.iter().map(|owner| coordinate(*owner, id)).collect();
    let tip = tip.to_string();
    let url = format!("https://fork{author}.example/f.git");
    let mut tags: Vec<Vec<&str>> = coordinates.iter().map(|it| vec!["a", it.as_str()]).collect();
    tags.push(vec!["c", &tip]);
    tags.push(vec!["clone", &url]);
    event(author, 1618, at, &tags.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Keeps refs in memory, and fails where it is told to.
#[derive(Default)]
pub(crate) struct FakeRefs {
    pub(crate) repositories: Mutex<BTreeMap<RepositoryId, Repository>>,
    /// States that name this object conflict.
    pub(crate) conflicts: Mutex<BTreeSet<Oid>>,
    /// Repositories of these owners fail for now.
    pub(crate) failing: Mutex<BTreeSet<PublicKey>>,
    pub(crate) calls: AtomicU64,
    pub(crate) fuse: Arc<Fuse>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repository {
    pub(crate) refs: BTreeMap<String, Oid>,
    pub(crate) head: Option<String>,
    pub(crate) pulls: BTreeMap<EventId, Oid>,
    /// What was brought without a ref.
    pub(crate) kept: BTreeSet<Oid>,
}

impl FakeRefs {
    pub(crate) fn main(&self, owner: u8, id: &str) -> Option<Oid> {
        let repositories = self.repositories.lock().unwrap();
        let repository = repositories.get(&RepositoryId::new(key(owner), Identifier::from(id)))?;
        repository.refs.get("refs/heads/main").copied()
    }

    pub(crate) fn all(&self) -> BTreeMap<RepositoryId, Repository> {
        self.repositories.lock().unwrap().clone()
    }

    fn check(&self, repository: &RepositoryId) -> Result<(), RefError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.failing.lock().unwrap().contains(&repository.owner) {
            return Err(RefError::Failed("the disk is full".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl RefKeeper for FakeRefs {
    async fn apply_state(&self, at: &RepositoryId, state: &StateRefs) -> Result<(), RefError> {
        self.fuse.step().await;
        self.check(at)?;
        if state.refs.is_empty() {
            return Ok(());
        }
        let conflicts = self.conflicts.lock().unwrap();
        if state.refs.values().any(|oid| conflicts.contains(oid)) {
            return Err(RefError::Conflict("a and a/b cannot both be branches".to_owned()));
        }
        let mut repositories = self.repositories.lock().unwrap();
        let repository = repositories.entry(at.clone()).or_default();
        let kept: BTreeMap<_, _> = repository
            .refs
            .iter()
            .filter(|(name, _)| state.left_alone.iter().any(|it| it.as_str() == *name))
            .map(|(name, oid)| (name.clone(), *oid))
            .collect();
        repository.refs = state.refs.iter().map(|(name, oid)| (name.to_string(), *oid)).collect();
        repository.refs.extend(kept);
        repository.head = state.head.as_ref().map(ToString::to_string);
        Ok(())
    }

    async fn keep_objects(&self, at: &RepositoryId, objects: &[Oid]) -> Result<(), RefError> {
        self.check(at)?;
        let mut repositories = self.repositories.lock().unwrap();
        repositories.entry(at.clone()).or_default().kept.extend(objects);
        Ok(())
    }

    async fn keep_pull_request(
        &self,
        at: &RepositoryId,
        event: &EventId,
        tip: &Oid,
    ) -> Result<(), RefError> {
        self.check(at)?;
        let mut repositories = self.repositories.lock().unwrap();
        repositories.entry(at.clone()).or_default().pulls.insert(*event, *tip);
        Ok(())
    }
}

/// Notes what it is told.
#[derive(Default)]
pub(crate) struct Recorder {
    told: Mutex<Vec<EventId>>,
    pub(crate) fuse: Arc<Fuse>,
}

impl StoreObserver for Recorder {
    fn announced(&self, _: &Identifier, event: &Event) {
        self.fuse.burn_one();
        self.told.lock().unwrap().push(event.id);
    }

    fn released(&self, _: &Identifier, event: &Event) {
        self.fuse.burn_one();
        self.told.lock().unwrap().push(event.id);
    }
}

/// Stops everything after a number of steps, as a kill does: nothing after it happens any more, and the
/// journal is what it was at that moment.
#[derive(Default)]
pub(crate) struct Fuse {
    /// Steps to go. `None` burns never.
    left: Mutex<Option<u32>>,
    journal: Mutex<Option<std::path::PathBuf>>,
    saved: Mutex<Option<Vec<u8>>>,
    burnt: tokio::sync::Notify,
}

impl Fuse {
    pub(crate) fn light(&self, steps: u32, journal: &std::path::Path) {
        *self.left.lock().unwrap() = Some(steps);
        *self.journal.lock().unwrap() = Some(journal.to_owned());
        *self.saved.lock().unwrap() = None;
    }

    pub(crate) fn put_out(&self) {
        *self.left.lock().unwrap() = None;
    }

    /// One step. Says whether it is the end.
    fn burn_one(&self) -> bool {
        let mut left = self.left.lock().unwrap();
        match left.as_mut() {
            None => return false,
            Some(0) => {}
            Some(steps) => {
                *steps -= 1;
                return false;
            }
        }
        let mut saved = self.saved.lock().unwrap();
        if saved.is_none() {
            let journal = self.journal.lock().unwrap();
            *saved = Some(std::fs::read(journal.as_ref().unwrap()).unwrap());
            self.burnt.notify_one();
        }
        true
    }

    async fn step(&self) {
        if self.burn_one() {
            std::future::pending::<()>().await;
        }
    }

    /// Runs until it is done, or until the fuse has burnt: then the journal as it was.
    pub(crate) async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T, Vec<u8>> {
        let done = tokio::select! {
            biased;
            () = self.burnt.notified() => None,
            done = work => Some(done),
        };
        // It may have burnt in the last step, and nobody waited any more.
        let _ = futures::FutureExt::now_or_never(self.burnt.notified());
        match (self.saved.lock().unwrap().take(), done) {
            (None, Some(done)) => Ok(done),
            (saved, _) => Err(saved.unwrap()),
        }
    }
}

/// A database that burns a fuse with every write, before and after it.
#[derive(Debug)]
pub(crate) struct FusedDatabase {
    inner: Arc<dyn NostrDatabase>,
    fuse: Arc<Fuse>,
    /// Refuses these events, with this status.
    pub(crate) refuses: Mutex<HashMap<EventId, RejectedReason>>,
    /// Fails every write.
    pub(crate) fails: AtomicBool,
    /// Fails the next write.
    pub(crate) fails_once: AtomicBool,
    /// Cannot read this event.
    pub(crate) unreadable: Mutex<Option<EventId>>,
    /// How many events queries gave.
    pub(crate) read: AtomicUsize,
}

impl fmt::Debug for Fuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fuse")
    }
}

impl FusedDatabase {
    pub(crate) fn new(inner: Arc<dyn NostrDatabase>, fuse: Arc<Fuse>) -> Self {
        Self {
            inner,
            fuse,
            refuses: Mutex::default(),
            fails: AtomicBool::new(false),
            fails_once: AtomicBool::new(false),
            unreadable: Mutex::default(),
            read: AtomicUsize::new(0),
        }
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

impl NostrDatabase for FusedDatabase {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }

    fn features(&self) -> Features {
        self.inner.features()
    }

    fn save_event<'a>(&'a self, event: &'a Event) -> Answer<'a, SaveEventStatus> {
        Box::pin(async move {
            self.fuse.step().await;
            if self.fails.load(Ordering::Relaxed) || self.fails_once.swap(false, Ordering::Relaxed)
            {
                return Err(Error::storage(std::io::Error::other("no space left")));
            }
            let refused = self.refuses.lock().unwrap().get(&event.id).copied();
            if let Some(reason) = refused {
                return Ok(SaveEventStatus::Rejected(reason));
            }
            let saved = self.inner.save_event(event).await;
            self.fuse.step().await;
            saved
        })
    }

    fn check_id<'a>(&'a self, id: &'a EventId) -> Answer<'a, DatabaseEventStatus> {
        self.inner.check_id(id)
    }

    fn event_by_id<'a>(&'a self, id: &'a EventId) -> Answer<'a, Option<Event>> {
        if *self.unreadable.lock().unwrap() == Some(*id) {
            return Box::pin(async { Err(Error::storage(std::io::Error::other("a bad sector"))) });
        }
        self.inner.event_by_id(id)
    }

    fn count(&self, filter: Filter) -> Answer<'_, usize> {
        self.inner.count(filter)
    }

    fn query(&self, filter: Filter) -> Answer<'_, BTreeSet<Event>> {
        Box::pin(async move {
            let found = self.inner.query(filter).await?;
            self.read.fetch_add(found.len(), Ordering::Relaxed);
            Ok(found)
        })
    }

    fn delete(&self, filter: Filter) -> Answer<'_, ()> {
        self.inner.delete(filter)
    }

    fn wipe(&self) -> Answer<'_, ()> {
        self.inner.wipe()
    }
}

/// A store with all that it stands on, and a clock that stands still.
pub(crate) struct World {
    pub(crate) store: NostrEventStore,
    pub(crate) database: Arc<FusedDatabase>,
    pub(crate) refs: Arc<FakeRefs>,
    pub(crate) told: Arc<Recorder>,
    pub(crate) fuse: Arc<Fuse>,
    pub(crate) now: Arc<AtomicU64>,
    pub(crate) config: StoreConfig,
}

pub(crate) const START: u64 = 1_800_000_000;

impl World {
    /// In memory, without a journal.
    pub(crate) async fn new() -> Self {
        Self::with(StoreConfig::default(), None).await
    }

    /// In memory, with or without a journal.
    pub(crate) async fn with(config: StoreConfig, journal: Option<&Path>) -> Self {
        Self::over(config, journal, Arc::new(MemoryDatabase::unbounded())).await
    }

    pub(crate) async fn over(
        config: StoreConfig,
        journal: Option<&Path>,
        database: Arc<dyn NostrDatabase>,
    ) -> Self {
        let fuse = Arc::new(Fuse::default());
        let database = Arc::new(FusedDatabase::new(database, fuse.clone()));
        let refs = Arc::new(FakeRefs { fuse: fuse.clone(), ..FakeRefs::default() });
        let told = Arc::new(Recorder { fuse: fuse.clone(), ..Recorder::default() });
        let now = Arc::new(AtomicU64::new(START));
        let store = Self::open(&database, &refs, &told, &now, &config, journal).await;
        Self { store: store.unwrap(), database, refs, told, fuse, now, config }
    }

    async fn open(
        database: &Arc<FusedDatabase>,
        refs: &Arc<FakeRefs>,
        told: &Arc<Recorder>,
        now: &Arc<AtomicU64>,
        config: &StoreConfig,
        journal: Option<&Path>,
    ) -> Result<NostrEventStore, StoreError> {
        let clock = Arc::clone(now);
        let mut builder = NostrEventStore::builder(database.clone(), refs.clone())
            .observer(told.clone())
            .config(config.clone())
            .clock(move || clock.load(Ordering::Relaxed));
        if let Some(journal) = journal {
            builder = builder.journal(journal);
        }
        builder.build().await
    }

    /// The store anew, from a journal, over the same database and the same refs.
    pub(crate) async fn restart(&mut self, journal: &Path) {
        // The old one must be gone before its journal is opened again.
        let (database, refs) = (self.database.clone(), self.refs.clone());
        self.store = NostrEventStore::builder(database, refs).build().await.unwrap();
        self.store = self.reopen(journal).await.unwrap();
    }

    pub(crate) async fn reopen(&self, journal: &Path) -> Result<NostrEventStore, StoreError> {
        let Self { database, refs, told, now, config, .. } = self;
        Self::open(database, refs, told, now, config, Some(journal)).await
    }

    pub(crate) async fn try_admit(&self, event: &Event) -> Result<Admission, AdmitError> {
        self.store.admit(verified(event), Arrival::Synced).await
    }

    pub(crate) async fn admit(&self, event: &Event) -> Admission {
        self.try_admit(event).await.unwrap()
    }

    pub(crate) async fn release(&self, id: &str, here: &[Oid]) -> Released {
        self.try_release(id, here).await.unwrap()
    }

    pub(crate) async fn try_release(&self, id: &str, here: &[Oid]) -> Result<Released, StoreError> {
        self.store.release(&Identifier::from(id), here).await
    }

    pub(crate) async fn needs(&self, id: &str) -> Needs {
        self.store.needs(&Identifier::from(id)).await.unwrap()
    }

    pub(crate) async fn is_stored(&self, event: &Event) -> bool {
        self.database.event_by_id(&event.id).await.unwrap().is_some()
    }

    pub(crate) async fn stored(&self) -> BTreeSet<EventId> {
        self.database.query(Filter::new()).await.unwrap().iter().map(|it| it.id).collect()
    }

    pub(crate) async fn held(&self) -> BTreeSet<EventId> {
        self.store.held().await.unwrap().iter().map(|it| it.id).collect()
    }

    pub(crate) fn told(&self) -> Vec<EventId> {
        self.told.told.lock().unwrap().clone()
    }

    pub(crate) fn pass_time(&self, secs: u64) {
        self.now.fetch_add(secs, Ordering::Relaxed);
    }
}

/// How often each id was told.
pub(crate) fn counts(told: &[EventId]) -> HashMap<EventId, usize> {
    let mut counts = HashMap::new();
    for id in told {
        *counts.entry(*id).or_default() += 1;
    }
    counts
}
