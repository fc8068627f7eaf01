//! R6: what is held too long goes; a sync does not bring it back, its author does.

use std::{collections::BTreeMap, time::Duration};

use ngit_adapter::{
    RepositoryId,
    store::{Arrival, Outcome, StoreConfig, Wake},
};
use purgatory_sync::Identifier;

use crate::store_support::*;

const HALF_HOUR: u64 = 30 * 60;
const WEEK: u64 = 7 * 24 * 60 * 60;

async fn relay() -> World {
    World::with(StoreConfig::relay(), None).await
}

fn id() -> Identifier {
    Identifier::from("r")
}

/// R6: a held event goes after 30 minutes, not before.
#[tokio::test]
async fn a_held_event_goes_after_half_an_hour() {
    let world = relay().await;
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.admit(&pull).await;
    assert_eq!(world.store.until_expiry(), Some(Duration::from_secs(HALF_HOUR)));
    world.pass_time(HALF_HOUR - 1);
    assert!(world.store.expire().await.unwrap().events.is_empty());
    world.pass_time(1);
    let gone = world.store.expire().await.unwrap();
    assert_eq!(gone.events, [pull.id]);
    assert!(gone.identifiers.contains(&id()));
    assert!(world.held().await.is_empty());
    assert_eq!(world.store.until_expiry(), None);
}

/// R6: one that was looked for in vain is remembered for 7 days: a sync does not bring it back.
#[tokio::test]
async fn one_that_was_looked_for_in_vain_does_not_come_back_by_a_sync() {
    let world = relay().await;
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.admit(&pull).await;
    world.store.fetch_ended(&id());
    world.pass_time(HALF_HOUR);
    world.store.expire().await.unwrap();
    for _ in 0..3 {
        let again = world.admit(&pull).await;
        assert_eq!((again.outcome.clone(), again.wake()), (Outcome::GivenUp, Wake::Nothing));
        world.pass_time(WEEK / 3 - 1);
        world.store.expire().await.unwrap();
    }
    world.pass_time(3);
    world.store.expire().await.unwrap();
    assert_eq!(world.admit(&pull).await.outcome, Outcome::Held { data_first: false });
}

/// R6: its author's own resubmission is let in, and from then on a sync is a duplicate.
#[tokio::test]
async fn its_authors_resubmission_is_let_in() {
    let world = relay().await;
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.admit(&pull).await;
    world.store.fetch_ended(&id());
    world.pass_time(HALF_HOUR);
    world.store.expire().await.unwrap();
    let again = world.store.admit(verified(&pull), Arrival::Submitted).await.unwrap();
    assert_eq!(again.outcome, Outcome::Held { data_first: false });
    assert_eq!(world.admit(&pull).await.outcome, Outcome::Duplicate);
}

/// R6: one that nobody had a chance to look for is not remembered.
#[tokio::test]
async fn one_that_was_never_looked_for_may_come_again() {
    let world = relay().await;
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.store.fetch_ended(&id());
    world.admit(&pull).await;
    world.pass_time(HALF_HOUR);
    world.store.expire().await.unwrap();
    assert_eq!(world.admit(&pull).await.outcome, Outcome::Held { data_first: false });
}

/// R6: a new state, or new data, extends the announcement.
#[tokio::test]
async fn a_new_state_or_new_data_extends_the_announcement() {
    let world = relay().await;
    let announced = announcement(1, "r", 1, &[2]);
    let stranger = announcement(3, "r", 1, &[]);
    world.admit(&announced).await;
    world.admit(&stranger).await;
    world.pass_time(HALF_HOUR - 1);
    let state = state(2, "r", 2, &[oid(1)]);
    world.admit(&state).await;
    world.pass_time(HALF_HOUR - 1);
    // The announcement that the state has no say under was not extended.
    assert_eq!(world.store.expire().await.unwrap().events, [stranger.id]);
    world.store.data_arrived(&id());
    world.pass_time(HALF_HOUR - 1);
    assert_eq!(world.store.expire().await.unwrap().events, [state.id]);
    world.pass_time(1);
    assert_eq!(world.store.expire().await.unwrap().events, [announced.id]);
}

/// R6, R8: downtime counts, and what was given up stays so over a restart.
#[tokio::test]
async fn downtime_counts_and_ids_stay_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = World::with(StoreConfig::relay(), Some(&journal)).await;
    let (one, two) = (pull_request(5, &[1], "r", 2, oid(1)), pull_request(6, &[1], "s", 2, oid(1)));
    world.admit(&one).await;
    world.store.fetch_ended(&id());
    world.admit(&two).await;
    world.pass_time(HALF_HOUR + 5);
    world.restart(&journal).await;
    assert_eq!(world.store.expire().await.unwrap().events.len(), 2);
    world.restart(&journal).await;
    assert_eq!(world.admit(&one).await.outcome, Outcome::GivenUp);
    assert_eq!(world.admit(&two).await.outcome, Outcome::Held { data_first: false });
}

/// R6: under `sync` nothing expires; a relay that takes its journal over gives all of it half an hour.
#[tokio::test]
async fn a_sync_expires_nothing_and_a_relay_takes_it_over() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = World::with(StoreConfig::default(), Some(&journal)).await;
    let pull = pull_request(5, &[1], "r", 2, oid(1));
    world.admit(&pull).await;
    world.pass_time(100 * WEEK);
    assert!(world.store.expire().await.unwrap().events.is_empty());
    world.config = StoreConfig::relay();
    world.restart(&journal).await;
    assert!(world.store.expire().await.unwrap().events.is_empty());
    world.pass_time(HALF_HOUR);
    assert_eq!(world.store.expire().await.unwrap().events, [pull.id]);
}

/// R6: how many ids are remembered is bounded; the oldest go first.
#[tokio::test]
async fn remembered_ids_are_bounded() {
    let world = World::with(StoreConfig { max_remembered: 2, ..StoreConfig::relay() }, None).await;
    let pulls: Vec<_> = (0..3).map(|it| pull_request(5, &[1], "r", it, oid(1))).collect();
    for pull in &pulls {
        world.admit(pull).await;
        world.store.fetch_ended(&id());
        world.pass_time(HALF_HOUR);
        world.store.expire().await.unwrap();
    }
    assert_eq!(world.admit(&pulls[0]).await.outcome, Outcome::Held { data_first: false });
    assert_eq!(world.admit(&pulls[1]).await.outcome, Outcome::GivenUp);
    assert_eq!(world.admit(&pulls[2]).await.outcome, Outcome::GivenUp);
}

/// R7: data that comes first waits 20 minutes for its event, and asks for a look at once when that comes.
#[tokio::test]
async fn a_placeholder_waits_for_its_event_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = World::with(StoreConfig::relay(), Some(&journal)).await;
    let (comes, never) =
        (pull_request(5, &[1], "r", 2, oid(1)), pull_request(6, &[1], "r", 2, oid(2)));
    let repository = RepositoryId::new(key(1), id());
    world.store.place(comes.id, repository.clone(), oid(1)).await.unwrap();
    world.store.place(never.id, repository.clone(), oid(2)).await.unwrap();
    world.restart(&journal).await;
    world.pass_time(20 * 60 - 1);
    let admission = world.admit(&comes).await;
    assert_eq!(admission.outcome, Outcome::Held { data_first: true });
    assert_eq!(admission.wake(), Wake::Changed(vec![id()]));
    assert!(world.store.expire().await.unwrap().placeholders.is_empty());
    world.pass_time(1);
    let gone = world.store.expire().await.unwrap().placeholders;
    assert_eq!(gone.len(), 1);
    assert_eq!((gone[0].0, &gone[0].1.repository), (never.id, &repository));
}

/// R7: a placeholder of which the database cannot tell whether it is met waits until it can. The others go, and none is
/// forgotten before it was told.
#[tokio::test]
async fn a_placeholder_that_cannot_be_judged_stays_and_holds_up_no_other() {
    let world = relay().await;
    let repository = RepositoryId::new(key(1), id());
    let mut events = Vec::new();
    for number in 0..3 {
        let event = pull_request(6, &[1], "r", 2, oid(number)).id;
        world.store.place(event, repository.clone(), oid(number)).await.unwrap();
        world.pass_time(1);
        events.push(event);
    }
    *world.database.unreadable.lock().unwrap() = Some(events[1]);
    world.pass_time(20 * 60);
    let gone = async || {
        let gone = world.store.expire().await.unwrap().placeholders;
        gone.into_iter().map(|(event, _)| event).collect::<Vec<_>>()
    };
    assert_eq!(gone().await, [events[0], events[2]]);
    assert!(gone().await.is_empty());
    *world.database.unreadable.lock().unwrap() = None;
    assert_eq!(gone().await, [events[1]]);
}

/// R7: a commit that was pushed where its event, when it comes, does not say goes from there, whether the event is held
/// or served by then. One that is where it says stays.
#[tokio::test]
async fn a_commit_that_was_pushed_to_the_wrong_repository_goes() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = World::with(StoreConfig::relay(), Some(&journal)).await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    let (right, wrong) = (RepositoryId::new(key(1), id()), RepositoryId::new(key(2), id()));
    let pulls: Vec<_> = (0..4).map(|it| pull_request(5, &[1], "r", 2, oid(it))).collect();
    world.store.place(pulls[0].id, wrong.clone(), oid(0)).await.unwrap();
    world.store.place(pulls[1].id, right.clone(), oid(77)).await.unwrap();
    world.store.place(pulls[2].id, right.clone(), oid(2)).await.unwrap();
    for pull in &pulls[..2] {
        assert_eq!(world.admit(pull).await.outcome, Outcome::Held { data_first: false });
    }
    assert_eq!(world.admit(&pulls[2]).await.outcome, Outcome::Held { data_first: true });
    world.release("r", &[oid(1)]).await;
    world.restart(&journal).await;
    let gone = world.store.expire().await.unwrap().placeholders;
    let gone: BTreeMap<_, _> =
        gone.iter().map(|(event, it)| (*event, (&it.repository, it.tip))).collect();
    let expected =
        BTreeMap::from([(pulls[0].id, (&wrong, oid(0))), (pulls[1].id, (&right, oid(77)))]);
    assert_eq!(gone, expected);
    // One that is noted when its event is served already: what it says stays, the other goes.
    world.admit(&pulls[3]).await;
    world.release("r", &[oid(2), oid(3)]).await;
    world.store.place(pulls[2].id, right, oid(2)).await.unwrap();
    world.store.place(pulls[3].id, wrong.clone(), oid(3)).await.unwrap();
    world.pass_time(20 * 60);
    let gone = world.store.expire().await.unwrap().placeholders;
    assert_eq!(
        gone.iter().map(|(event, it)| (*event, &it.repository)).collect::<Vec<_>>(),
        [(pulls[3].id, &wrong)]
    );
}

/// R7: placeholders are bounded: a stranger may push as many as there is room for.
#[tokio::test]
async fn placeholders_are_bounded() {
    let world =
        World::with(StoreConfig { max_placeholders: 1, ..StoreConfig::relay() }, None).await;
    let repository = RepositoryId::new(key(1), id());
    let (one, two) = (pull_request(5, &[1], "r", 2, oid(1)), pull_request(5, &[1], "r", 3, oid(1)));
    world.store.place(one.id, repository.clone(), oid(1)).await.unwrap();
    world.store.place(one.id, repository.clone(), oid(2)).await.unwrap();
    assert!(world.store.place(two.id, repository, oid(1)).await.is_err());
}

/// NIP-40: an event that says it is over is not taken, and not served if it is over when its data comes.
#[tokio::test]
async fn an_event_that_is_over_is_neither_taken_nor_served() {
    let world = relay().await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    let until = (START + 10).to_string();
    let tip = oid(1).to_string();
    let brief =
        event(1, 30618, 2, &[&["d", "r"], &["refs/heads/main", &tip], &["expiration", &until]]);
    world.admit(&brief).await;
    world.pass_time(11);
    assert_eq!(world.release("r", &[oid(1)]).await.held, 0);
    assert!(world.told().is_empty() && world.refs.all().is_empty());
    assert_eq!(world.admit(&brief).await.outcome, Outcome::Expired);
}

/// R7: a push finds the states that it may bring the repository to, and releases what it completes.
#[tokio::test]
async fn a_push_finds_its_states_and_takes_the_announcement_along() {
    let world = relay().await;
    let announced = announcement(1, "r", 1, &[2]);
    world.admit(&announced).await;
    world.admit(&state(2, "r", 2, &[oid(2)])).await;
    world.admit(&state(1, "r", 3, &[oid(1)])).await;
    world.admit(&state(9, "r", 9, &[oid(9)])).await;
    let repository = RepositoryId::new(key(1), id());
    let states = world.store.rightful_states(&repository).await.unwrap();
    assert_eq!(states.iter().map(|it| it.author).collect::<Vec<_>>(), [key(1), key(2)]);
    assert!(states.iter().all(|it| !it.served));
    let released = world.store.pushed(&repository, &[oid(2)]).await.unwrap();
    assert_eq!((released.released, released.held), (1, 2));
    assert!(world.is_stored(&announced).await);
    let states = world.store.rightful_states(&repository).await.unwrap();
    assert_eq!(states.iter().map(|it| it.served).collect::<Vec<_>>(), [false, true]);
    // A push that completes no event serves the announcement all the same.
    let other = announcement(4, "s", 1, &[]);
    world.admit(&other).await;
    world.store.pushed(&RepositoryId::new(key(4), "s".into()), &[]).await.unwrap();
    assert!(world.is_stored(&other).await);
}
