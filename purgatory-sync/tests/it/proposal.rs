//! The list of the proposal, row by row: its integration tests, and of its unit tests those that
//! concern the engine.

use std::time::Duration;

use purgatory_sync::{
    Activity, Arrival, FetchErrorKind, State, SyncEvent,
    keyed_debounce::Outcome,
    testing::{MemoryStore, ScriptedFetcher},
};

use crate::common::*;

fn seconds_between(starts: &[tokio::time::Instant]) -> Vec<u64> {
    starts.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect()
}

/// Unit list 1: a new entry waits for its delay, is ready when it is over, and is gone when complete.
#[tokio::test(start_paused = true)]
async fn queue_entry_new_ready_complete() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1)]);
    world.git.latency(&server, secs(1));
    world.announce("a", &[&server]);
    assert_eq!(world.state_of("a"), None);
    world.state("a", "state", &[1]);
    assert!(matches!(world.state_of("a"), Some(State::Waiting { .. })));
    pass(ms(499)).await;
    assert!(matches!(world.state_of("a"), Some(State::Waiting { .. })));
    pass(ms(2)).await;
    assert!(matches!(world.state_of("a"), Some(State::Running(Activity::Fetching { .. }))));
    pass(secs(1)).await;
    assert_eq!(world.state_of("a"), None);
}

/// Unit list 1: a new event brings a backoff forward and never puts it off.
#[tokio::test(start_paused = true)]
async fn queue_entry_in_backoff_is_brought_forward_by_a_new_event_and_never_put_off() {
    let world = World::new();
    world.state("a", "state", &[1]);
    pass(secs(1)).await;
    let Some(State::Backoff { until }) = world.state_of("a") else { panic!("no backoff") };
    assert_eq!(until, (world.began + ms(20_500)).into_std());
    world.sync.event_held("a", Arrival::Submitted).unwrap();
    pass(secs(20)).await;
    assert_eq!(world.told.starts("a").len(), 2, "3 minutes do not put 20 s off");
    world.sync.event_held("a", Arrival::Synced).unwrap();
    pass(secs(1)).await;
    assert_eq!(world.told.starts("a").len(), 3, "500 ms bring 20 s forward");
}

/// Unit list 3: objects of states and of pull requests are asked for together, each once.
#[tokio::test(start_paused = true)]
async fn oids_of_states_and_pull_requests_are_asked_for_once() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1), oid(2), oid(3)]);
    world.announce("a", &[&server]);
    world.store.hold("a", HeldEvent::pull_request("pr", "main", oid(2), []));
    world.store.hold("a", HeldEvent::pull_request("pr2", "main", oid(3), []));
    world.state("a", "state", &[1, 2, 1, 2]);
    world.idle().await;
    let fetches = world.git.fetches();
    assert_eq!(fetches.len(), 1);
    assert_eq!(fetches[0].oids, [oid(1), oid(2), oid(3)]);
    assert_eq!(world.store.released(), ["pr", "pr2", "state"]);
}

/// Unit list 4: any string is an identifier, and two of them are never mixed up.
#[tokio::test(start_paused = true)]
async fn identifiers_are_any_strings() {
    let world = World::new();
    let odd = ["", "a:b:c", "a/b", "..", "a", "A", "ä 🦀\n\0", &"x".repeat(5_000)];
    for (number, id) in odd.iter().enumerate() {
        let number = number as u64;
        let server = url(&format!("https://host{number}.example/{number}.git"));
        world.git.serve(&server, [oid(number)]);
        world.announce(id, &[&server]);
        world.state(id, &format!("state of {id}"), &[number]);
    }
    world.idle().await;
    assert_eq!(world.store.released().len(), odd.len());
    assert_eq!(world.git.fetches().len(), odd.len());
}

/// Integration 1: two instances; what was pushed to one, the other syncs from it.
#[tokio::test(start_paused = true)]
async fn integration_1_two_instances_push_to_one_and_the_other_syncs() {
    let here = World::new();
    here.git.put([oid(1), oid(2)]);
    here.state("a", "state", &[1, 2]);
    here.idle().await;
    assert_eq!(here.store.released(), ["state"]);
    let there = World::new();
    let first = url("https://first.example/a.git");
    there.git.serve(&first, [oid(1), oid(2)].into_iter().filter(|&oid| here.git.has(oid)));
    there.announce("a", &[&first]);
    there.state("a", "state", &[1, 2]);
    there.idle().await;
    assert_eq!(there.store.released(), ["state"]);
}

/// Integration 1: some objects are there and some are missing.
#[tokio::test(start_paused = true)]
async fn integration_1_partial_availability() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1), oid(3)]);
    world.announce("a", &[&server]);
    world.state("a", "whole", &[1]);
    world.state("a", "half", &[1, 2]);
    world.state("a", "other", &[3]);
    pass(secs(5)).await;
    assert_eq!(world.store.released(), ["whole", "other"]);
    assert_eq!(world.store.held("a"), ["half"]);
    world.git.serve(&server, [oid(2)]);
    world.idle().await;
    assert_eq!(world.store.released().len(), 3, "the next pass gets the rest");
    assert_eq!(world.git.fetches()[1].oids, [oid(2)]);
}

/// Integration 2: ten events within 100 ms make one run, 500 ms after the last.
#[tokio::test(start_paused = true)]
async fn integration_2_burst_of_ten_events_is_one_run_500_ms_after_the_last() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, (0..10).map(oid));
    world.announce("a", &[&server]);
    for number in 0..10 {
        world.state("a", &format!("event {number}"), &[number]);
        if number < 9 {
            pass(ms(10)).await;
        }
    }
    world.idle().await;
    assert_eq!(world.fetch_times(), [90 + 500]);
    assert_eq!(world.told.passes().len(), 1);
    assert_eq!(world.store.released().len(), 10);
}

/// Integration 3: unreachable URLs back off 20, 40, 80, 120 s, then stay at 120 s.
#[tokio::test(start_paused = true)]
async fn integration_3_unreachable_urls_back_off_20_40_80_120_120() {
    let world = World::new();
    let dead = url("https://dead.example/a.git");
    world.git.always(&dead, Reply::Fail(FetchErrorKind::Network));
    world.announce("a", &[&dead]);
    world.state("a", "state", &[1]);
    pass(secs(520)).await;
    assert_eq!(seconds_between(&world.told.starts("a")), [20, 40, 80, 120, 120, 120]);
    assert!(!world.sync.snapshot().no_source_left(), "a dead host may come back");
}

/// Integration 3: a new event starts the backoff anew.
#[tokio::test(start_paused = true)]
async fn integration_3_a_new_event_resets_the_backoff() {
    let world = World::new();
    world.state("a", "state", &[1]);
    pass(secs(62)).await; // passes at 0.5, 20.5 and 60.5 s
    world.state("a", "another", &[2]);
    pass(secs(21)).await;
    assert_eq!(seconds_between(&world.told.starts("a")), [20, 40, 2, 20]);
    let attempts: Vec<u32> = world.told.passes().iter().map(|pass| pass.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 1, 2]);
}

/// Integration 3: a new event during a run prevents the backoff, also if its delay was over before the
/// run ended. And P4: the run itself looks again when it is told.
#[tokio::test(start_paused = true)]
async fn integration_3_a_new_event_during_a_run_prevents_the_backoff() {
    let world = World::new();
    let slow = url("https://slow.example/a.git");
    world.git.serve(&slow, [oid(9)]);
    world.git.latency(&slow, secs(10));
    world.announce("a", &[&slow]);
    world.state("a", "state", &[1]);
    pass(secs(3)).await;
    world.state("a", "during", &[2]); // due at 3.5 s, in a run that ends at 20.5 s
    pass(secs(18)).await;
    let starts = world.told.starts("a");
    assert_eq!(starts.len(), 2, "the next run began as the first ended");
    assert_eq!(millis(starts[1] - world.began), 20_500);
    assert_eq!(
        world.git.fetches()[1].oids,
        [oid(2)],
        "and the first run asked for the new one too"
    );
}

/// Integration 4: one domain with many URLs gets 30 requests in the first minute, 5 at once at most.
#[tokio::test(start_paused = true)]
async fn integration_4_one_domain_gets_30_requests_in_the_first_minute_and_5_at_once() {
    let world = World::new();
    for number in 0..60 {
        let id = format!("repo{number}");
        let server = url(&format!("https://one.example/{number}.git"));
        world.git.serve(&server, [oid(number)]);
        world.git.latency(&server, secs(2));
        world.announce(&id, &[&server]);
        world.state(&id, &id, &[number]);
    }
    world.idle().await;
    let times = world.fetch_times();
    assert_eq!(times.len(), 60);
    assert_eq!(times.iter().filter(|&&at| at < 500 + 60_000).count(), 30);
    for (at, begin) in times.iter().enumerate() {
        let in_window = times[at..].iter().take_while(|&&other| other < begin + 60_000).count();
        assert!(in_window <= 30, "{in_window} starts in the minute from {begin} ms");
    }
    assert_eq!(world.git.most_on(), 5);
}

/// Integration 5: a second request of one identifier to one domain is blocked while one is on;
/// another identifier's is not, up to five.
#[tokio::test(start_paused = true)]
async fn integration_5_same_domain_and_identifier_blocked_another_identifier_allowed() {
    let world = World::new();
    for id in ["a", "b", "c", "d", "e", "f"] {
        let urls: Vec<_> =
            (0..3).map(|n| url(&format!("https://one.example/{id}{n}.git"))).collect();
        for server in &urls {
            world.git.serve(server, []);
            world.git.latency(server, secs(10));
        }
        world.announce(id, &urls.iter().collect::<Vec<_>>());
        world.state(id, id, &[1]);
    }
    let mut most = 0;
    for _ in 0..60 {
        pass(secs(1)).await;
        let on: Vec<_> = world.git.fetches().into_iter().filter(|f| f.ended.is_none()).collect();
        for id in ["a", "b", "c", "d", "e", "f"] {
            let of_one = on.iter().filter(|fetch| fetch.identifier.as_str() == id).count();
            assert!(of_one <= 1, "{id} has {of_one} requests on");
        }
        most = most.max(on.len());
    }
    assert_eq!(most, 5);
}

/// Integration 6: five identifiers start in parallel, and none twice.
#[tokio::test(start_paused = true)]
async fn integration_6_five_identifiers_in_parallel_without_duplicates() {
    let world = World::new();
    for number in 0..5 {
        let id = format!("repo{number}");
        let server = url(&format!("https://host{number}.example/a.git"));
        world.git.serve(&server, [oid(number)]);
        world.git.latency(&server, secs(5));
        world.announce(&id, &[&server]);
        world.state(&id, &id, &[number]);
        world.sync.event_held(id.as_str(), Arrival::Synced).unwrap();
    }
    world.idle().await;
    assert_eq!(world.fetch_times(), [500; 5]);
    assert_eq!(world.git.most_on(), 5);
    assert_eq!(world.told.passes().len(), 5);
}

/// Integration 7, P5: a URL that is announced during a run is used in it.
#[tokio::test(start_paused = true)]
async fn integration_7_a_url_added_during_a_run_is_used_in_it() {
    let world = World::new();
    let (one, two) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
    world.git.serve(&one, []);
    world.git.latency(&one, secs(5));
    world.git.serve(&two, [oid(1)]);
    world.announce("a", &[&one]);
    world.state("a", "state", &[1]);
    pass(secs(2)).await;
    world.announce("a", &[&one, &two]);
    world.idle().await;
    assert_eq!(world.git.asked(), [one.as_str(), two.as_str()]);
    assert_eq!(world.told.passes().len(), 1);
}

/// Integration 7, P5: an event that comes during a run brings its objects into it, also to a URL that was asked before.
#[tokio::test(start_paused = true)]
async fn integration_7_an_event_added_during_a_run_is_used_in_it() {
    let world = World::new();
    let one = url("https://one.example/a.git");
    world.git.serve(&one, [oid(1), oid(2)]);
    world.git.latency(&one, secs(5));
    world.announce("a", &[&one]);
    world.state("a", "first", &[1]);
    pass(secs(2)).await;
    world.store.hold("a", HeldEvent::state("second", "main", [oid(2)]));
    world.idle().await;
    assert_eq!(world.store.released(), ["first", "second"]);
    assert_eq!(world.told.passes().len(), 1);
    assert_eq!(world.git.fetches()[1].oids, [oid(2)]);
}

/// Integration 8, P5: when all URLs of a domain were tried, a new one on it is tried at the next attempt,
/// before the others.
#[tokio::test(start_paused = true)]
async fn integration_8_exhausted_domain_cleaned_up_and_its_new_url_tried_next_time() {
    let world = World::new();
    let (one, two) = (url("https://one.example/a.git"), url("https://one.example/b.git"));
    let new = url("https://one.example/new.git");
    for server in [&one, &two] {
        world.git.serve(server, []);
    }
    world.git.serve(&new, [oid(1)]);
    world.announce("a", &[&one, &two]);
    world.state("a", "state", &[1]);
    pass(secs(2)).await;
    assert_eq!(world.git.asked(), [one.as_str(), two.as_str()]);
    world.announce("a", &[&one, &two, &new]);
    world.idle().await;
    assert_eq!(world.git.asked()[2..], [new.as_str()]);
    assert!(world.sync.snapshot().identifiers.is_empty(), "nothing of it is kept");
}

/// Integration 9: a state and a pull request together.
#[tokio::test(start_paused = true)]
async fn integration_9_state_and_pull_request_together() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1), oid(2)]);
    world.announce("a", &[&server]);
    world.store.hold("a", HeldEvent::pull_request("pr", "main", oid(2), []));
    world.state("a", "state", &[1]);
    world.idle().await;
    assert_eq!(world.git.fetches().len(), 1);
    assert_eq!(world.git.fetches()[0].oids, [oid(1), oid(2)]);
    assert_eq!(world.store.released(), ["pr", "state"]);
}

/// Integration 10, P4: of ten URLs eight are on domains with capacity and two on a throttled one: the eight
/// are asked first, and the throttled domain only for what they did not have.
#[tokio::test(start_paused = true)]
async fn integration_10_available_domains_before_throttled_ones() {
    for missing_after_eight in [false, true] {
        let world = World::new();
        fill_window(&world, "https://busy.example").await;
        let busy: Vec<_> = (0..2).map(|n| url(&format!("https://busy.example/{n}.git"))).collect();
        let free: Vec<_> = (0..8).map(|n| url(&format!("https://free{n}.example/a.git"))).collect();
        for (number, server) in free.iter().enumerate() {
            world.git.serve(server, [oid(number as u64)]);
        }
        world.git.serve(&busy[0], []);
        world.git.serve(&busy[1], [oid(8)]);
        let mut announced: Vec<_> = busy.iter().collect();
        announced.extend(&free);
        world.announce("a", &announced);
        let before = world.git.fetches().len();
        let wanted = if missing_after_eight { 9 } else { 8 };
        world.state("a", "state", &(0..wanted).collect::<Vec<_>>());
        world.idle().await;
        assert!(world.store.released().contains(&"state".to_owned()));
        let asked = world.git.asked().split_off(before);
        let free: Vec<_> = free.iter().map(|url| url.to_string()).collect();
        assert_eq!(asked[..8], free[..]);
        let rest: &[String] = &if missing_after_eight {
            busy.iter().map(|url| url.to_string()).collect()
        } else {
            vec![]
        };
        assert_eq!(asked[8..], *rest);
    }
}

/// Trigger for synced events: 500 ms; of submitted ones: 3 minutes; the sooner one wins.
#[tokio::test(start_paused = true)]
async fn trigger_for_synced_events() {
    let world = World::new();
    world.store.hold("a", HeldEvent::state("submitted", "main", [oid(1)]));
    world.sync.event_held("a", Arrival::Submitted).unwrap();
    world.state("a", "synced", &[2]);
    pass(secs(1)).await;
    assert_eq!(millis(world.told.starts("a")[0] - world.began), 500);
}

/// Start of the loop: what the store holds is queued. Shutdown: it ends, and nothing runs after it.
#[tokio::test(start_paused = true)]
async fn start_and_shutdown_of_the_loop() {
    let (store, git) = (MemoryStore::new(), ScriptedFetcher::new());
    let server = url("https://one.example/a.git");
    git.serve(&server, [oid(1)]);
    store.announce("a", "main", [server]);
    store.hold("a", HeldEvent::state("state", "main", [oid(1)]));
    let world = World::over(store, git, |config| config, |builder| builder);
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
    world.sync.shutdown().await;
    assert!(world.sync.event_held("a", Arrival::Synced).is_err());
    world.store.hold("a", HeldEvent::state("late", "main", [oid(1)]));
    pass(Duration::from_secs(600)).await;
    assert_eq!(world.store.held("a"), ["late"]);
}

/// A pass that did everything it could and left something held is a `Retry`; one that left nothing is a `Done`.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_pass_is_told_to_the_scheduler() {
    let world = World::new();
    world.state("a", "state", &[1]);
    pass(secs(1)).await;
    assert_eq!(world.told.passes()[0].outcome, Outcome::Retry);
    world.git.put([oid(1)]);
    world.idle().await;
    assert_eq!(world.told.passes()[1].outcome, Outcome::Done);
    assert!(world.told.all().iter().any(|(_, event)| matches!(event, SyncEvent::Released(_))));
}
