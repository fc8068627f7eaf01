//! What happens to an event, from its arrival to its release.

use purgatory_sync::{Arrival, PassEnd, State, SyncEvent, keyed_debounce::Outcome};

use crate::common::*;

/// P3, P6: event first. The data comes from a server 500 ms after the event.
#[tokio::test(start_paused = true)]
async fn event_first_then_its_data_from_a_server() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1), oid(2)]);
    world.announce("a", &[&server]);
    world.state("a", "state", &[1, 2]);
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
    assert_eq!(world.fetch_times(), [500]);
    let fetch = &world.git.fetches()[0];
    assert_eq!(fetch.oids, [oid(1), oid(2)]);
    assert_eq!(fetch.targets.iter().map(|target| target.as_str()).collect::<Vec<_>>(), ["main"]);
    assert_eq!(world.told.passes().last().unwrap().outcome, Outcome::Done);
}

/// P3: data first. What is here is let go without a request, also without a usable URL.
#[tokio::test(start_paused = true)]
async fn data_first_then_the_event_goes_without_a_request() {
    let world = World::new();
    world.git.put([oid(1), oid(2)]);
    world.state("a", "state", &[1, 2]);
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
    assert!(world.git.asked().is_empty());
}

/// P2: a push after a submitted event: `changed` lets it go at once, long before the 3 minutes.
#[tokio::test(start_paused = true)]
async fn a_push_lets_a_submitted_event_go_at_once() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.announce("a", &[&server]);
    world.store.hold("a", HeldEvent::state("state", "main", [oid(1)]));
    world.sync.event_held("a", Arrival::Submitted).unwrap();
    pass(secs(10)).await;
    assert_eq!(
        world.state_of("a"),
        Some(State::Waiting { by: Some((world.began + secs(180)).into_std()) })
    );
    world.git.put([oid(1)]);
    world.sync.changed("a").unwrap();
    world.idle().await;
    assert_eq!(millis(world.began.elapsed()), 10_010);
    assert_eq!(world.store.released(), ["state"]);
    assert!(world.git.asked().is_empty(), "nobody was asked");
}

/// A submitted event whose push never comes is hunted for after 3 minutes.
#[tokio::test(start_paused = true)]
async fn a_submitted_event_is_hunted_for_after_three_minutes() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1)]);
    world.announce("a", &[&server]);
    world.store.hold("a", HeldEvent::state("state", "main", [oid(1)]));
    world.sync.event_held("a", Arrival::Submitted).unwrap();
    world.idle().await;
    assert_eq!(world.fetch_times(), [180_000]);
}

/// P5, P10: never. Twelve of twelve objects are missing everywhere: the pass ends, and so does the
/// next, after 20, 40, 80, 120, 120 s; then the event expires, and the engine forgets it.
#[tokio::test(start_paused = true)]
async fn what_is_nowhere_ends_every_pass_and_then_expires() {
    let world = World::new();
    let servers: Vec<_> =
        (0..3).map(|number| url(&format!("https://host{number}.example/a.git"))).collect();
    for server in &servers {
        world.git.serve(server, [oid(99)]);
    }
    world.announce("a", &servers.iter().collect::<Vec<_>>());
    world.state("a", "state", &(1..=12).collect::<Vec<_>>());
    pass(secs(400)).await;
    let starts = world.told.starts("a");
    let gaps: Vec<u64> = starts.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
    assert_eq!(gaps, [20, 40, 80, 120, 120]);
    for pass in world.told.passes() {
        assert_eq!(pass.outcome, Outcome::Retry);
        assert_eq!(pass.summary.why, PassEnd::AllAsked);
        assert_eq!((pass.summary.fetches, pass.summary.missing), (3, 12));
        assert!(pass.summary.no_source_left);
    }
    assert!(world.sync.snapshot().no_source_left());
    assert!(world.store.expire("a", "state"));
    world.sync.changed("a").unwrap();
    world.idle().await;
    assert!(world.store.released().is_empty());
    assert!(matches!(world.told.all().last().unwrap().1, SyncEvent::QueueIdle));
}

/// P9: an event is let go only when every object it waits for is here; `here` is every wanted object
/// that is; a release that frees nothing is not repeated until something changes.
#[tokio::test(start_paused = true)]
async fn nothing_is_let_go_early_and_a_fruitless_release_is_not_repeated() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1)]);
    world.announce("a", &[&server]);
    world.state("a", "half", &[1, 2]);
    pass(secs(300)).await;
    assert!(world.store.released().is_empty());
    let here: Vec<_> = world.store.releases().into_iter().map(|(_, here)| here).collect();
    assert_eq!(here, [vec![], vec![oid(1)]], "once with nothing, once with what came");
    world.git.put([oid(2)]);
    world.sync.changed("a").unwrap();
    world.idle().await;
    assert_eq!(world.store.released(), ["half"]);
    assert_eq!(world.store.releases().last().unwrap().1, [oid(1), oid(2)]);
}

/// P9: something that changed without a trace in the needs is something that changed.
#[tokio::test(start_paused = true)]
async fn a_blocked_event_is_offered_again_when_something_changed() {
    let world = World::new();
    world.store.hold("a", HeldEvent::state("blocked", "main", [oid(1)]).blocked());
    world.sync.event_held("a", Arrival::Synced).unwrap();
    pass(secs(300)).await;
    assert_eq!(world.store.releases().len(), 1);
    assert!(world.sync.snapshot().no_source_left(), "it wants nothing");
    world.git.put([oid(1)]);
    world.store.unblock("a");
    world.sync.changed("a").unwrap();
    world.idle().await;
    assert_eq!(world.store.released(), ["blocked"]);
}

/// P9: also if not even what is wanted is another than before: the word of the caller counts.
#[tokio::test(start_paused = true)]
async fn a_change_that_the_needs_do_not_show_counts() {
    let world = World::new();
    world.store.hold("a", HeldEvent::state("blocked", "main", []).blocked());
    world.sync.event_held("a", Arrival::Synced).unwrap();
    pass(secs(100)).await;
    assert_eq!(world.store.releases().len(), 1);
    world.store.unblock("a");
    world.sync.changed("a").unwrap();
    world.idle().await;
    assert_eq!(world.store.released(), ["blocked"]);
}

/// P6: what one server has is kept and its events go at once; the rest is asked elsewhere.
#[tokio::test(start_paused = true)]
async fn partial_is_progress() {
    let world = World::new();
    let (one, two) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
    world.git.serve(&one, [oid(1)]);
    world.git.serve(&two, [oid(2)]);
    world.git.latency(&two, secs(30));
    world.announce("a", &[&one, &two]);
    world.state("a", "first", &[1]);
    world.state("a", "second", &[2]);
    pass(secs(1)).await;
    assert_eq!(world.store.released(), ["first"], "while the second server takes its time");
    world.idle().await;
    assert_eq!(world.store.released(), ["first", "second"]);
    assert_eq!(world.git.fetches()[1].oids, [oid(2)], "what is here is not asked for again");
}
