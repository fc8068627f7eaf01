//! The store on LMDB: what the database does otherwise than memory must not show.

use std::sync::Arc;

use ngit_adapter::store::{Arrival, NostrEventStore, Outcome, StoreConfig};
use nostr_lmdb::NostrLmdb;

use crate::store_support::*;

async fn world(folder: &std::path::Path) -> World {
    let database = Arc::new(NostrLmdb::open(folder.join("lmdb")).await.unwrap());
    World::over(StoreConfig::default(), Some(&folder.join("journal")), database).await
}

/// R8: what was released is in the database, and what was not is in the journal, after a restart of both.
#[tokio::test]
async fn a_second_run_goes_on_where_the_first_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (announced, done, held) =
        (announcement(1, "r", 1, &[2]), state(1, "r", 2, &[oid(1)]), state(2, "r", 3, &[oid(2)]));
    {
        let world = world(folder.path()).await;
        for event in [&announced, &done, &held] {
            world.admit(event).await;
        }
        world.release("r", &[oid(1)]).await;
    }
    let world = world(folder.path()).await;
    assert!(world.is_stored(&announced).await && world.is_stored(&done).await);
    assert_eq!(world.admit(&done).await.outcome, Outcome::Duplicate);
    let needs = world.needs("r").await;
    assert_eq!((needs.held, needs.wants[0].oids.clone()), (1, vec![oid(2)]));
    assert_eq!(world.release("r", &[oid(2)]).await.held, 0);
    assert_eq!(world.told(), [held.id]);
    assert_eq!(world.refs.main(1, "r"), Some(oid(2)));
}

/// R5: two long identifiers that begin alike are two repositories, though the database's index cuts them.
#[tokio::test]
async fn long_identifiers_that_begin_alike_are_apart() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let (a, b) = ("x".repeat(300) + "a", "x".repeat(300) + "b");
    world.admit(&announcement(1, &a, 1, &[])).await;
    world.admit(&announcement(2, &b, 1, &[])).await;
    let (one, two) = (state(1, &a, 2, &[oid(1)]), state(2, &b, 2, &[oid(2)]));
    world.admit(&one).await;
    world.admit(&two).await;
    assert_eq!(world.needs(&a).await.wants.len(), 1);
    assert_eq!(world.release(&a, &[oid(1)]).await.held, 0);
    assert_eq!(world.needs(&b).await.wants.len(), 1);
    assert_eq!(world.release(&b, &[oid(2)]).await.held, 0);
    assert!(world.is_stored(&one).await && world.is_stored(&two).await);
}

/// P8: where the database takes two of one author's names for one, the second stays held and nothing is lost.
#[tokio::test]
async fn an_event_that_the_database_takes_for_another_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    let (a, b) = ("x".repeat(300) + "a", "x".repeat(300) + "b");
    let (newer, older) = (state(1, &a, 20, &[oid(1)]), state(1, &b, 10, &[oid(2)]));
    for id in [&a, &b] {
        world.admit(&announcement(1, id, 1, &[])).await;
    }
    world.admit(&newer).await;
    world.admit(&older).await;
    world.release(&a, &[oid(1)]).await;
    world.release(&b, &[oid(2)]).await;
    let held = world.store.held().await.unwrap();
    assert!(world.is_stored(&newer).await);
    assert!(
        world.is_stored(&older).await
            || held.iter().any(|it| it.id == older.id && it.reason.is_some())
    );
}

/// R8: a folder of one's own is all that it takes; the same folder twice at once is refused.
#[tokio::test]
async fn a_folder_is_all_that_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a").join("b");
    let refs = || Arc::new(FakeRefs::default());
    let held = pull_request(5, &[1], "r", 1, oid(1));
    {
        let store = NostrEventStore::on_lmdb(&path, refs()).await.unwrap().build().await.unwrap();
        store.admit(verified(&held), Arrival::Submitted).await.unwrap();
        assert!(NostrEventStore::on_lmdb(&path, refs()).await.unwrap().build().await.is_err());
    }
    let store = NostrEventStore::on_lmdb(&path, refs()).await.unwrap().build().await.unwrap();
    assert_eq!(store.held().await.unwrap()[0].id, held.id);
    assert!(NostrEventStore::on_lmdb(&path.join("events").join("data.mdb"), refs()).await.is_err());
}
