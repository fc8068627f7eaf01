//! P13: every bound, at its edge; and that each setting changes what happens.

use purgatory_sync::{Arrival, HeldError, PassEnd, SyncConfig, SyncEvent};

use crate::common::*;

/// P13: over the bound the caller is told `Full`; the engine remembers it, and asks the store once
/// there is room. Nothing is lost.
#[tokio::test(start_paused = true)]
async fn over_the_queues_bound_the_caller_is_told_and_nothing_is_lost() {
    let world = World::with(|config| config.with_max_queued(2).unwrap());
    pass(ms(1)).await;
    for number in 0..5 {
        let (id, server) =
            (format!("repo{number}"), url(&format!("https://h{number}.example/a.git")));
        world.git.serve(&server, [oid(number)]);
        world.announce(&id, &[&server]);
        world.store.hold(id.as_str(), HeldEvent::state(&id, "main", [oid(number)]));
        let answer = world.sync.event_held(id.as_str(), Arrival::Synced);
        match answer {
            Ok(()) => assert!(number < 2),
            Err(HeldError::Full(full)) => assert_eq!(full.as_str(), id),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(world.sync.snapshot().identifiers.len(), 2);
    assert!(world.sync.snapshot().restoring, "something is still to be asked from the store");
    world.idle().await;
    assert_eq!(world.store.released().len(), 5);
    let full = |(_, event): &(_, SyncEvent)| matches!(event, SyncEvent::QueueFull(_));
    assert!(world.told.all().iter().filter(|told| full(told)).count() >= 3);
}

/// P13: a request for an identifier that is queued is taken, however full the queue is.
#[tokio::test(start_paused = true)]
async fn a_full_queue_still_takes_more_of_what_it_has() {
    let world = World::with(|config| config.with_max_queued(1).unwrap());
    pass(ms(1)).await;
    world.state("a", "state", &[1]);
    assert!(world.sync.event_held("b", Arrival::Synced).is_err());
    assert!(world.sync.event_held("a", Arrival::Synced).is_ok());
    assert!(world.sync.changed("a").is_ok());
}

/// P13: of one want no more objects are asked for at once than the bound; the others follow, and the event goes.
#[tokio::test(start_paused = true)]
async fn oids_per_want() {
    let world = World::with(|config| config.with_oids_per_want(10).unwrap());
    let server = url("https://one.example/a.git");
    world.git.serve(&server, (0..35).map(oid));
    world.git.put((0..5).map(oid));
    world.announce("a", &[&server]);
    world.state("a", "state", &(0..35).collect::<Vec<_>>());
    world.idle().await;
    let asked: Vec<usize> = world.git.fetches().iter().map(|fetch| fetch.oids.len()).collect();
    assert_eq!(asked, [10, 10, 10]);
    assert_eq!(world.store.released(), ["state"]);
    assert_eq!(world.told.passes().len(), 1);
}

/// P3, P13: objects that are nowhere, as many as the bound, hide no other of their want: what is here is found, what
/// a server has is asked for, and only then no source is left.
#[tokio::test(start_paused = true)]
async fn objects_that_are_nowhere_do_not_hide_others_of_their_want() {
    let world = World::with(|config| config.with_oids_per_want(10).unwrap());
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(50)]);
    world.git.put([oid(60)]);
    world.announce("a", &[&server]);
    for (event, oids) in
        [("big", (0..25).collect::<Vec<_>>()), ("far", vec![50]), ("here", vec![60])]
    {
        world.store.hold("a", HeldEvent::state(event, "main", oids.into_iter().map(oid)));
    }
    world.sync.event_held("a", Arrival::Synced).unwrap();
    pass(secs(5)).await;
    assert_eq!(world.store.released(), ["here", "far"]);
    let asked: Vec<usize> = world.git.fetches().iter().map(|fetch| fetch.oids.len()).collect();
    assert_eq!(asked, [10, 10, 6]);
    let first = &world.told.passes()[0].summary;
    assert_eq!((first.why, first.missing, first.no_source_left), (PassEnd::AllAsked, 25, true));
}

/// P13, P3: what is here is found whole, also beyond the bound, without a request.
#[tokio::test(start_paused = true)]
async fn oids_beyond_the_bound_that_are_here_are_found() {
    let world = World::with(|config| config.with_oids_per_want(10).unwrap());
    world.git.put((0..1_000).map(oid));
    world.state("a", "state", &(0..1_000).collect::<Vec<_>>());
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
    assert!(world.git.asked().is_empty());
}

/// P13: of one want's announced URLs the first 20 are used, of a pull request's own the first 3.
#[tokio::test(start_paused = true)]
async fn urls_per_want_and_own_urls_per_want() {
    for (change, announced, own) in [(false, 20, 3), (true, 2, 1)] {
        let world = World::with(|config| match change {
            false => config,
            true => config.with_urls_per_want(2).unwrap().with_own_urls_per_want(1).unwrap(),
        });
        let all: Vec<_> = (0..30).map(|n| url(&format!("https://host{n}.example/a.git"))).collect();
        let forks: Vec<_> =
            (0..10).map(|n| url(&format!("https://fork{n}.example/a.git"))).collect();
        world.announce("a", &all.iter().collect::<Vec<_>>());
        world.store.hold("a", HeldEvent::pull_request("pr", "main", oid(1), forks));
        world.state("a", "state", &[2]);
        pass(secs(5)).await;
        let asked = world.git.asked();
        let of_forks = asked.iter().filter(|url| url.contains("fork")).count();
        assert_eq!((asked.len() - of_forks, of_forks), (announced, own));
    }
}

/// P13: more wants than fit into one look are worked on in turns, the owner's first, within the same pass.
#[tokio::test(start_paused = true)]
async fn wants_per_look_in_turns_the_owners_first() {
    let world = World::with(|config| config.with_wants_per_look(10).unwrap());
    let server = url("https://one.example/a.git");
    world.git.serve(&server, (0..46).map(oid));
    world.announce("a", &[&server]);
    for number in 1..46 {
        let event = HeldEvent::pull_request(&number.to_string(), "main", oid(number), []);
        world.store.hold("a", event);
    }
    world.state("a", "state", &[0]);
    world.idle().await;
    let fetches = world.git.fetches();
    assert!(fetches[0].oids.contains(&oid(0)), "the owner's want is in the first turn");
    assert!(fetches.iter().all(|fetch| fetch.oids.len() <= 10));
    assert_eq!(world.store.released().len(), 46);
    assert_eq!(world.told.passes().len(), 1);
}

/// P13: when a pass ends in the middle of the turns, the next one goes on with the turn after.
#[tokio::test(start_paused = true)]
async fn a_pass_that_reached_its_limit_goes_on_with_the_next_turn() {
    let world = World::with(|config| {
        config.with_wants_per_look(1).unwrap().with_fetches_per_pass(2).unwrap()
    });
    for number in 0..3 {
        let event = HeldEvent::pull_request(
            &number.to_string(),
            "main",
            oid(number),
            (0..3).map(|n| url(&format!("https://fork{number}-{n}.example/a.git"))),
        );
        world.store.hold("a", event);
    }
    world.sync.event_held("a", Arrival::Synced).unwrap();
    pass(secs(70)).await;
    let asked = world.git.asked();
    assert_eq!(asked.len(), 6);
    for (turn, two) in asked.chunks(2).enumerate() {
        assert!(two.iter().all(|url| url.contains(&format!("fork{turn}-"))), "{asked:?}");
    }
}

/// P13: a pass makes no more requests than the bound.
#[tokio::test(start_paused = true)]
async fn fetches_per_pass() {
    let world = World::with(|config| config.with_fetches_per_pass(3).unwrap());
    let all: Vec<_> = (0..10).map(|n| url(&format!("https://host{n}.example/a.git"))).collect();
    world.announce("a", &all.iter().collect::<Vec<_>>());
    world.state("a", "state", &[1]);
    pass(secs(5)).await;
    assert_eq!(world.git.fetches().len(), 3);
    assert_eq!(world.told.passes()[0].summary.why, PassEnd::FetchLimit);
}

/// P13: no more fetches are on at once than the bound.
#[tokio::test(start_paused = true)]
async fn max_fetches() {
    let world = World::with(|config| config.with_max_fetches(3).unwrap());
    for number in 0..10 {
        let (id, server) =
            (format!("repo{number}"), url(&format!("https://h{number}.example/a.git")));
        world.git.serve(&server, [oid(number)]);
        world.git.latency(&server, secs(1));
        world.announce(&id, &[&server]);
        world.state(&id, &id, &[number]);
    }
    world.idle().await;
    assert_eq!(world.git.most_on(), 3);
}

/// P13: a fetch is cut off after its deadline.
#[tokio::test(start_paused = true)]
async fn fetch_deadline() {
    let world = World::with(|config| config.with_fetch_deadline(secs(7)).unwrap());
    let silent = url("https://silent.example/a.git");
    world.git.always(&silent, Reply::Hang);
    world.announce("a", &[&silent]);
    world.state("a", "state", &[1]);
    pass(secs(10)).await;
    let fetch = &world.git.fetches()[0];
    assert_eq!(fetch.ended.unwrap() - fetch.began, secs(7));
}

/// A look is cut off after its deadline.
#[tokio::test(start_paused = true)]
async fn look_deadline() {
    let world = World::with(|config| config.with_look_deadline(secs(7)).unwrap());
    world.store.trouble_needs(Trouble::Hang);
    world.state("a", "state", &[1]);
    pass(secs(10)).await;
    assert_eq!(world.told.passes()[0].summary.elapsed, secs(7));
}

/// The first of the five settings: rounds of starting begin the loop interval apart.
#[tokio::test(start_paused = true)]
async fn loop_interval() {
    for (interval, second) in [(1_000, 1_500), (10_000, 10_500)] {
        let world = World::with(|config| config.with_loop_interval(ms(interval)).unwrap());
        world.state("a", "a", &[1]);
        pass(ms(400)).await;
        world.state("b", "b", &[1]);
        pass(secs(12)).await;
        let at = |id| millis(world.told.starts(id)[0] - world.began);
        assert_eq!((at("a"), at("b")), (500, second));
    }
}

/// The second and third of the five settings: what one domain may be asked.
#[tokio::test(start_paused = true)]
async fn domain_concurrent_and_domain_rate_limit() {
    for (concurrent, rate) in [(2, 7), (3, 4)] {
        let world = World::with(|config| {
            let config = config.with_domain_concurrent(concurrent).unwrap();
            config.with_domain_rate_limit(rate).unwrap()
        });
        for number in 0..10 {
            let id = format!("repo{number}");
            let server = url(&format!("https://one.example/{number}.git"));
            world.git.serve(&server, [oid(number)]);
            world.git.latency(&server, secs(1));
            world.announce(&id, &[&server]);
            world.state(&id, &id, &[number]);
        }
        pass(secs(50)).await;
        assert_eq!((world.git.most_on(), world.git.fetches().len()), (concurrent, rate));
    }
}

/// The fourth and fifth of the five settings, and the longest wait of a synced event.
#[tokio::test(start_paused = true)]
async fn submitted_delay_and_synced_delay() {
    let change = |config: SyncConfig| {
        let config = config.with_submitted_delay(secs(30)).unwrap();
        let config = config.with_synced_delay(ms(200)).unwrap();
        config.with_synced_max_wait(ms(700)).unwrap()
    };
    for (changed, submitted, synced, stream) in
        [(false, 180_000, 500, 5_000), (true, 30_000, 200, 700)]
    {
        let world = if changed { World::with(change) } else { World::new() };
        world.sync.event_held("submitted", Arrival::Submitted).unwrap();
        world.sync.event_held("synced", Arrival::Synced).unwrap();
        for _ in 0..200 {
            world.sync.event_held("stream", Arrival::Synced).unwrap();
            pass(ms(50)).await;
        }
        pass(secs(200)).await;
        let at = |id| millis(world.told.starts(id)[0] - world.began);
        assert_eq!((at("submitted"), at("synced")), (submitted, synced));
        assert!((stream..stream + 1_000).contains(&at("stream")), "in its round");
    }
}

/// A synced delay above the longest wait is the longest wait.
#[tokio::test(start_paused = true)]
async fn a_long_synced_delay_is_not_cut_by_the_default_max_wait() {
    let world = World::with(|config| config.with_synced_delay(secs(20)).unwrap());
    world.state("a", "state", &[1]);
    pass(secs(21)).await;
    assert_eq!(millis(world.told.starts("a")[0] - world.began), 20_000);
}

/// The backoff.
#[tokio::test(start_paused = true)]
async fn backoff_initial_and_backoff_max() {
    let world = World::with(|config| {
        config.with_backoff_initial(secs(3)).unwrap().with_backoff_max(secs(10)).unwrap()
    });
    world.state("a", "state", &[1]);
    pass(secs(30)).await;
    let starts = world.told.starts("a");
    let gaps: Vec<u64> = starts.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
    assert_eq!(gaps, [3, 6, 10, 10]);
}

/// The grace of a shutdown, and no grace at all.
#[tokio::test(start_paused = true)]
async fn shutdown_grace() {
    for grace in [0, 2_000] {
        let world = World::with(|config| config.with_shutdown_grace(ms(grace)).unwrap());
        let silent = url("https://silent.example/a.git");
        world.git.always(&silent, Reply::Hang);
        world.announce("a", &[&silent]);
        world.state("a", "state", &[1]);
        pass(secs(1)).await;
        let before = tokio::time::Instant::now();
        world.sync.shutdown().await;
        assert_eq!(before.elapsed(), ms(grace));
        assert_eq!(world.git.on(), 0);
    }
}

/// The spread of a restore.
#[tokio::test(start_paused = true)]
async fn restore_spread() {
    let store = purgatory_sync::testing::MemoryStore::new();
    for number in 0..1_000 {
        let id = format!("repo{number}");
        store.hold(id.as_str(), HeldEvent::state(&id, "main", []));
    }
    let spread = |config: SyncConfig| config.with_restore_spread(secs(10)).unwrap();
    let git = purgatory_sync::testing::ScriptedFetcher::new();
    let world = World::over(store, git, spread, |builder| builder);
    world.idle().await;
    assert_eq!(world.began.elapsed().as_secs(), 10);
}

/// P11: one host on two ports is one domain.
#[test]
fn two_ports_of_a_host_are_one_domain() {
    let (one, two) = (url("https://one.example/a.git"), url("https://one.example:8443/a.git"));
    assert_ne!(one.endpoint(), two.endpoint());
    assert_eq!(one.domain(), two.domain());
}
