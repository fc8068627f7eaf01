//! P15: start and stop.

use std::collections::HashMap;

use purgatory_sync::{
    Activity, Arrival, HeldError, PassEnd, State, SyncEvent,
    testing::{MemoryStore, ScriptedFetcher},
};

use crate::common::*;

/// P15: at the start everything that is held is queued, spread out.
#[tokio::test(start_paused = true)]
async fn at_the_start_everything_held_is_queued_spread_out() {
    let (store, git) = (MemoryStore::new(), ScriptedFetcher::new());
    git.put((0..3_000).map(oid));
    for number in 0..3_000 {
        let id = format!("repo{number}");
        store.hold(id.as_str(), HeldEvent::state(&id, "main", [oid(number)]));
    }
    let world = World::over(store, git, |config| config, |builder| builder);
    assert!(world.sync.snapshot().restoring);
    assert!(!world.sync.snapshot().is_idle(), "nothing is known yet");
    world.idle().await;
    assert_eq!(world.store.released().len(), 3_000);
    let mut by_instant: HashMap<_, usize> = HashMap::new();
    for (at, event) in world.told.all() {
        if matches!(event, SyncEvent::PassStarted(_)) {
            *by_instant.entry(at).or_default() += 1;
        }
    }
    assert_eq!(by_instant.values().sum::<usize>(), 3_000);
    let most = by_instant.values().max().unwrap();
    assert!(*most <= 51, "{most} passes at one instant: a round of 1 s has 50 of 3,000 in 60 s");
    assert_eq!(world.began.elapsed().as_secs(), 60);
}

/// P15: a few that are held do not wait for a spread that is for many.
#[tokio::test(start_paused = true)]
async fn a_few_are_queued_close_together() {
    let (store, git) = (MemoryStore::new(), ScriptedFetcher::new());
    git.put([oid(1)]);
    for id in ["a", "b", "c"] {
        store.hold(id, HeldEvent::state(id, "main", [oid(1)]));
    }
    let world = World::over(store, git, |config| config, |builder| builder);
    world.idle().await;
    assert!(world.began.elapsed() < secs(2));
}

/// P15: a store that fails at the start is asked again, after 20 and 40 s.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_at_the_start_is_asked_again() {
    let (store, git) = (MemoryStore::new(), ScriptedFetcher::new());
    git.put([oid(1)]);
    store.hold("a", HeldEvent::state("state", "main", [oid(1)]));
    store.trouble_held_identifiers(Trouble::Error);
    store.trouble_held_identifiers(Trouble::Panic);
    let world = World::over(store, git, |config| config, |builder| builder);
    world.idle().await;
    assert_eq!(world.told.starts("a")[0], world.began + ms(60_500));
    assert_eq!(world.store.released(), ["state"]);
}

/// P15: a shutdown ends waits at once: in a domain's line, for a slot, and for the time.
#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_waits_at_once() {
    let world = World::new();
    fill_window(&world, "https://busy.example").await;
    for id in ["a", "b", "c"] {
        world.announce(id, &[&url(&format!("https://busy.example/{id}.git"))]);
        world.state(id, id, &[1]);
    }
    pass(secs(2)).await;
    world.state("later", "later", &[1]);
    assert!(matches!(world.state_of("a"), Some(State::Running(Activity::InLine { .. }))));
    let before = tokio::time::Instant::now();
    world.sync.shutdown().await;
    assert_eq!(before.elapsed(), ms(0));
    assert!(world.sync.snapshot().stopping);
    let last = &world.told.passes()[30..];
    assert!(last.iter().all(|pass| pass.summary.why == PassEnd::Stopped));
    assert_eq!(last.len(), 3);
    assert_eq!(world.store.held("later"), ["later"], "what is held stays held");
}

/// P15: a fetch that is on ends within the grace, and what it brought is let go.
#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_fetches_end() {
    let world = World::new();
    let (slow, other) = (url("https://slow.example/a.git"), url("https://other.example/a.git"));
    world.git.serve(&slow, [oid(1)]);
    world.git.latency(&slow, secs(3));
    world.git.serve(&other, [oid(2)]);
    world.announce("a", &[&slow, &other]);
    world.state("a", "first", &[1]);
    world.state("a", "second", &[2]);
    pass(secs(1)).await;
    let before = tokio::time::Instant::now();
    world.sync.shutdown().await;
    assert_eq!(before.elapsed(), ms(2_500));
    assert_eq!(world.store.released(), ["first"]);
    assert_eq!(world.git.asked(), [slow.to_string()], "no fetch begins after a shutdown");
}

/// P15: a fetch that does not end is cancelled after the grace, and gives everything back.
#[tokio::test(start_paused = true)]
async fn a_shutdown_cancels_what_does_not_end() {
    let world = World::new();
    let silent = url("https://silent.example/a.git");
    world.git.always(&silent, Reply::Hang);
    world.announce("a", &[&silent]);
    world.state("a", "state", &[1]);
    pass(secs(1)).await;
    assert_eq!(world.git.on(), 1);
    let before = tokio::time::Instant::now();
    // Twice at once is fine.
    tokio::join!(world.sync.shutdown(), world.sync.shutdown());
    world.sync.shutdown().await;
    assert_eq!(before.elapsed(), secs(5));
    assert_eq!(world.git.on(), 0, "the fetch was dropped");
    assert_eq!(world.store.held("a"), ["state"]);
    let last = world.told.passes().pop().unwrap();
    assert_eq!(last.summary.why, PassEnd::Stopped);
    assert!(world.sync.snapshot().identifiers.is_empty());
}

/// P15: a store that hangs in a release does not keep a shutdown; the event stays held.
#[tokio::test(start_paused = true)]
async fn a_shutdown_is_not_kept_by_a_store_that_hangs() {
    let world = World::new();
    world.git.put([oid(1)]);
    world.store.trouble_release(Trouble::Hang);
    world.state("a", "state", &[1]);
    pass(secs(1)).await;
    let before = tokio::time::Instant::now();
    world.sync.shutdown().await;
    assert_eq!(before.elapsed(), secs(5));
    assert_eq!(world.store.held("a"), ["state"]);
}

/// P15: after the stop the caller is told that nothing is taken any more.
#[tokio::test(start_paused = true)]
async fn after_the_stop_nothing_is_taken() {
    let world = World::new();
    world.sync.shutdown().await;
    let answer = world.sync.event_held("a", Arrival::Synced);
    assert!(matches!(answer, Err(HeldError::Stopped(id)) if id.as_str() == "a"));
    assert!(matches!(world.sync.changed("a"), Err(HeldError::Stopped(_))));
    assert!(world.sync.snapshot().identifiers.is_empty());
}

/// P15: dropping the last handle stops the engine too, and a weak handle does not keep it.
#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_stops_the_engine() {
    let world = World::new();
    let silent = url("https://silent.example/a.git");
    world.git.always(&silent, Reply::Hang);
    world.announce("a", &[&silent]);
    world.state("a", "state", &[1]);
    pass(secs(1)).await;
    let (git, told) = (world.git.clone(), world.told.clone());
    let clone = world.sync.clone();
    let weak = world.sync.downgrade();
    drop(world);
    pass(secs(30)).await;
    assert_eq!(git.on(), 1, "a clone keeps it");
    assert!(weak.upgrade().is_some());
    drop(clone);
    assert!(weak.upgrade().is_none());
    pass(secs(6)).await;
    assert_eq!(git.on(), 0);
    assert_eq!(told.passes().pop().unwrap().summary.why, PassEnd::Stopped);
}
