//! Deletions (kind 5): an author's own events go, held or served, whichever comes first.

use ngit_adapter::store::{Outcome, Wake};
use purgatory_sync::Identifier;

use crate::store_support::*;

fn changed() -> Wake {
    Wake::Changed(vec![Identifier::from("r")])
}

/// R5: a held event is deleted by its id.
#[tokio::test]
async fn a_held_event_is_deleted_by_its_id() {
    let world = World::new().await;
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.admit(&pull).await;
    let deletion = event(5, 5, 3, &[&["e", &pull.id.to_hex()]]);
    assert_eq!(world.admit(&deletion).await.wake(), changed());
    assert!(world.held().await.is_empty());
    // It does not come back, and the deletion is no new one.
    assert_eq!(world.admit(&pull).await.outcome, Outcome::Deleted);
    assert_eq!(world.admit(&deletion).await.outcome, Outcome::Duplicate);
}

/// R5: a held state is deleted by its address, also one whose identifier has a colon, and a later one is not.
#[tokio::test]
async fn a_held_state_is_deleted_by_its_address_up_to_the_deletion() {
    for id in ["r", "a:b:c", ""] {
        let world = World::new().await;
        let (old, new) = (state(1, id, 10, &[oid(1)]), state(1, id, 12, &[oid(2)]));
        world.admit(&old).await;
        let address = coordinate(1, id).replacen("30617", "30618", 1);
        world.admit(&event(1, 5, 11, &[&["a", &address]])).await;
        assert!(world.held().await.is_empty());
        assert_eq!(world.admit(&old).await.outcome, Outcome::Deleted);
        assert_eq!(world.admit(&new).await.outcome, Outcome::Held { data_first: false });
    }
}

/// R3: a deletion that comes before its event has the same end.
#[tokio::test]
async fn a_deletion_that_comes_first_counts() {
    let world = World::new().await;
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.admit(&event(5, 5, 3, &[&["e", &pull.id.to_hex()]])).await;
    assert_eq!(world.admit(&pull).await.outcome, Outcome::Deleted);
    let announced = announcement(1, "r", 2, &[]);
    world.admit(&event(1, 5, 3, &[&["a", &coordinate(1, "r")]])).await;
    assert_eq!(world.admit(&announced).await.outcome, Outcome::Deleted);
}

/// R4: nobody deletes what another has signed.
#[tokio::test]
async fn nobody_deletes_anothers_events() {
    let world = World::new().await;
    let (announced, pull) = (announcement(1, "r", 1, &[]), pull_request(5, &[1], "r", 2, oid(1)));
    world.admit(&announced).await;
    world.admit(&pull).await;
    let address = coordinate(1, "r");
    let deletion = event(
        6,
        5,
        9,
        &[&["e", &pull.id.to_hex()], &["e", &announced.id.to_hex()], &["a", &address]],
    );
    assert_eq!(world.admit(&deletion).await.wake(), Wake::Nothing);
    assert_eq!(world.held().await.len(), 1);
    assert_eq!(world.release("r", &[oid(1)]).await.released, 1);
}

/// R4: without its announcement a state has no authority any more, and another state leads the refs.
#[tokio::test]
async fn a_deleted_announcement_takes_its_authority_with_it() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[2])).await;
    world.admit(&announcement(2, "r", 1, &[3])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    world.admit(&state(3, "r", 3, &[oid(3)])).await;
    world.release("r", &[oid(1), oid(3)]).await;
    assert_eq!(world.refs.main(1, "r"), Some(oid(3)));
    world.admit(&event(2, 5, 4, &[&["a", &coordinate(2, "r")]])).await;
    assert_eq!(world.refs.main(1, "r"), Some(oid(1)));
    // By its id, too.
    let world = World::new().await;
    let trusting = announcement(1, "r", 1, &[2]);
    world.admit(&trusting).await;
    world.admit(&announcement(2, "r", 1, &[])).await;
    world.admit(&state(2, "r", 2, &[oid(2)])).await;
    world.release("r", &[oid(2)]).await;
    let calls = world.refs.calls.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(
        world.admit(&event(1, 5, 4, &[&["e", &trusting.id.to_hex()]])).await.wake(),
        changed()
    );
    assert!(!world.is_stored(&trusting).await);
    // Somebody without anything there costs nobody a look at the refs.
    world.admit(&event(6, 5, 4, &[&["a", &coordinate(6, "r")]])).await;
    assert!(world.refs.calls.load(std::sync::atomic::Ordering::Relaxed) <= calls + 1);
    // A held one, too.
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    assert_eq!(world.needs("r").await.wants.len(), 1);
    assert_eq!(
        world.admit(&event(1, 5, 4, &[&["a", &coordinate(1, "r")]])).await.wake(),
        changed()
    );
    assert_eq!(world.needs("r").await.wants.len(), 0);
}

/// R3: a held event whose author deleted it elsewhere, in the database alone, is not served.
#[tokio::test]
async fn a_deletion_that_only_the_database_knows_counts_at_the_release() {
    let world = World::new().await;
    let announced = announcement(1, "r", 1, &[]);
    world.admit(&announced).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    let address = coordinate(1, "r").replacen("30617", "30618", 1);
    use nostr_database::NostrDatabase;
    world.database.save_event(&event(1, 5, 3, &[&["a", &address]])).await.unwrap();
    assert_eq!(world.release("r", &[oid(1)]).await.held, 0);
    assert!(world.told().is_empty());
}

/// G9, R3: refs are those of released events: a state that was deleted by its address moves none, and one that the
/// database then does not take moves them back.
#[tokio::test]
async fn a_state_that_is_not_served_leaves_no_refs_moved() {
    use nostr_database::{NostrDatabase, RejectedReason};
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[2])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    world.release("r", &[oid(1)]).await;
    let calls = || world.refs.calls.load(std::sync::atomic::Ordering::Relaxed);
    let before = calls();
    world.admit(&state(2, "r", 3, &[oid(2)])).await;
    let address = coordinate(2, "r").replacen("30617", "30618", 1);
    world.database.save_event(&event(2, 5, 4, &[&["a", &address]])).await.unwrap();
    assert_eq!(world.release("r", &[oid(2)]).await.held, 0);
    assert_eq!((calls(), world.refs.main(1, "r")), (before, Some(oid(1))));

    let refused = state(2, "r", 5, &[oid(3)]);
    world.admit(&refused).await;
    world.database.refuses.lock().unwrap().insert(refused.id, RejectedReason::Other);
    assert_eq!(world.release("r", &[oid(3)]).await.held, 1);
    assert_eq!(world.refs.main(1, "r"), Some(oid(1)));
}

/// R1: a look at an author's deletions reads those that name the event, whatever number of others there is, and however
/// the author's key and the event's id are written in them.
#[tokio::test]
async fn only_deletions_that_name_an_event_are_read() {
    let world = World::new().await;
    for number in 0..200_u64 {
        let other = pull_request(5, &[1], "other", number, oid(7)).id.to_hex();
        world.admit(&event(5, 5, number, &[&["e", &other], &["a", "30618:x:y"]])).await;
    }
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.admit(&event(5, 5, 3, &[&["e", &pull.id.to_hex().to_uppercase()]])).await;
    let address = format!("30618:{}:r", key(5).to_hex().to_uppercase());
    world.admit(&event(5, 5, 10, &[&["a", &address]])).await;
    world.database.read.store(0, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(world.admit(&pull).await.outcome, Outcome::Deleted);
    assert_eq!(world.admit(&state(5, "r", 10, &[oid(1)])).await.outcome, Outcome::Deleted);
    let later = world.admit(&state(5, "r", 11, &[oid(1)])).await;
    assert_eq!(later.outcome, Outcome::Held { data_first: false });
    let read = world.database.read.load(std::sync::atomic::Ordering::Relaxed);
    assert!(read < 10, "{read} events were read");
}

/// R5, P8: where the refs of one owner's repository cannot be set, those of the others follow all the same.
#[tokio::test]
async fn a_failure_at_one_owner_holds_up_no_other() {
    for (failing, other) in [(1, 3), (3, 1)] {
        let world = World::new().await;
        for owner in [1, 3] {
            world.admit(&announcement(owner, "r", 1, &[2])).await;
            world.admit(&state(owner, "r", 2, &[oid(u32::from(owner))])).await;
        }
        let newer = state(2, "r", 5, &[oid(9)]);
        world.admit(&newer).await;
        world.release("r", &[oid(1), oid(3), oid(9)]).await;
        assert_eq!(world.refs.main(other, "r"), Some(oid(9)));
        world.refs.failing.lock().unwrap().insert(key(failing));
        let deletion = event(2, 5, 6, &[&["e", &newer.id.to_hex()]]);
        assert!(world.try_admit(&deletion).await.is_err());
        assert_eq!(world.refs.main(other, "r"), Some(oid(u32::from(other))), "{other}");
    }
}
