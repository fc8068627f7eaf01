//! Watching progress: an observer prints what happens, a snapshot says what waits and why.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin sync_watch

use std::{error::Error, sync::Arc, time::Duration};

use purgatory_sync::{
    Arrival, FetchErrorKind, PurgatorySync, State, SyncConfig, SyncEvent,
    testing::{HeldEvent, MemoryStore, Reply, ScriptedFetcher, oid, url},
};
use tokio::sync::Notify;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (store, fetcher) = (MemoryStore::new(), ScriptedFetcher::new());
    let (dead, good) = (url("https://dead.example/x.git"), url("https://good.example/x.git"));
    fetcher.always(&dead, Reply::Fail(FetchErrorKind::Network));
    fetcher.serve(&good, [oid(1)]);
    store.announce("project", "main", [dead, good]);

    let done = Arc::new(Notify::new());
    let pass_ended = done.clone();
    let print = move |event: &SyncEvent| match event {
        SyncEvent::PassStarted(pass) => println!("pass {} of {}", pass.attempt, pass.identifier),
        SyncEvent::FetchEnded(fetch) => println!(
            "  {} answered {}: {} of {} objects",
            fetch.url.domain(),
            fetch.outcome.as_str(),
            fetch.received,
            fetch.wanted,
        ),
        SyncEvent::Released(events) => {
            println!("  {} released, {} still held", events.released, events.held);
        }
        SyncEvent::PassEnded(pass) => {
            println!("pass ended: {}", pass.summary.why.as_str());
            pass_ended.notify_one();
        }
        _ => {}
    };
    let config = SyncConfig::new().with_synced_delay(Duration::from_millis(50))?;
    let sync = PurgatorySync::builder(Arc::new(store.clone()), Arc::new(fetcher))
        .config(config)
        .observer(Arc::new(print))
        .spawn();
    store.hold("project", HeldEvent::state("can go", "main", [oid(1)]));
    store.hold("project", HeldEvent::state("cannot", "main", [oid(2)]));
    sync.event_held("project", Arrival::Synced)?;

    done.notified().await;
    for each in sync.snapshot().identifiers {
        let waits = matches!(each.state, State::Backoff { .. });
        println!("{}: waits for its next try: {waits}, held: {}", each.identifier, each.held);
    }
    sync.shutdown().await;
    Ok(())
}
