//! Who gives way where there is no room for all: what costs nothing to make never keeps out what is paid for.

use ngit_adapter::{
    RepositoryId,
    nostr::event::Event,
    store::{AdmitError, Full, HeldReason, Outcome, StoreConfig},
};
use purgatory_sync::{Identifier, Origin};

use crate::store_support::*;

/// A world where the announcement of 1 is served, and trusts 2.
async fn served(config: StoreConfig) -> World {
    let world = World::with(config, None).await;
    world.admit(&announcement(1, "r", 1, &[2])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    assert_eq!(world.release("r", &[oid(1)]).await.held, 0);
    world
}

async fn is_refused(world: &World, event: &Event, why: Full) -> bool {
    match world.try_admit(event).await {
        Err(AdmitError::Full(what, _)) => what == why,
        result => {
            result.unwrap();
            false
        }
    }
}

/// R1: strangers that fill an identifier's bounds give way to whoever has a say over a served repository, and not the
/// other way round.
#[tokio::test]
async fn strangers_do_not_crowd_out_who_has_a_say() {
    let world = served(StoreConfig { max_states: 3, ..StoreConfig::default() }).await;
    for stranger in 10..13 {
        world.admit(&state(stranger, "r", 5, &[oid(9)])).await;
    }
    assert!(is_refused(&world, &state(13, "r", 9, &[oid(9)]), Full::States).await);
    let ours = [state(1, "r", 3, &[oid(2)]), state(2, "r", 4, &[oid(3)])];
    for state in &ours {
        assert_eq!(world.admit(state).await.outcome, Outcome::Held { data_first: false });
    }
    assert_eq!(world.needs("r").await.held, 3);
    // With an announcement that is only held one has more than with none, and less than with one that is served.
    world.admit(&announcement(14, "r", 1, &[])).await;
    world.admit(&state(14, "r", 9, &[oid(9)])).await;
    world.admit(&announcement(15, "r", 1, &[])).await;
    assert!(is_refused(&world, &state(15, "r", 9, &[oid(9)]), Full::States).await);
    let held = world.held().await;
    assert!(ours.iter().all(|state| held.contains(&state.id)));
    assert_eq!(world.release("r", &[oid(2), oid(3)]).await.released, 2);
    assert_eq!(world.refs.main(1, "r"), Some(oid(3)));
}

/// R1: announcements of strangers give way to that of a maintainer, of whom a served one says so.
#[tokio::test]
async fn a_maintainers_announcement_is_taken_though_strangers_were_first() {
    let world = served(StoreConfig { max_announcements: 2, ..StoreConfig::default() }).await;
    world.admit(&announcement(10, "r", 1, &[])).await;
    world.admit(&announcement(11, "r", 1, &[])).await;
    assert!(is_refused(&world, &announcement(12, "r", 1, &[]), Full::Announcements).await);
    let maintainer = announcement(2, "r", 1, &[3]);
    world.admit(&maintainer).await;
    assert_eq!(world.store.held_count(), 2);
    assert!(world.store.holds(&maintainer.id));
    assert!(is_refused(&world, &announcement(12, "r", 1, &[]), Full::Announcements).await);
}

/// R1: whoever has most of the pull requests gives way to who has few; of equals the first stay.
#[tokio::test]
async fn one_author_does_not_fill_a_repositorys_pull_requests() {
    let world = served(StoreConfig { max_pull_requests: 4, ..StoreConfig::default() }).await;
    let many = |at: u64| pull_request(10, &[1], "r", at, oid(9));
    for at in 0..4 {
        world.admit(&many(at)).await;
    }
    assert!(is_refused(&world, &many(4), Full::PullRequests).await);
    let few: Vec<_> = (11..13).map(|it| pull_request(it, &[1], "r", 5, oid(9))).collect();
    for pull in &few {
        world.admit(pull).await;
    }
    // Two of the one who had four, and one of each other: the newest went.
    let held = world.held().await;
    assert!(few.iter().chain(&[many(0), many(1)]).all(|it| held.contains(&it.id)));
    world.admit(&pull_request(13, &[1], "r", 5, oid(9))).await;
    assert!(is_refused(&world, &pull_request(14, &[1], "r", 5, oid(9)), Full::PullRequests).await);
    // One to a repository that nobody knows comes after all of them; that of a maintainer before.
    assert!(is_refused(&world, &pull_request(15, &[7], "r", 5, oid(9)), Full::PullRequests).await);
    let own = pull_request(2, &[1], "r", 5, oid(9));
    world.admit(&own).await;
    assert!(world.held().await.contains(&own.id));
    assert_eq!(world.held().await.len(), 4);
}

/// R1, R8: one author does not fill the whole store against all others; what went for others is not back after a kill.
#[tokio::test]
async fn one_author_does_not_fill_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let config = StoreConfig { max_held: 40, ..StoreConfig::default() };
    let mut world = World::with(config, Some(&journal)).await;
    for number in 0..40 {
        world.admit(&announcement(10, &format!("n{number}"), 1, &[])).await;
    }
    assert!(is_refused(&world, &announcement(10, "more", 1, &[]), Full::Events).await);
    let others: Vec<_> = (11..21).map(|it| announcement(it, "r", 1, &[])).collect();
    for other in &others {
        world.admit(other).await;
    }
    assert_eq!(world.store.held_count(), 40);
    assert!(others.iter().all(|it| world.store.holds(&it.id)));
    world.restart(&journal).await;
    assert_eq!(world.store.held_count(), 40);
    assert!(others.iter().all(|it| world.store.holds(&it.id)));
}

/// R1: a store that is full of throwaway authors' events takes those of who has a say over a served repository.
#[tokio::test]
async fn throwaway_authors_do_not_fill_the_store_against_owners() {
    let world = served(StoreConfig { max_held: 30, ..StoreConfig::default() }).await;
    for stranger in 10..40 {
        world.admit(&announcement(stranger, &format!("n{stranger}"), 1, &[])).await;
    }
    assert!(is_refused(&world, &announcement(50, "n50", 1, &[]), Full::Events).await);
    assert!(is_refused(&world, &state(50, "r", 9, &[oid(9)]), Full::Events).await);
    let ours = [state(1, "r", 3, &[oid(2)]), state(2, "r", 4, &[oid(3)])];
    for state in &ours {
        world.admit(state).await;
    }
    assert_eq!(world.store.held_count(), 30);
    assert!(is_refused(&world, &announcement(51, "n51", 1, &[]), Full::Events).await);
    let held = world.held().await;
    assert!(ours.iter().all(|state| held.contains(&state.id)));
}

/// R1: and it goes on taking them: those that came in are not taken for all that there is.
#[tokio::test]
async fn a_full_store_takes_all_that_is_paid_for_not_only_the_first() {
    let world = served(StoreConfig { max_held: 100, ..StoreConfig::relay() }).await;
    for stranger in 10..110 {
        world.admit(&announcement(stranger, &format!("n{stranger}"), 1, &[])).await;
    }
    assert!(is_refused(&world, &announcement(200, "n200", 1, &[]), Full::Events).await);
    // They have more time left than the strangers'.
    world.pass_time(60);
    let ours: Vec<_> = (110..170).map(|it| pull_request(it, &[1], "r", 5, oid(9))).collect();
    for pull in &ours {
        world.admit(pull).await;
    }
    assert_eq!(world.store.held_count(), 100);
    assert!(ours.iter().all(|it| world.store.holds(&it.id)));
}

/// R7: strangers' placeholders give way to one in a served repository, and their refs go.
#[tokio::test]
async fn strangers_do_not_fill_the_placeholders() {
    let world = served(StoreConfig { max_placeholders: 40, ..StoreConfig::relay() }).await;
    let of = |owner: u8| RepositoryId::new(key(owner), Identifier::from("r"));
    let place = async |number: u32, owner: u8| {
        let event = pull_request(9, &[1], "r", u64::from(number), oid(number)).id;
        world.store.place(event, of(owner), oid(number)).await.is_ok()
    };
    let gone = async || world.store.expire().await.unwrap().placeholders;
    // One repository has all of them: it gives way to any other one.
    for number in 0..40 {
        assert!(place(number, 10).await);
    }
    assert!(!place(40, 10).await);
    for owner in 11..50 {
        assert!(place(100 + u32::from(owner), owner).await);
    }
    let gave_way = gone().await;
    assert_eq!(gave_way.len(), 39);
    assert!(gave_way.iter().all(|(_, it)| it.repository == of(10)), "{gave_way:?}");
    // Throwaway repositories with one each give way to a served one, and to no other.
    assert!(!place(200, 60).await);
    for number in 201..204 {
        assert!(place(number, 1).await);
    }
    let gave_way = gone().await;
    assert_eq!(gave_way.len(), 3);
    assert!(gave_way.iter().all(|(_, it)| it.repository != of(1)), "{gave_way:?}");
    assert!(!place(204, 60).await);
}

/// G10: of the repositories that only follow another's states there are so many and no more. The owner's, the
/// maintainers' and those with a state of their own are not counted.
#[tokio::test]
async fn strangers_who_trust_an_author_get_so_many_copies_and_no_more() {
    let world = World::with(StoreConfig { max_followers: 2, ..StoreConfig::default() }, None).await;
    world.admit(&announcement(1, "r", 1, &[2, 3])).await;
    world.admit(&announcement(2, "r", 1, &[])).await;
    for stranger in 10..20 {
        world.admit(&announcement(stranger, "r", 1, &[1])).await;
    }
    world.admit(&announcement(30, "r", 1, &[])).await;
    world.admit(&state(30, "r", 1, &[oid(5)])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    world.release("r", &[oid(1), oid(5)]).await;
    let with_copy = |world: &World| {
        (0..60).filter(|owner| world.refs.main(*owner, "r").is_some()).collect::<Vec<u8>>()
    };
    let first = with_copy(&world);
    // 2 does not trust 1, so the state is not about its repository.
    let strangers = first.iter().filter(|it| (10..20).contains(*it)).count();
    assert_eq!((strangers, first.len()), (2, 4), "{first:?}");
    assert!(first.contains(&1) && first.contains(&30));
    // A maintainer who trusts the owner back is none of them, and what comes later is bounded, too.
    world.admit(&announcement(3, "r", 1, &[1])).await;
    for stranger in 20..25 {
        let admission = world.admit(&announcement(stranger, "r", 1, &[1])).await;
        assert_eq!(admission.outcome, Outcome::Announced { served: false });
    }
    world.admit(&state(1, "r", 3, &[oid(2)])).await;
    world.release("r", &[oid(1), oid(2), oid(5)]).await;
    let then = with_copy(&world);
    assert_eq!(then.len(), 5, "{then:?}");
    assert!(then.contains(&3) && first.iter().all(|it| then.contains(it)));
    // Those that have one go on to follow.
    assert!(
        first.iter().filter(|it| **it != 30).all(|it| world.refs.main(*it, "r") == Some(oid(2)))
    );
}

/// G10: where only followers could be served and there are enough, the event stays, with the reason.
#[tokio::test]
async fn an_event_that_is_for_followers_alone_says_why_it_waits() {
    let world = World::with(StoreConfig { max_followers: 0, ..StoreConfig::default() }, None).await;
    world.admit(&announcement(10, "r", 1, &[2])).await;
    world.admit(&state(2, "r", 2, &[oid(1)])).await;
    assert_eq!(world.release("r", &[oid(1)]).await.held, 1);
    let held = world.store.held_of(&Identifier::from("r")).await.unwrap();
    assert!(matches!(&held[0].reason, Some(HeldReason::Trouble(why)) if why.contains("too many")));
}

/// G10: data reaches every repository for which the state has authority, also one whose refs a newer state leads.
#[tokio::test]
async fn an_older_state_brings_its_data_where_it_moves_nothing() {
    let world = World::new().await;
    world.admit(&announcement(1, "r", 1, &[2])).await;
    world.admit(&state(1, "r", 9, &[oid(9)])).await;
    world.release("r", &[oid(9)]).await;
    world.admit(&state(2, "r", 3, &[oid(3), oid(4)])).await;
    assert_eq!(world.release("r", &[oid(3), oid(4)]).await.released, 1);
    assert_eq!(world.refs.main(1, "r"), Some(oid(9)));
    let all = world.refs.all();
    let kept = &all[&RepositoryId::new(key(1), Identifier::from("r"))].kept;
    assert_eq!(kept.iter().copied().collect::<Vec<_>>(), [oid(3), oid(4)]);
}

fn clone_urls(owner: u8, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("https://o{owner}.example/{number}.git")).collect()
}

fn announcement_at(owner: u8, urls: &[String], maintainers: &[u8]) -> Event {
    let mut clone = vec!["clone"];
    clone.extend(urls.iter().map(String::as_str));
    let maintainers: Vec<String> = maintainers.iter().map(|it| key(*it).to_hex()).collect();
    let mut named = vec!["maintainers"];
    named.extend(maintainers.iter().map(String::as_str));
    event(owner, 30617, 1, &[&["d", "r"], &clone, &named])
}

/// P13: of many announcements the first URL of each comes first, the owner's before all: nobody's many push another's
/// only one out of what is asked.
#[tokio::test]
async fn urls_of_several_announcements_come_in_turn() {
    let world = World::new().await;
    world.admit(&announcement_at(1, &clone_urls(1, 40), &[2, 3])).await;
    world.admit(&announcement_at(2, &clone_urls(2, 2), &[])).await;
    world.admit(&announcement_at(3, &clone_urls(3, 1), &[])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    let needs = world.needs("r").await;
    let [want] = &*needs.wants else { panic!("{needs:?}") };
    let urls: Vec<&str> = want.urls.iter().take(6).map(|url| url.as_str()).collect();
    let expected = [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)]
        .map(|(o, n)| format!("https://o{o}.example/{n}.git"));
    assert_eq!(urls, expected);
    assert_eq!(want.urls.len(), 43);
}

/// P13, R4: the wants of owners whose repositories are served come before those of strangers, whoever was first, and a
/// pull request is looked for there first.
#[tokio::test]
async fn wants_of_served_owners_come_first() {
    let world = World::new().await;
    world.admit(&announcement(50, "r", 1, &[])).await;
    world.admit(&state(50, "r", 20, &[oid(1)])).await;
    world.release("r", &[oid(1)]).await;
    for stranger in 10..40 {
        world.admit(&announcement(stranger, "r", 1, &[])).await;
        world.admit(&state(stranger, "r", 2, &[oid(u32::from(stranger))])).await;
    }
    world.admit(&state(50, "r", 30, &[oid(2)])).await;
    world.admit(&pull_request(60, &[10, 11, 50], "r", 1, oid(3))).await;
    let needs = world.needs("r").await;
    let target = RepositoryId::new(key(50), Identifier::from("r")).to_target();
    assert_eq!((&needs.wants[0].target, &*needs.wants[0].oids), (&target, &[oid(2)][..]));
    assert_eq!(needs.wants.iter().filter(|it| it.origin == Origin::Owner).count(), 31);
    let pull = needs.wants.iter().find(|it| it.origin == Origin::Contributor).unwrap();
    assert_eq!((&pull.target, pull.urls[0].as_str()), (&target, "https://o50.example/r.git"));
}
