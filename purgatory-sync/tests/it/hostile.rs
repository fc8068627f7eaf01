//! P5, P8: servers, fetchers and stores that do what they must not. The pass ends, the engine goes on.

use purgatory_sync::{FetchErrorKind, FetchOutcome, PassEnd, SyncEvent, keyed_debounce::Outcome};

use crate::common::*;

/// The outcomes of all fetches, in order.
fn outcomes(world: &World) -> Vec<FetchOutcome> {
    let ended = |(_, event)| match event {
        SyncEvent::FetchEnded(fetch) => Some(fetch.outcome),
        _ => None,
    };
    world.told.all().into_iter().filter_map(ended).collect()
}

/// P8: a URL that panics has failed; the next one is asked, and the domain's slot is free again.
#[tokio::test(start_paused = true)]
async fn a_url_that_panics_has_failed() {
    let world = World::with(|config| config.with_domain_concurrent(1).unwrap());
    let (bad, good) = (url("https://one.example/bad.git"), url("https://one.example/good.git"));
    world.git.always(&bad, Reply::Panic);
    world.git.serve(&good, [oid(1)]);
    world.announce("a", &[&bad, &good]);
    world.state("a", "state", &[1]);
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
    assert_eq!(
        outcomes(&world),
        [FetchOutcome::Failed(FetchErrorKind::Panicked), FetchOutcome::Fetched]
    );
    assert_eq!(world.told.passes().len(), 1);
}

/// P13: a URL that hangs is cut off after 10 minutes, and the next one is asked.
#[tokio::test(start_paused = true)]
async fn a_url_that_hangs_is_cut_off_after_ten_minutes() {
    let world = World::new();
    let (bad, good) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
    world.git.always(&bad, Reply::Hang);
    world.git.serve(&good, [oid(1)]);
    world.announce("a", &[&bad, &good]);
    world.state("a", "state", &[1]);
    world.idle().await;
    assert_eq!(world.fetch_times(), [500, 600_500]);
    assert_eq!(
        outcomes(&world),
        [FetchOutcome::Failed(FetchErrorKind::Timeout), FetchOutcome::Fetched]
    );
}

/// A URL that lies, or answers with other objects, brought nothing: what is here is looked at.
#[tokio::test(start_paused = true)]
async fn a_url_that_lies_brought_nothing() {
    let world = World::new();
    let (liar, stranger) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
    world.git.always(&liar, Reply::Lie(vec![oid(1)]));
    world.git.always(&stranger, Reply::Lie(vec![oid(7), oid(8), oid(9)]));
    world.announce("a", &[&liar, &stranger]);
    world.state("a", "state", &[1]);
    pass(secs(5)).await;
    assert_eq!(outcomes(&world), [FetchOutcome::NotThere, FetchOutcome::NotThere]);
    assert!(world.store.released().is_empty());
    assert_eq!(world.git.fetches().len(), 2, "each is asked once");
}

/// P5: a repository that is announced anew before every look, with another URL each time, makes 64 requests in
/// a pass, and the pass ends.
#[tokio::test(start_paused = true)]
async fn an_announcement_that_changes_before_every_look_ends() {
    let world = World::new();
    let number = std::sync::atomic::AtomicU64::new(0);
    world.store.before_each_look(move |store, id| {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        store.announce(id.clone(), "main", [url(&format!("https://host{number}.example/a.git"))]);
    });
    world.state("a", "state", &[1]);
    pass(secs(15)).await;
    let first = &world.told.passes()[0];
    assert_eq!((first.summary.why, first.summary.fetches), (PassEnd::FetchLimit, 64));
    assert_eq!(first.outcome, Outcome::Retry);
    assert_eq!(world.git.fetches().len(), 64);
}

/// P5: a store whose events never end, each complete, keeps no pass for ever.
#[tokio::test(start_paused = true)]
async fn a_store_that_always_has_one_more_to_release_ends() {
    let world = World::new();
    world.git.put((0..100_000).map(oid));
    let number = std::sync::atomic::AtomicU64::new(0);
    world.store.before_each_look(move |store, id| {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        store.hold(id.clone(), HeldEvent::state(&number.to_string(), "main", [oid(number)]));
        store.hold(id.clone(), HeldEvent::state("never", "main", [oid(1_000_000)]));
    });
    world.state("a", "never", &[1_000_000]);
    pass(secs(15)).await;
    let first = &world.told.passes()[0];
    assert_eq!(first.summary.why, PassEnd::AllAsked);
    assert!(first.summary.released < 20, "{} released in one pass", first.summary.released);
}

/// P5, P13: a store that wants more from look to look, without a source, keeps no pass for ever.
#[tokio::test(start_paused = true)]
async fn a_store_that_wants_more_from_look_to_look_ends() {
    let world = World::with(|config| config.with_wants_per_look(2).unwrap());
    let number = std::sync::atomic::AtomicU64::new(0);
    world.store.before_each_look(move |store, id| {
        for _ in 0..5 {
            let number = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let event = HeldEvent::pull_request(&number.to_string(), "main", oid(number), []);
            store.hold(id.clone(), event);
        }
    });
    world.state("a", "state", &[1_000_000]);
    pass(secs(15)).await;
    assert_eq!(world.told.passes().len(), 1);
    assert!(world.store.looks() < 10);
}

/// A store that calls back from within a look makes a pass look ten times a second and not more.
#[tokio::test(start_paused = true)]
async fn a_store_that_rings_from_within_a_look_does_not_make_the_pass_spin() {
    let world = World::new();
    fill_window(&world, "https://busy.example").await;
    world.announce("a", &[&url("https://busy.example/a.git")]);
    let weak = world.sync.downgrade();
    world.store.before_each_look(move |_, id| {
        if let Some(sync) = weak.upgrade() {
            let _ = sync.changed(id.clone());
        }
    });
    world.state("a", "state", &[1]);
    pass(secs(2)).await;
    let before = world.store.looks();
    pass(secs(10)).await;
    let looks = world.store.looks() - before;
    assert!((90..=110).contains(&looks), "{looks} looks in 10 s");
}

/// P8: an error or a panic of the store is a `Retry` after the backoff, whatever it happens in; nothing is lost.
#[tokio::test(start_paused = true)]
async fn trouble_of_the_store_is_a_retry_and_loses_nothing() {
    for trouble in [Trouble::Error, Trouble::Panic] {
        for in_release in [false, true] {
            let world = World::new();
            world.git.put([oid(1)]);
            if in_release {
                world.store.trouble_release(trouble);
            } else {
                world.store.trouble_needs(trouble);
            }
            world.state("a", "state", &[1]);
            pass(secs(5)).await;
            let first = world.told.passes()[0].clone();
            assert_eq!(first.outcome, Outcome::Retry);
            assert!(!first.summary.no_source_left);
            let why =
                if trouble == Trouble::Panic { PassEnd::Panicked } else { PassEnd::StoreFailed };
            assert_eq!(first.summary.why, why);
            assert_eq!(world.store.held("a"), ["state"]);
            world.idle().await;
            assert_eq!(world.store.released(), ["state"]);
            assert_eq!(millis(world.told.starts("a")[1] - world.began), 20_500);
        }
    }
}

/// P8: a store that never answers is left after 10 minutes.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_in_a_look_is_left() {
    let world = World::new();
    world.git.put([oid(1)]);
    world.store.trouble_needs(Trouble::Hang);
    world.state("a", "state", &[1]);
    world.idle().await;
    assert_eq!(world.told.passes()[0].summary.why, PassEnd::LookFailed);
    assert_eq!(millis(world.told.starts("a")[1] - world.began), 500 + 600_000 + 20_000);
    assert_eq!(world.store.released(), ["state"]);
}

/// A permit that came after a wait is not kept by a store that hangs: others of the domain go on.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_gives_its_permit_back_with_the_look() {
    let world = World::with(|config| {
        config.with_domain_concurrent(1).unwrap().with_look_deadline(secs(5)).unwrap()
    });
    for (id, number) in [("a", 1), ("b", 2), ("c", 3)] {
        let server = url(&format!("https://one.example/{id}.git"));
        world.git.serve(&server, [oid(number)]);
        world.git.latency(&server, secs(10));
        world.announce(id, &[&server]);
        world.state(id, id, &[number]);
        pass(ms(10)).await;
    }
    pass(secs(3)).await;
    // The first look after this is the one of the first pass, the second that of `b` with its permit.
    world.store.before_each_look(|store, id| {
        if id.as_str() == "b" {
            store.trouble_needs(Trouble::Hang);
        }
    });
    wait_for(|| world.store.released().contains(&"c".to_owned())).await;
    assert!(world.began.elapsed() < secs(40));
}

/// A look at the objects that fails is a `Retry`.
#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_looked_at_are_a_retry() {
    let world = World::new();
    world.git.put([oid(1)]);
    world.git.trouble_missing();
    world.state("a", "state", &[1]);
    world.idle().await;
    let first = &world.told.passes()[0];
    assert_eq!((first.summary.why, first.outcome), (PassEnd::LookFailed, Outcome::Retry));
    assert_eq!(world.store.released(), ["state"]);
}

/// An observer that panics stops nothing.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_stops_nothing() {
    let observer =
        std::sync::Arc::new(|_: &SyncEvent| panic!("the observer panics, as the test wants"));
    let world = World::build(|config| config, |builder| builder.observer(observer));
    world.git.put([oid(1)]);
    world.state("a", "state", &[1]);
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
}

/// P5: the pass that failed in the middle (a panic) is not begun with the same URL for ever.
#[tokio::test(start_paused = true)]
async fn a_crash_does_not_make_the_same_url_the_first_for_ever() {
    let world = World::new();
    let (one, two) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
    world.git.serve(&one, []);
    world.git.serve(&two, [oid(1)]);
    world.announce("a", &[&one, &two]);
    // Every look after the first request of a pass panics, in the first two passes.
    let git = world.git.clone();
    let crashed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let crashes = crashed.clone();
    world.store.before_each_look(move |store, _| {
        let asked = git.fetches().len();
        if asked > crashes.load(std::sync::atomic::Ordering::SeqCst) && asked <= 2 {
            crashes.store(asked, std::sync::atomic::Ordering::SeqCst);
            store.trouble_needs(Trouble::Panic);
        }
    });
    world.state("a", "state", &[1]);
    world.idle().await;
    assert_eq!(world.git.asked(), [one.to_string(), two.to_string()]);
    assert_eq!(crashed.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(world.store.released(), ["state"], "what came before the crash counts");
}
