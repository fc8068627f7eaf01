//! A fetcher that is not git: blobs named by a hash, on mirrors. The engine does not care what they are.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin sync_not_git

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use purgatory_sync::{
    Arrival, FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher, Identifier, Oid,
    PurgatorySync, SyncConfig, SyncEvent,
    testing::{HeldEvent, MemoryStore, oid, url},
};
use tokio::sync::Notify;

/// Mirrors of media files, and the shelf they are put on. A real one speaks HTTP and checks each hash.
struct Mirrors {
    mirrors: HashMap<String, HashSet<Oid>>,
    shelf: Mutex<HashSet<Oid>>,
}

#[async_trait]
impl GitFetcher for Mirrors {
    async fn missing(&self, _id: &Identifier, oids: &[Oid]) -> Result<Vec<Oid>, FetchError> {
        let shelf = self.shelf.lock().map_err(|_| FetchError::new(FetchErrorKind::Local))?;
        Ok(oids.iter().filter(|oid| !shelf.contains(oid)).copied().collect())
    }

    async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        let Some(mirror) = self.mirrors.get(request.url.domain().as_str()) else {
            return Err(FetchError::new(FetchErrorKind::NotFound).with_requests(1));
        };
        let has = |oid: &&Oid| mirror.contains(oid);
        let received: Vec<Oid> = request.oids.iter().filter(has).copied().collect();
        let mut shelf = self.shelf.lock().map_err(|_| FetchError::new(FetchErrorKind::Local))?;
        shelf.extend(&received);
        println!("{} has {} of {}", request.url.domain(), received.len(), request.oids.len());
        Ok(Fetched { received, requests: 1, ..Fetched::default() })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mirrors = HashMap::from([
        ("near.example".to_owned(), HashSet::from([oid(1), oid(2)])),
        ("far.example".to_owned(), HashSet::from([oid(1), oid(2), oid(3)])),
    ]);
    let fetcher = Mirrors { mirrors, shelf: Mutex::default() };
    let store = MemoryStore::new();
    let released = Arc::new(Notify::new());
    let went = released.clone();
    let config = SyncConfig::new().with_synced_delay(Duration::from_millis(50))?;
    let sync = PurgatorySync::builder(Arc::new(store.clone()), Arc::new(fetcher))
        .config(config)
        .observer(Arc::new(move |event: &SyncEvent| {
            if matches!(event, SyncEvent::Released(_)) {
                went.notify_one();
            }
        }))
        .spawn();

    // A post is shown when its three pictures are here.
    let sources = [url("https://near.example/"), url("https://far.example/")];
    store.announce("album", "pictures", sources);
    store.hold("album", HeldEvent::state("post", "pictures", [oid(1), oid(2), oid(3)]));
    sync.event_held("album", Arrival::Synced)?;
    released.notified().await;
    println!("shown: {}", store.released().join(", "));
    sync.shutdown().await;
    Ok(())
}
