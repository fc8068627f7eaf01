//! The whole engine in memory: three repositories, two servers, one of which has only a part.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin sync_memory

use std::{error::Error, sync::Arc, time::Duration};

use purgatory_sync::{
    Arrival, PurgatorySync, SyncConfig, SyncEvent,
    testing::{HeldEvent, MemoryStore, ScriptedFetcher, oid, url},
};
use tokio::sync::Notify;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (store, fetcher) = (MemoryStore::new(), ScriptedFetcher::new());
    let ended = Arc::new(Notify::new());
    let pass_ended = ended.clone();
    // Short waits, so that there is something to see at once.
    let config = SyncConfig::new()
        .with_synced_delay(Duration::from_millis(50))?
        .with_loop_interval(Duration::from_millis(10))?;
    let sync = PurgatorySync::builder(Arc::new(store.clone()), Arc::new(fetcher.clone()))
        .config(config)
        .observer(Arc::new(move |event: &SyncEvent| {
            if matches!(event, SyncEvent::PassEnded(_)) {
                pass_ended.notify_one();
            }
        }))
        .spawn();

    let (part, whole) = (url("https://part.example/x.git"), url("https://whole.example/x.git"));
    fetcher.serve(&part, [oid(1)]);
    fetcher.serve(&whole, [oid(1), oid(2), oid(3)]);
    for (id, wanted) in
        [("one", vec![oid(1)]), ("two", vec![oid(1), oid(2)]), ("three", vec![oid(9)])]
    {
        store.announce(id, "main", [part.clone(), whole.clone()]);
        store.hold(id, HeldEvent::state(&format!("state of {id}"), "main", wanted));
        sync.event_held(id, Arrival::Synced)?;
    }

    // "three" waits for an object that nobody has: then no source is left.
    while !sync.snapshot().no_source_left() {
        ended.notified().await;
    }
    let mut released = store.released();
    released.sort();
    println!("released: {}", released.join(", "));
    for each in sync.snapshot().identifiers {
        println!("still held: {} ({} missing)", each.identifier, each.missing);
    }
    sync.shutdown().await;
    Ok(())
}
