//! Many threads at once, on the real clock: nothing here waits for a time, everything for an event.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use purgatory_sync::{
    Arrival, PurgatorySync, SyncConfig, SyncEvent,
    testing::{MemoryStore, ScriptedFetcher},
};
use tokio::sync::Notify;

use crate::common::*;

/// P1, P8: whatever calls and passes overlap, no identifier is lost and none is kept: in the end everything was
/// released, nothing is queued, and never two passes of one identifier were on at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_identifier_is_lost_or_kept_whatever_overlaps() {
    const IDS: usize = 5;
    const ROUNDS: usize = 200;
    let (store, git) = (MemoryStore::new(), ScriptedFetcher::new());
    git.put((0..10).map(oid));
    let on: Arc<Vec<AtomicUsize>> = Arc::new((0..IDS).map(|_| AtomicUsize::new(0)).collect());
    let (watched, ended) = (on.clone(), Arc::new(Notify::new()));
    let overlaps = Arc::new(AtomicUsize::new(0));
    let overlapped = overlaps.clone();
    let ends = ended.clone();
    let observer = move |event: &SyncEvent| match event {
        SyncEvent::PassStarted(pass) => {
            let number: usize = pass.identifier.as_str().parse().unwrap();
            overlapped.fetch_add(watched[number].fetch_add(1, SeqCst), SeqCst);
        }
        SyncEvent::PassEnded(pass) => {
            let number: usize = pass.identifier.as_str().parse().unwrap();
            watched[number].fetch_sub(1, SeqCst);
        }
        SyncEvent::QueueIdle => ends.notify_one(),
        _ => {}
    };
    let short = Duration::from_millis(1);
    let config = SyncConfig::new()
        .with_loop_interval(short)
        .and_then(|config| config.with_synced_delay(short))
        .and_then(|config| config.with_synced_max_wait(short))
        .unwrap();
    let sync = PurgatorySync::builder(Arc::new(store.clone()), Arc::new(git.clone()))
        .config(config)
        .observer(Arc::new(observer))
        .spawn();
    let mut callers = Vec::new();
    for caller in 0..4 {
        let (store, sync) = (store.clone(), sync.clone());
        callers.push(tokio::spawn(async move {
            for round in 0..ROUNDS {
                let id = (caller + round) % IDS;
                let name = format!("{caller}-{round}");
                store.hold(id.to_string(), HeldEvent::state(&name, "main", [oid(id as u64)]));
                sync.event_held(id.to_string(), Arrival::Synced).unwrap();
                if round % 3 == 0 {
                    sync.changed(id.to_string()).unwrap();
                }
                tokio::task::yield_now().await;
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    while !sync.snapshot().is_idle() {
        let _ = tokio::time::timeout(Duration::from_secs(5), ended.notified()).await;
    }
    assert_eq!(store.released().len(), 4 * ROUNDS);
    assert_eq!(overlaps.load(SeqCst), 0, "two passes of one identifier at once");
    assert!(on.iter().all(|on| on.load(SeqCst) == 0));
    sync.shutdown().await;
}

/// Types that are shared are `Send` and `Sync`, and the ports are object safe.
#[test]
fn what_is_shared_is_send_and_sync() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<PurgatorySync>();
    shared::<purgatory_sync::WeakPurgatorySync>();
    shared::<purgatory_sync::Builder>();
    shared::<purgatory_sync::Snapshot>();
    shared::<SyncEvent>();
    shared::<SyncConfig>();
    shared::<purgatory_sync::HeldError>();
    shared::<purgatory_sync::StoreError>();
    shared::<purgatory_sync::FetchError>();
    shared::<Box<dyn purgatory_sync::EventStore>>();
    shared::<Box<dyn purgatory_sync::GitFetcher>>();
    shared::<Box<dyn purgatory_sync::Observer>>();
}
