//! How held events are released: what goes, in which order, and what moves with it.

use std::{cell::RefCell, collections::BTreeSet};

use ngit_adapter::store::{HeldReason, Outcome, Wake};
use purgatory_sync::{EventStore, Identifier, Origin};

use crate::store_support::*;

/// R2, R3: a state is not served before all its objects are here, and its announcement goes with it.
#[tokio::test]
async fn a_state_goes_with_its_announcement_once_all_its_objects_are_here() {
    let world = World::new().await;
    let announced = announcement(1, "r", 10, &[]);
    let state = state(1, "r", 20, &[oid(1), oid(2)]);
    assert_eq!(world.admit(&announced).await.outcome, Outcome::Announced { served: false });
    let admission = world.admit(&state).await;
    assert_eq!(admission.outcome, Outcome::Held { data_first: false });
    assert_eq!(admission.wake(), Wake::Held(Identifier::from("r")));

    assert_eq!(world.release("r", &[oid(1)]).await.held, 1);
    assert!(world.told().is_empty() && !world.is_stored(&announced).await);

    let released = world.release("r", &[oid(1), oid(2)]).await;
    assert_eq!((released.released, released.held), (1, 0));
    assert_eq!(world.told(), [announced.id, state.id]);
    assert!(world.is_stored(&announced).await && world.is_stored(&state).await);
    assert_eq!(world.refs.main(1, "r"), Some(oid(1)));
    assert!(world.store.held_identifiers().await.unwrap().is_empty());
}

/// R3: an announcement alone waits, and is not counted as held.
#[tokio::test]
async fn an_announcement_alone_waits_and_is_not_counted() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 10, &[])).await;
    assert_eq!(world.release("r", &[]).await.held, 0);
    assert!(world.store.held().await.unwrap().is_empty());
    assert!(world.store.held_identifiers().await.unwrap().is_empty());
    assert!(world.told().is_empty());
}

/// R3: a state without refs goes with or after its announcement, and moves nothing.
#[tokio::test]
async fn a_state_without_refs_goes_after_its_announcement() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 10, &[2])).await;
    let empty = state(1, "r", 15, &[]);
    world.admit(&empty).await;
    assert_eq!(world.release("r", &[]).await.held, 1);
    let held = world.store.held().await.unwrap();
    assert_eq!(held[0].reason, Some(HeldReason::AnnouncementWaits));

    let full = state(2, "r", 12, &[oid(1)]);
    world.admit(&full).await;
    assert_eq!(world.release("r", &[oid(1)]).await.held, 0);
    assert!(world.is_stored(&empty).await && world.is_stored(&full).await);
    assert_eq!(world.refs.main(1, "r"), Some(oid(1)));
}

/// R4: a state of somebody without authority is held, wants nothing and is not released.
#[tokio::test]
async fn a_strangers_state_wants_nothing_and_stays() {
    let world = World::new().await;
    let stranger = state(9, "r", 20, &[oid(1)]);
    world.admit(&stranger).await;
    assert_eq!(world.store.held().await.unwrap()[0].reason, Some(HeldReason::NotAnnounced));
    world.admit(&announcement(1, "r", 10, &[])).await;
    let needs = world.store.needs(&Identifier::from("r")).await.unwrap();
    assert_eq!((needs.held, needs.wants.len()), (1, 0));
    assert_eq!(world.release("r", &[oid(1)]).await.held, 1);
    assert_eq!(world.store.held().await.unwrap()[0].reason, Some(HeldReason::NoAuthority));

    // Until an announcement changes that.
    let admission = world.admit(&announcement(1, "r", 30, &[9])).await;
    assert_eq!(admission.wake(), Wake::Changed(vec![Identifier::from("r")]));
    assert_eq!(world.release("r", &[oid(1)]).await.held, 0);
    assert_eq!(world.refs.main(1, "r"), Some(oid(1)));
}

/// R4, P14: one want per owner's states and one per pull request, each with its sources.
#[tokio::test]
async fn wants_are_per_owner_and_per_pull_request() {
    let world = World::new().await;
    // 1 trusts 2, who has announced it too and trusts 3.
    world.admit(&announcement(1, "r", 10, &[2])).await;
    world.admit(&announcement(2, "r", 10, &[3])).await;
    world.admit(&state(3, "r", 20, &[oid(3)])).await;
    world.admit(&pull_request(7, &[1], "r", 20, oid(7))).await;
    let needs = world.store.needs(&Identifier::from("r")).await.unwrap();
    assert_eq!(needs.held, 2);
    let urls = |want: &purgatory_sync::Want| -> Vec<String> {
        want.urls.iter().map(ToString::to_string).collect()
    };
    let owners: BTreeSet<_> =
        needs.wants.iter().filter(|it| it.origin == Origin::Owner).map(urls).collect();
    let both = vec!["https://o1.example/r.git".to_owned(), "https://o2.example/r.git".to_owned()];
    assert_eq!(owners, BTreeSet::from([both.clone(), vec!["https://o2.example/r.git".to_owned()]]));
    let pulls: Vec<_> = needs.wants.iter().filter(|it| it.origin == Origin::Contributor).collect();
    assert_eq!(pulls.len(), 1);
    assert_eq!(urls(pulls[0]), both);
    assert_eq!(pulls[0].oids, [oid(7)]);
    assert_eq!(pulls[0].own_urls[0].as_str(), "https://fork7.example/f.git");
}

/// R5: an owner's refs follow the newest released state of all with authority; an older one moves nothing.
#[tokio::test]
async fn refs_follow_the_newest_state_and_an_older_one_moves_nothing() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 10, &[2])).await;
    let (newer, older) = (state(1, "r", 30, &[oid(2)]), state(2, "r", 20, &[oid(1)]));
    world.admit(&newer).await;
    world.release("r", &[oid(2)]).await;
    world.admit(&older).await;
    world.release("r", &[oid(1)]).await;
    assert!(world.is_stored(&newer).await && world.is_stored(&older).await);
    assert_eq!(world.refs.main(1, "r"), Some(oid(2)));
}

/// R4: two owners of one identifier: each repository follows its own owner.
#[tokio::test]
async fn another_owners_announcement_is_not_released_with_it() {
    let world = World::new().await;
    let (one, two) = (announcement(1, "r", 10, &[]), announcement(2, "r", 10, &[]));
    world.admit(&one).await;
    world.admit(&two).await;
    world.admit(&state(1, "r", 20, &[oid(1)])).await;
    world.release("r", &[oid(1)]).await;
    assert!(world.is_stored(&one).await);
    assert!(!world.is_stored(&two).await);
    assert_eq!(world.refs.main(2, "r"), None);
}

/// G9: refs that cannot stand together keep the event held, with the reason.
#[tokio::test]
async fn a_conflict_keeps_the_state_held_with_the_reason() {
    let world = World::new().await;
    world.refs.conflicts.lock().unwrap().insert(oid(1));
    world.admit(&announcement(1, "r", 10, &[])).await;
    world.admit(&state(1, "r", 20, &[oid(1)])).await;
    assert_eq!(world.release("r", &[oid(1)]).await.held, 1);
    let held = world.store.held().await.unwrap();
    let Some(HeldReason::Trouble(reason)) = &held[0].reason else { panic!("{held:?}") };
    assert!(reason.contains("a and a/b"), "{reason}");
    assert!(world.told().is_empty());
}

/// R3: a pull request sets its ref in every repository that it names and somebody announced.
#[tokio::test]
async fn a_pull_request_goes_to_every_announced_repository_that_it_names() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 10, &[])).await;
    let pull = pull_request(7, &[1, 2], "r", 20, oid(7));
    world.admit(&pull).await;
    world.release("r", &[oid(7)]).await;
    assert_eq!(world.refs.all().len(), 1);
    // The other owner comes later: nothing is missing then, so it is served at once.
    let late = announcement(2, "r", 30, &[]);
    assert_eq!(world.admit(&late).await.outcome, Outcome::Announced { served: true });
    assert_eq!(world.refs.all().len(), 2);
    assert!(world.refs.all().values().all(|it| it.pulls[&pull.id] == oid(7)));
}

thread_local! {
    /// What this thread logs, while somebody wants to read it.
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

struct ThreadLog;

impl std::io::Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.iter_mut().for_each(|log| log.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// R1: a name with a line break in it begins no line of the log.
#[tokio::test]
async fn a_name_forges_no_log_line() {
    // For all threads, because what one thread switches on may be switched off by what others see first.
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(|| ThreadLog)
        .init();
    LOG.set(Some(Vec::new()));
    let world = World::new().await;
    let id = "r\nforged";
    world.admit(&announcement(1, id, 1, &[])).await;
    world.admit(&state(1, id, 2, &[oid(1)])).await;
    world.release(id, &[oid(1)]).await;
    let log = String::from_utf8(LOG.take().unwrap()).unwrap();
    assert!(log.contains("state synced"), "{log}");
    assert!(!log.contains("\nforged"), "{log}");
}
