//! P1, P2, P4: waiting for a domain and for a fetch slot.

use std::num::NonZeroU32;

use purgatory_sync::{
    Activity, Arrival, PassEnd, State,
    domain_throttle::{DomainThrottle, Limits, Throttle},
};
use std::sync::Arc;

use crate::common::*;

/// P1, P13: 10,000 identifiers wait for one domain with 32 fetch slots. One more identifier, whose domain is
/// free, starts when it is due. Those who wait hold no slot, and the domain gets its 30 a minute, 5 at once.
#[tokio::test(start_paused = true)]
async fn ten_thousand_wait_for_one_domain_and_one_more_on_a_free_domain_starts_when_due() {
    let world = World::new();
    for number in 0..10_000 {
        let id = format!("repo{number}");
        let server = url(&format!("https://busy.example/{number}.git"));
        world.git.serve(&server, [oid(number)]);
        world.git.latency(&server, secs(30));
        world.announce(&id, &[&server]);
        world.state(&id, &id, &[number]);
    }
    pass(secs(60)).await;
    let in_line = |state: &State| matches!(state, State::Running(Activity::InLine { .. }));
    let snapshot = world.sync.snapshot();
    let waiting = snapshot.identifiers.iter().filter(|each| in_line(&each.state)).count();
    assert_eq!(waiting + snapshot.fetching() + world.store.released().len(), 10_000);
    assert!(waiting > 9_900, "{waiting} wait");
    assert_eq!(world.git.most_on(), 5);
    let free = url("https://free.example/a.git");
    world.git.serve(&free, [oid(77_777)]);
    world.announce("free", &[&free]);
    let held_at = world.began.elapsed();
    world.state("free", "free", &[77_777]);
    pass(secs(2)).await;
    let fetch = world.git.fetches().into_iter().find(|fetch| fetch.url == free).unwrap();
    let began = fetch.began.duration_since((world.began + held_at).into_std());
    assert_eq!(began, ms(500));
    assert!(world.store.released().contains(&"free".to_owned()));
    // Five at once, each 30 s: ten a minute.
    pass(secs(600)).await;
    assert_eq!(world.git.most_on(), 5 + 1);
    let fetches = world.git.fetches().into_iter().filter(|fetch| fetch.url != free).count();
    assert!((110..=115).contains(&fetches), "{fetches} fetches in 11 minutes");
    world.sync.shutdown().await;
}

/// P13: never more fetches at once than there are slots, over all domains, and all get their turn.
#[tokio::test(start_paused = true)]
async fn fetch_slots_bound_what_is_on_over_all_domains() {
    let world = World::new();
    for number in 0..200 {
        let id = format!("repo{number}");
        let server = url(&format!("https://host{number}.example/a.git"));
        world.git.serve(&server, [oid(number)]);
        world.git.latency(&server, secs(10));
        world.announce(&id, &[&server]);
        world.state(&id, &id, &[number]);
    }
    pass(secs(2)).await;
    let snapshot = world.sync.snapshot();
    assert_eq!(snapshot.fetching(), 32);
    let for_slot = |state: &State| *state == State::Running(Activity::WaitingForSlot);
    assert_eq!(snapshot.identifiers.iter().filter(|each| for_slot(&each.state)).count(), 168);
    world.idle().await;
    assert_eq!(world.git.most_on(), 32);
    assert_eq!(world.store.released().len(), 200);
    // 200 fetches of 10 s, 32 at once, without a gap.
    assert_eq!(millis(world.began.elapsed()) / 10_000, 7);
}

/// P1, L6: one slot and several domains with lines: whoever may go goes, no order of slot and permit blocks.
#[tokio::test(start_paused = true)]
async fn one_slot_and_throttled_domains_do_not_block_each_other() {
    let world = World::with(|config| {
        config.with_max_fetches(1).unwrap().with_domain_concurrent(1).unwrap()
    });
    let mut identifiers = 0;
    for host in 0..3 {
        for number in 0..45 {
            let (id, oid_of) = (format!("repo{host}-{number}"), host * 1_000 + number);
            let server = url(&format!("https://host{host}.example/{number}.git"));
            world.git.serve(&server, [oid(oid_of)]);
            world.git.latency(&server, ms(100));
            world.announce(&id, &[&server]);
            world.state(&id, &id, &[oid_of]);
            identifiers += 1;
        }
    }
    world.idle().await;
    assert_eq!(world.store.released().len(), identifiers);
    assert_eq!(world.git.most_on(), 1);
    // 30 of each domain in the first minute, the other 15 in the second.
    let times = world.fetch_times();
    assert_eq!(times.iter().filter(|&&at| at < 60_500).count(), 90);
    assert!(times.iter().all(|&at| at < 70_000), "nobody waits longer than the window asks for");
}

/// P2: when a permit comes after a wait the store is asked again. What expired is not asked for, and the
/// permit goes back unused: the next in line goes at once and the window is not charged.
#[tokio::test(start_paused = true)]
async fn a_permit_for_nothing_goes_back_unused() {
    let world = World::new();
    fill_window(&world, "https://busy.example").await;
    let before = world.git.fetches().len();
    for (number, id) in [(1, "expired"), (2, "wanted")] {
        let server = url(&format!("https://busy.example/{id}.git"));
        world.git.serve(&server, [oid(number)]);
        world.announce(id, &[&server]);
        world.state(id, id, &[number]);
        pass(ms(100)).await;
    }
    pass(secs(5)).await;
    assert!(matches!(world.state_of("expired"), Some(State::Running(Activity::InLine { .. }))));
    // Without a word to the engine: it sees it when the permit comes.
    world.store.expire("expired", "expired");
    world.idle().await;
    let fetches = world.git.fetches().split_off(before);
    assert_eq!(fetches.len(), 1);
    assert_eq!(fetches[0].identifier.as_str(), "wanted");
    assert_eq!(world.store.released().last().unwrap(), "wanted");
}

/// P13: a wait in line ends when nothing is held any more.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_nothing_is_held_any_more() {
    let world = World::new();
    fill_window(&world, "https://busy.example").await;
    let server = url("https://busy.example/a.git");
    world.announce("a", &[&server]);
    world.state("a", "state", &[1]);
    pass(secs(5)).await;
    assert!(matches!(world.state_of("a"), Some(State::Running(Activity::InLine { .. }))));
    world.store.expire("a", "state");
    world.sync.changed("a").unwrap();
    pass(ms(100)).await;
    assert_eq!(world.told.passes().last().unwrap().summary.why, PassEnd::NothingHeld);
}

/// P4: a new event wakes a wait. If a domain with capacity is to be asked, the pass leaves the line, asks, and
/// queues anew.
#[tokio::test(start_paused = true)]
async fn a_new_event_wakes_a_wait_and_a_free_domain_is_asked() {
    let world = World::new();
    fill_window(&world, "https://busy.example").await;
    let before = world.git.fetches().len();
    let (busy, free) = (url("https://busy.example/a.git"), url("https://free.example/a.git"));
    world.git.serve(&busy, [oid(1)]);
    world.git.serve(&free, [oid(2)]);
    world.announce("a", &[&busy]);
    world.state("a", "first", &[1]);
    pass(secs(5)).await;
    world.announce("a", &[&busy, &free]);
    let at = millis(world.began.elapsed());
    world.state("a", "second", &[2]);
    pass(ms(50)).await;
    assert_eq!(world.fetch_times()[before..], [at], "at once");
    assert_eq!(world.git.fetches()[before].oids, [oid(1), oid(2)]);
    assert_eq!(world.store.released().last().unwrap(), "second");
    assert!(matches!(world.state_of("a"), Some(State::Running(Activity::InLine { .. }))));
    world.idle().await;
    assert_eq!(world.git.fetches().last().unwrap().url, busy);
}

/// P4: if no domain with capacity is to be asked, the pass keeps its places and joins new queues.
#[tokio::test(start_paused = true)]
async fn a_new_event_wakes_a_wait_and_places_are_kept() {
    let world = World::new();
    fill_window(&world, "https://busy.example").await;
    fill_window(&world, "https://full.example").await;
    let before = world.git.fetches().len();
    for (id, number) in [("first", 1), ("second", 2)] {
        let server = url(&format!("https://busy.example/{id}.git"));
        world.git.serve(&server, [oid(number)]);
        world.announce(id, &[&server]);
        world.state(id, id, &[number]);
        pass(ms(200)).await;
    }
    pass(secs(3)).await;
    let full = url("https://full.example/first.git");
    world.announce("first", &[&url("https://busy.example/first.git"), &full]);
    world.state("first", "more", &[3]);
    pass(secs(1)).await;
    let Some(State::Running(Activity::InLine { domains })) = world.state_of("first") else {
        panic!("it waits")
    };
    let domains: Vec<_> = domains.iter().map(|domain| domain.as_str()).collect();
    assert_eq!(domains, ["busy.example", "full.example"]);
    wait_for(|| world.git.fetches().len() > before + 1).await;
    let order: Vec<_> =
        world.git.fetches()[before..].iter().map(|fetch| fetch.identifier.to_string()).collect();
    assert_eq!(order[..2], ["first", "second"], "it did not lose its place");
}

/// P4: a pause that comes while passes stand in line makes them leave it, at once; they do not wait for its end.
#[tokio::test(start_paused = true)]
async fn a_pause_makes_those_in_line_leave() {
    let world = World::with(|config| config.with_domain_concurrent(2).unwrap());
    let answer_at = secs(10);
    for (id, number) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        let server = url(&format!("https://busy.example/{id}.git"));
        world.git.always(&server, Reply::RetryAfter(secs(3_600)));
        world.git.latency(&server, answer_at);
        world.announce(id, &[&server]);
        world.state(id, id, &[number]);
    }
    pass(secs(10)).await;
    assert!(matches!(world.state_of("c"), Some(State::Running(Activity::InLine { .. }))));
    pass(secs(1)).await;
    // Two different keys were told to come back later: that pauses the domain.
    for id in ["c", "d"] {
        assert!(matches!(world.state_of(id), Some(State::Paused { .. })), "{id}");
    }
    assert_eq!(world.git.fetches().len(), 2);
}

/// P11, L1-L3: the limits are those of the throttle that is given, also when something else uses it too.
#[tokio::test(start_paused = true)]
async fn a_shared_throttle_is_respected() {
    let limits = Limits {
        max_concurrent: NonZeroU32::new(2).unwrap(),
        max_per_window: NonZeroU32::new(4).unwrap(),
        window: secs(60),
    };
    let throttle = Arc::new(DomainThrottle::builder().limits(limits).build());
    let shared: Arc<dyn Throttle> = throttle.clone();
    let world = World::build(|config| config, |builder| builder.throttle(shared));
    let server = url("https://one.example/a.git");
    let mine = throttle.try_acquire(server.endpoint(), "somebody else").unwrap();
    for number in 0..5 {
        let id = format!("repo{number}");
        let server = url(&format!("https://one.example/{number}.git"));
        world.git.serve(&server, [oid(number)]);
        world.git.latency(&server, secs(1));
        world.announce(&id, &[&server]);
        world.state(&id, &id, &[number]);
    }
    pass(secs(10)).await;
    assert_eq!(world.git.most_on(), 1, "one of two permits is somebody else's");
    assert_eq!(world.git.fetches().len(), 3, "three of four starts are left");
    drop(mine);
    world.idle().await;
    assert_eq!(world.store.released().len(), 5);
}

/// P4: a storm of events costs a look each 100 ms and not one for each event.
#[tokio::test(start_paused = true)]
async fn a_storm_of_events_does_not_make_a_storm_of_looks() {
    let world = World::new();
    fill_window(&world, "https://busy.example").await;
    world.announce("a", &[&url("https://busy.example/a.git")]);
    world.state("a", "state", &[1]);
    pass(secs(3)).await;
    let before = world.store.looks();
    for _ in 0..1_000 {
        world.sync.event_held("a", Arrival::Synced).unwrap();
        pass(ms(1)).await;
    }
    let looks = world.store.looks() - before;
    assert!((9..=12).contains(&looks), "{looks} looks in a second");
}

/// P1, L6: a store that hangs, asked by a pass that has just got a permit, does not keep the permit and the slot: after a
/// tenth of a second the next in line has them. And the pass does not look in vain once more when it gets the next permit.
#[tokio::test(start_paused = true)]
async fn a_slow_look_keeps_no_permit() {
    let world = World::with(|config| {
        config.with_max_fetches(1).unwrap().with_domain_concurrent(1).unwrap()
    });
    for (number, id) in (1..).zip(["a", "b", "c"]) {
        let server = url(&format!("https://busy.example/{id}.git"));
        world.git.serve(&server, [oid(number)]);
        world.git.latency(&server, secs(5));
        world.announce(id, &[&server]);
        world.state(id, id, &[number]);
    }
    // Its first look chooses; its second has a permit in hand, and takes three seconds.
    let looks = std::sync::atomic::AtomicUsize::new(0);
    world.store.before_each_look(move |store, id| {
        if id.as_str() == "b" {
            let look = looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            store.slow_down(if look == 1 { secs(3) } else { ms(0) });
        } else {
            store.slow_down(ms(0));
        }
    });
    world.idle().await;
    assert_eq!(world.fetch_times(), [500, 5_600, 10_600]);
    assert_eq!(world.git.asked().last().unwrap(), "https://busy.example/b.git");
    assert_eq!(world.store.released(), ["a", "c", "b"]);
}
