//! Holds the events that come on standard input until their git data is here, and prints them then.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin ngit_hold_events -- FOLDER [--local] < events.jsonl

use std::{error::Error, sync::Arc};

use ngit_adapter::{
    git::{Repositories, SmartHttpFetcher},
    nostr::event::Event,
    store::{Arrival, NostrEventStore, StoreObserver, Wake},
};
use nostr_memory::MemoryDatabase;
use purgatory_sync::{Identifier, PurgatorySync};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

/// Where a relay would send the event to its subscribers.
struct Subscribers;

impl StoreObserver for Subscribers {
    fn announced(&self, identifier: &Identifier, event: &Event) {
        println!("announced {identifier}: {}", event.id);
    }

    fn released(&self, identifier: &Identifier, event: &Event) {
        println!("released {identifier}: {}", event.id);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let folder = args.first().ok_or("give a folder for the repositories")?;
    let local = args.iter().any(|arg| arg == "--local");

    // The two ports, done with git and nostr, and the engine between them.
    let repositories = Repositories::open(folder)?;
    let fetcher = SmartHttpFetcher::builder(repositories.clone())
        .allow_private_networks(local)
        .build()
        .await?;
    let database = Arc::new(MemoryDatabase::unbounded());
    let store = NostrEventStore::builder(database, Arc::new(repositories))
        .observer(Arc::new(Subscribers))
        .build()
        .await?;
    let engine = PurgatorySync::builder(Arc::new(store.clone()), Arc::new(fetcher)).spawn();

    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match store.admit_json(line.as_bytes(), Arrival::Synced).await {
            // What came with others waits a moment for the rest of the burst.
            Ok(admission) => match admission.wake() {
                Wake::Held(identifier) => {
                    engine.event_held(identifier, purgatory_sync::Arrival::Synced)?;
                }
                Wake::Changed(identifiers) => {
                    for identifier in identifiers {
                        engine.event_held(identifier, purgatory_sync::Arrival::Synced)?;
                    }
                }
                Wake::Nothing => {}
            },
            Err(error) => println!("refused: {error}"),
        }
    }
    // A relay would go on. This one is done when it is idle, or when nobody has what is missing.
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(100));
    while !engine.snapshot().no_source_left() {
        looks.tick().await;
    }
    println!("{} still held", store.held().await?.len());
    engine.shutdown().await;
    Ok(())
}
