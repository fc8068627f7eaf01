//! The store keeps what the engine asks of every event store, in memory and on LMDB.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use ngit_adapter::{
    nostr::event::EventId,
    store::{NostrEventStore, StoreConfig},
};
use nostr_database::NostrDatabase;
use nostr_lmdb::NostrLmdb;
use nostr_memory::MemoryDatabase;
use purgatory_sync::{
    EventStore, Identifier, Needs, Oid, Released, StoreError,
    testing::{StoreHarness, check_event_store},
};
use tempfile::TempDir;

use crate::store_support::*;

/// A store, and what its world needs to live.
struct Tested {
    world: World,
    events: AtomicU64,
}

#[async_trait]
impl EventStore for Tested {
    async fn needs(&self, id: &Identifier) -> Result<Needs, StoreError> {
        self.world.store.needs(id).await
    }

    async fn release(&self, id: &Identifier, here: &[Oid]) -> Result<Released, StoreError> {
        self.world.store.release(id, here).await
    }

    async fn held_identifiers(&self) -> Result<Vec<Identifier>, StoreError> {
        self.world.store.held_identifiers().await
    }
}

struct Harness {
    /// Where databases and journals are made; none is in memory.
    folder: Option<TempDir>,
    stores: AtomicUsize,
}

impl Harness {
    fn new(folder: Option<TempDir>) -> Self {
        Self { folder, stores: AtomicUsize::new(0) }
    }

    fn next(&self) -> Option<PathBuf> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        Some(self.folder.as_ref()?.path().join(number.to_string()))
    }
}

const OWNER: u8 = 1;
const MAINTAINERS: std::ops::Range<u8> = 10..60;

#[async_trait]
impl StoreHarness for Harness {
    type Store = Tested;

    async fn fresh(&self) -> Tested {
        let folder = self.next();
        let database: Arc<dyn NostrDatabase> = match &folder {
            Some(folder) => Arc::new(NostrLmdb::open(folder.join("lmdb")).await.unwrap()),
            None => Arc::new(MemoryDatabase::unbounded()),
        };
        let journal = folder.map(|folder| folder.join("journal"));
        let world = World::over(StoreConfig::default(), journal.as_deref(), database).await;
        Tested { world, events: AtomicU64::new(0) }
    }

    async fn hold(&self, store: &Tested, id: &Identifier, oids: &[Oid]) -> String {
        // Of one author's states only the newest is held: each is another maintainer's.
        let maintainers: Vec<u8> = MAINTAINERS.collect();
        store.world.admit(&announcement(OWNER, id.as_str(), 1, &maintainers)).await;
        let number = store.events.fetch_add(1, Ordering::Relaxed);
        let author = MAINTAINERS.start + u8::try_from(number).unwrap();
        assert!(MAINTAINERS.contains(&author));
        let event = state(author, id.as_str(), 100 + number, oids);
        store.world.admit(&event).await;
        event.id.to_hex()
    }

    async fn saved(&self, store: &Tested) -> Vec<String> {
        let mut saved = Vec::new();
        for id in store.world.told() {
            if is_state(&store.world.store, &id).await {
                saved.push(id.to_hex());
            }
        }
        saved
    }

    async fn fail_next_save(&self, store: &Tested) -> bool {
        store.world.database.fails_once.store(true, Ordering::Relaxed);
        true
    }
}

/// Whether the database has a state of this id: what was told and is not there fails the suite.
async fn is_state(store: &NostrEventStore, id: &EventId) -> bool {
    let event = store.database().event_by_id(id).await.unwrap().unwrap();
    event.kind.as_u16() == 30618
}

#[tokio::test]
async fn the_store_keeps_what_the_engine_asks_in_memory() {
    check_event_store(&Harness::new(None)).await.unwrap();
}

#[tokio::test]
async fn the_store_keeps_what_the_engine_asks_on_lmdb() {
    check_event_store(&Harness::new(Some(tempfile::tempdir().unwrap()))).await.unwrap();
}
