//! What bit stores that did this job before: one test per trap.

use ngit_adapter::{
    RepositoryId,
    nip34::Nip34Error,
    nostr::event::Event,
    store::{AdmitError, Full, HeldReason, Outcome, StoreConfig, Wake},
};
use nostr_database::RejectedReason;
use purgatory_sync::{EventStore, Identifier, Needs, Target};
use std::sync::atomic::Ordering;

use crate::store_support::*;

fn id() -> Identifier {
    Identifier::from("r")
}

/// A pull request whose `c` is a refspec rewrote branches; one with `HEAD` counted as present.
#[tokio::test]
async fn a_commit_that_is_no_object_id_is_refused_at_the_edge() {
    let world = World::new().await;
    let a = coordinate(1, "r");
    for c in ["+refs/heads/*:refs/heads/*", "HEAD", "é"] {
        let error =
            world.try_admit(&event(5, 1618, 1, &[&["a", &a], &["c", c]])).await.unwrap_err();
        assert!(error.is_rejection());
        assert!(matches!(error, AdmitError::Nip34(Nip34Error::BadTip(_))), "{error}");
    }
    assert!(world.held().await.is_empty());
}

/// P3: objects that are here release an event that has no usable source.
#[tokio::test]
async fn an_event_without_any_usable_url_is_released_when_its_objects_are_here() {
    let world = World::new().await;
    world.admit(&event(1, 30617, 1, &[&["d", "r"], &["clone", "ssh://git@a.example/r.git"]])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    let needs = world.needs("r").await;
    assert_eq!(needs.wants[0].oids, [oid(1)]);
    assert!(needs.wants[0].urls.is_empty());
    assert_eq!(world.release("r", &[oid(1)]).await.released, 1);
}

/// G9, P8: where the refs of one repository cannot be set, its event stays held and others go.
#[tokio::test]
async fn a_failure_to_set_refs_keeps_the_event_and_holds_up_no_other() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    world.admit(&announcement(2, "r", 1, &[])).await;
    let (stuck, free) = (state(1, "r", 2, &[oid(1)]), state(2, "r", 3, &[oid(2)]));
    world.admit(&stuck).await;
    world.admit(&free).await;
    world.refs.failing.lock().unwrap().insert(key(1));
    let here = [oid(1), oid(2)];
    let error = world.try_release("r", &here).await.unwrap_err();
    assert!(error.to_string().contains("refs"), "{error}");
    assert!(world.is_stored(&free).await);
    assert!(!world.is_stored(&stuck).await && world.held().await.contains(&stuck.id));
    world.refs.failing.lock().unwrap().clear();
    assert_eq!(world.release("r", &here).await.released, 1);
}

/// R3: an empty state deletes nothing.
#[tokio::test]
async fn a_state_without_refs_moves_no_ref() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    world.release("r", &[oid(1)]).await;
    let before = world.refs.all();
    let empty = state(1, "r", 3, &[]);
    world.admit(&empty).await;
    assert_eq!(world.release("r", &[]).await.released, 1);
    assert!(world.is_stored(&empty).await);
    assert_eq!(world.refs.all(), before);
}

/// R5: of two states of one second the lower id wins, in the refs and in the database, in both orders.
#[tokio::test]
async fn refs_and_database_agree_about_two_states_of_one_second() {
    let (one, two) = (state(1, "r", 5, &[oid(1)]), state(1, "r", 5, &[oid(2)]));
    let (lower, higher) = if one.id < two.id { (&one, &two) } else { (&two, &one) };
    let main = if one.id < two.id { oid(1) } else { oid(2) };
    for order in [[lower, higher], [higher, lower]] {
        for release_between in [true, false] {
            let world = World::new().await;
            world.admit(&announcement(1, "r", 1, &[])).await;
            for event in order {
                world.admit(event).await;
                if release_between {
                    world.release("r", &[oid(1), oid(2)]).await;
                }
            }
            world.release("r", &[oid(1), oid(2)]).await;
            assert_eq!(world.refs.main(1, "r"), Some(main));
            assert!(world.is_stored(lower).await && !world.is_stored(higher).await);
            assert!(world.held().await.is_empty());
        }
    }
}

/// R3: what the database does not take is not told, and neither is its announcement; it stays held.
#[tokio::test]
async fn what_was_not_saved_is_not_told_and_not_let_go() {
    let world = World::new().await;
    let (announced, state) = (announcement(1, "r", 1, &[]), state(1, "r", 2, &[oid(1)]));
    world.admit(&announced).await;
    world.admit(&state).await;
    world.database.refuses.lock().unwrap().insert(state.id, RejectedReason::Other);
    assert_eq!(world.release("r", &[oid(1)]).await.held, 1);
    assert!(world.told().is_empty() && !world.is_stored(&announced).await);
    let held = world.store.held().await.unwrap();
    assert!(matches!(&held[0].reason, Some(HeldReason::Trouble(_))), "{held:?}");
    world.database.refuses.lock().unwrap().clear();

    // The state is saved and its announcement is not: that one stays, and goes later.
    world.database.refuses.lock().unwrap().insert(announced.id, RejectedReason::Other);
    world.release("r", &[oid(1)]).await;
    assert!(!world.told().contains(&announced.id));
    world.database.refuses.lock().unwrap().clear();
    world.release("r", &[oid(1)]).await;
    world.admit(&announced).await;
    assert!(world.is_stored(&announced).await && world.is_stored(&state).await);
}

/// P8: a database that fails keeps every event.
#[tokio::test]
async fn a_failing_database_loses_nothing() {
    let world = World::new().await;
    let (announced, state) = (announcement(1, "r", 1, &[]), state(1, "r", 2, &[oid(1)]));
    world.admit(&announced).await;
    world.admit(&state).await;
    world.database.fails.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(world.try_release("r", &[oid(1)]).await.is_err());
    }
    assert!(world.told().is_empty() && world.held().await.contains(&state.id));
    world.database.fails.store(false, Ordering::Relaxed);
    assert_eq!(world.release("r", &[oid(1)]).await.released, 1);
    assert_eq!(world.told(), [announced.id, state.id]);
}

/// R4: another owner's announcement with the same identifier gives no authority and is not released.
#[tokio::test]
async fn another_owner_of_the_identifier_has_no_say() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    let thief = announcement(2, "r", 1, &[]);
    world.admit(&thief).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    world.admit(&state(2, "r", 3, &[oid(2)])).await;
    world.release("r", &[oid(1)]).await;
    assert!(!world.is_stored(&thief).await);
    world.release("r", &[oid(2)]).await;
    assert_eq!(world.refs.main(1, "r"), Some(oid(1)));
    assert_eq!(world.refs.main(2, "r"), Some(oid(2)));
}

/// R8: a repository that has only pull requests is hunted for again after a restart.
#[tokio::test]
async fn a_repository_with_pull_requests_alone_is_queued_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = World::with(StoreConfig::default(), Some(&journal)).await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    world.admit(&pull_request(5, &[1], "r", 2, oid(1))).await;
    world.restart(&journal).await;
    assert_eq!(world.store.held_identifiers().await.unwrap(), [id()]);
    assert_eq!(world.needs("r").await.wants[0].oids, [oid(1)]);
}

/// R7: a placeholder and its event do not overwrite each other.
#[tokio::test]
async fn a_placeholder_overwrites_no_event() {
    let world = World::new().await;
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.admit(&pull).await;
    let repository = RepositoryId::new(key(1), id());
    world.store.place(pull.id, repository, oid(9)).await.unwrap();
    assert_eq!(world.store.pull_request_tip(&pull.id).await.unwrap(), Some(oid(1)));
    assert!(world.held().await.contains(&pull.id));
    // Its data is another: the event waits for its own, and the ref goes if it still leads to the other one.
    world.admit(&announcement(1, "r", 1, &[])).await;
    assert_eq!(world.release("r", &[oid(9)]).await.held, 1);
    world.pass_time(100_000);
    let gone = world.store.expire().await.unwrap().placeholders;
    assert_eq!(gone.iter().map(|(id, it)| (*id, it.tip)).collect::<Vec<_>>(), [(pull.id, oid(9))]);
}

/// R9: a duplicate is no new event: nothing is woken, no clock starts anew.
#[tokio::test]
async fn a_repeated_event_wakes_nobody() {
    let world = World::new().await;
    let (announced, state) = (announcement(1, "r", 1, &[]), state(1, "r", 2, &[oid(1)]));
    for event in [&announced, &state] {
        world.admit(event).await;
        let again = world.admit(event).await;
        assert_eq!((again.outcome.clone(), again.wake()), (Outcome::Duplicate, Wake::Nothing));
    }
    world.release("r", &[oid(1)]).await;
    for event in [&announced, &state] {
        let again = world.admit(event).await;
        assert_eq!((again.outcome.clone(), again.wake()), (Outcome::Duplicate, Wake::Nothing));
    }
    assert_eq!(world.told().len(), 2);
}

/// R1: an event with a known id that was tampered with is checked like any other.
#[tokio::test]
async fn a_tampered_event_with_a_known_id_is_refused() {
    let world = World::new().await;
    let good = state(1, "r", 2, &[oid(1)]);
    world.admit(&good).await;
    let json = good.as_json().replace(&oid(1).to_string(), &oid(2).to_string());
    let error = world.store.admit_json(json.as_bytes(), ngit_adapter::store::Arrival::Synced).await;
    assert!(matches!(error, Err(AdmitError::Event(_))));
    assert_eq!(world.store.held().await.unwrap()[0].oids, [oid(1)]);
}

/// R4: an announcement that is itself held gives URLs and authority: no deadlock.
#[tokio::test]
async fn a_held_announcement_counts_for_urls_and_authority() {
    let world = World::new().await;
    let announced = announcement(1, "r", 1, &[2]);
    world.admit(&announced).await;
    world.admit(&state(2, "r", 2, &[oid(1)])).await;
    assert!(!world.is_stored(&announced).await);
    let needs = world.needs("r").await;
    assert_eq!(needs.wants[0].urls[0].as_str(), "https://o1.example/r.git");
    world.release("r", &[oid(1)]).await;
    assert!(world.is_stored(&announced).await);
}

/// P9: what came since the look waits for its own objects.
#[tokio::test]
async fn a_newer_state_during_a_fetch_is_not_let_go_with_the_older() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    let (older, newer) = (state(1, "r", 2, &[oid(1)]), state(1, "r", 3, &[oid(2)]));
    world.admit(&older).await;
    let looked: Vec<_> = world.needs("r").await.wants[0].oids.clone();
    world.admit(&newer).await;
    assert_eq!(world.release("r", &looked).await.held, 1);
    assert!(!world.is_stored(&older).await && !world.is_stored(&newer).await);
    assert_eq!(world.needs("r").await.wants[0].oids, [oid(2)]);
}

/// R5: an older state of the same author is not held beside a newer one, nor taken after it.
#[tokio::test]
async fn of_one_authors_states_the_newest_is_kept() {
    let world = World::new().await;
    let (older, newer) = (state(1, "r", 2, &[oid(1)]), state(1, "r", 3, &[oid(2)]));
    world.admit(&newer).await;
    assert_eq!(world.admit(&older).await.outcome, Outcome::Superseded);
    assert_eq!(world.held().await.len(), 1);
    world.admit(&announcement(1, "r", 1, &[])).await;
    world.release("r", &[oid(2)]).await;
    assert_eq!(world.admit(&older).await.outcome, Outcome::Superseded);
    assert_eq!(world.needs("r").await.held, 0);
}

/// R4: without the announcement that trusted them, the refs go back to who has a say now.
#[tokio::test]
async fn refs_follow_a_maintainer_no_longer_once_the_owner_says_so() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[2])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    world.admit(&state(2, "r", 3, &[oid(2)])).await;
    world.release("r", &[oid(1), oid(2)]).await;
    assert_eq!(world.refs.main(1, "r"), Some(oid(2)));
    let alone = announcement(1, "r", 4, &[]);
    assert_eq!(world.admit(&alone).await.outcome, Outcome::Announced { served: true });
    assert_eq!(world.refs.main(1, "r"), Some(oid(1)));
}

/// R1: what is held is bounded, for all and for each repository, and by what strangers can send.
#[tokio::test]
async fn what_is_held_is_bounded() {
    let config = StoreConfig {
        max_held: 7,
        max_announcements: 2,
        max_states: 2,
        max_pull_requests: 2,
        ..StoreConfig::default()
    };
    let world = World::with(config, None).await;
    async fn full(world: &World, event: Event) -> Option<Full> {
        match world.try_admit(&event).await {
            Err(AdmitError::Full(what, _)) => Some(what),
            result => {
                result.unwrap();
                None
            }
        }
    }
    let announcements = [0, 1, 2].map(|it| announcement(it, "r", 1, &[]));
    let states = [0, 1, 2].map(|it| state(it, "r", 1, &[oid(1)]));
    let pulls = [0, 1, 2].map(|it| pull_request(it, &[1], "r", 1, oid(1)));
    for (events, what) in
        [(announcements, Full::Announcements), (states, Full::States), (pulls, Full::PullRequests)]
    {
        let [one, two, three] = events;
        assert_eq!(full(&world, one).await, None);
        assert_eq!(full(&world, two).await, None);
        assert_eq!(full(&world, three).await, Some(what));
    }
    // A newer one of the same author takes the place of the older one, and no room.
    assert_eq!(full(&world, state(1, "r", 2, &[oid(1)])).await, None);
    assert_eq!(full(&world, announcement(1, "s", 1, &[])).await, None);
    assert_eq!(full(&world, announcement(1, "t", 1, &[])).await, Some(Full::Events));
}

/// R8: the announcements that a crash left behind go at the next start, without any other event.
#[tokio::test]
async fn a_start_serves_the_announcements_that_a_crash_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = World::with(StoreConfig::default(), Some(&journal)).await;
    // 1 trusts 2, who will trust 3, whose state is served.
    let waiting = announcement(1, "r", 1, &[2]);
    world.admit(&waiting).await;
    world.admit(&announcement(3, "r", 1, &[])).await;
    world.admit(&state(3, "r", 2, &[oid(3)])).await;
    world.release("r", &[oid(3)]).await;
    let link = announcement(2, "r", 3, &[3]);
    // Killed right after the link was saved.
    world.fuse.light(3, &journal);
    let journal_then = world.fuse.guard(world.admit(&link)).await.unwrap_err();
    world.fuse.put_out();
    assert!(world.is_stored(&link).await && !world.is_stored(&waiting).await);
    let copy = folder.path().join("copy");
    std::fs::write(&copy, journal_then).unwrap();
    world.restart(&copy).await;
    assert!(world.is_stored(&waiting).await);
    assert_eq!(world.refs.main(1, "r"), Some(oid(3)));
}

fn targets(needs: &Needs) -> Vec<Target> {
    needs.wants.iter().map(|want| want.target.clone()).collect()
}

fn target(owner: u8) -> Target {
    RepositoryId::new(key(owner), id()).to_target()
}

/// R4, P13: strangers who announce a name and trust its author do not come before the author's own repository, nor
/// before one that had data.
#[tokio::test]
async fn strangers_who_trust_an_author_come_last() {
    let world = World::new().await;
    for stranger in 20..40 {
        world.admit(&announcement(stranger, "r", 1, &[1, 2])).await;
    }
    world.admit(&announcement(1, "r", 1, &[2])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    let needs = world.needs("r").await;
    assert_eq!((needs.wants.len(), &targets(&needs)[0]), (21, &target(1)));

    // A maintainer without an announcement: the repository that is served comes first.
    world.database.refuses.lock().unwrap().extend(
        (20..40)
            .map(|stranger| (announcement(stranger, "r", 1, &[1, 2]).id, RejectedReason::Other)),
    );
    world.release("r", &[oid(1)]).await;
    world.admit(&state(2, "r", 3, &[oid(2)])).await;
    let needs = world.needs("r").await;
    assert_eq!((needs.wants.len(), &targets(&needs)[0]), (21, &target(1)));
}

/// R1: a large state of an author whom many strangers trust is not multiplied by their number, and is wanted and
/// released all the same.
#[tokio::test]
async fn many_strangers_do_not_multiply_what_is_wanted() {
    let world = World::new().await;
    for stranger in 20..60 {
        world.admit(&announcement(stranger, "r", 1, &[1])).await;
    }
    world.admit(&announcement(1, "r", 1, &[])).await;
    let many: Vec<_> = (1..=5_000).map(oid).collect();
    world.admit(&state(1, "r", 2, &many)).await;
    let needs = world.needs("r").await;
    assert_eq!((&needs.wants[0].target, needs.wants[0].oids.len()), (&target(1), many.len()));
    let all: usize = needs.wants.iter().map(|want| want.oids.len()).sum();
    assert!(all <= 105_000, "{all}");
    assert_eq!(world.release("r", &many).await.held, 0);
    assert_eq!(world.refs.main(20, "r"), Some(oid(1)));
}
