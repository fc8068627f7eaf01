//! A second run goes on where the first one ended.

use tempfile::TempDir;

use crate::{
    support::TestRepo,
    support_events::{Person, SOME_TIME, lines},
    support_program::SyncRun,
    support_server::TestServer,
};

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// R8: what is held is held after the end of the program, and is released by a run that is told nothing of it.
#[test]
fn what_one_run_holds_the_next_one_releases() {
    let served = TempDir::new().expect("a temporary folder");
    let server = TestServer::start("127.0.0.1", served.path());
    let [owner, other] = [1, 2].map(Person::new);
    // The same commits elsewhere: the server gets them only after the first run.
    let elsewhere = TempDir::new().expect("a temporary folder");
    let main = TestRepo::init(elsewhere.path().join("x.git")).commits("main", 3);
    let announcement = owner.announcement("project", &[&server.url("project.git")]);
    let state = owner.state("project", &[("refs/heads/main", main[2])]);
    let pull_request = other.pull_request(&owner, "project", main[1], &[]);

    let sync = SyncRun::new(&lines([&announcement, &state, &pull_request]));
    let first = sync.run();
    assert_eq!(first.status, Some(3), "{first:?}");
    assert_eq!((first.summary("held"), first.summary("released")), (2, 0));
    assert_eq!(std::fs::read_to_string(sync.out_file()).expect("it was written"), "");

    assert_eq!(TestRepo::init(served.path().join("project.git")).commits("main", 3), main);
    sync.rewrite("");
    let second = sync.run();
    assert_eq!(second.status, Some(0), "{second:?}");
    assert_eq!((second.summary("events"), second.summary("released")), (0, 2));
    let out = std::fs::read_to_string(sync.out_file()).expect("it was written");
    assert_eq!(sorted(&out), sorted(&lines([&announcement, &state, &pull_request])));

    let third = sync.run();
    assert_eq!(third.status, Some(0), "{third:?}");
    assert_eq!((third.summary("released"), third.summary("fetches")), (0, 0));
}

/// The announcement comes out with what is released, also when it was let go in an earlier run.
#[test]
fn each_runs_output_has_the_announcement_of_what_is_in_it() {
    let served = TempDir::new().expect("a temporary folder");
    let main = TestRepo::init(served.path().join("project.git")).commits("main", 3);
    let server = TestServer::start("127.0.0.1", served.path());
    let owner = Person::new(1);
    let announcement = owner.announcement("project", &[&server.url("project.git")]);
    let state = |at, oid: purgatory_sync::Oid| {
        let tags = [["d", "project"], ["refs/heads/main", &oid.to_string()]];
        owner.sign(nostr::event::Kind::RepoState, at, &tags)
    };
    let (old, new) = (state(SOME_TIME, main[1]), state(SOME_TIME + 1, main[2]));
    let sync = SyncRun::new(&lines([&announcement, &old]));
    assert_eq!(sync.run().status, Some(0));
    sync.rewrite(&lines([&new]));
    let second = sync.run();
    assert_eq!(second.status, Some(0), "{second:?}");
    assert_eq!(second.summary("announcements"), 0);
    let out = std::fs::read_to_string(sync.out_file()).expect("it was written");
    assert_eq!(sorted(&out), sorted(&lines([&announcement, &new])));
    let repo = TestRepo::open(sync.repository(&owner.npub(), "project"));
    assert_eq!(repo.ref_oid("main"), Some(main[2]));

    // What was said before is older, and moves nothing.
    sync.rewrite(&lines([&announcement, &old, &new]));
    let third = sync.run();
    assert_eq!(third.status, Some(0), "{third:?}");
    assert_eq!((third.summary("events"), third.summary("released")), (3, 0));
    assert_eq!(repo.ref_oid("main"), Some(main[2]));
}

/// Of two owners of one name, the one whose announcement was let go in an earlier run is not forgotten for the other's.
#[test]
fn the_output_has_each_owners_announcement_of_one_name() {
    let served = TempDir::new().expect("a temporary folder");
    let main = TestRepo::init(served.path().join("project.git")).commits("main", 3);
    let server = TestServer::start("127.0.0.1", served.path());
    let [one, other, third] = [1, 2, 3].map(Person::new);
    let announced = [&one, &other, &third]
        .map(|owner| owner.announcement("project", &[&server.url("project.git")]));
    let state = |owner: &Person, at, oid: purgatory_sync::Oid| {
        let tags = [["d", "project"], ["refs/heads/main", &oid.to_string()]];
        owner.sign(nostr::event::Kind::RepoState, at, &tags)
    };
    let first = [state(&one, SOME_TIME, main[0]), state(&third, SOME_TIME, main[0])];
    let sync = SyncRun::new(&lines([&announced[0], &announced[2], &first[0], &first[1]]));
    assert_eq!(sync.run().status, Some(0));

    let second = [state(&one, SOME_TIME + 1, main[1]), state(&other, SOME_TIME, main[2])];
    sync.rewrite(&lines([&announced[1], &second[0], &second[1]]));
    let run = sync.run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let out = std::fs::read_to_string(sync.out_file()).expect("it was written");
    // The third one has no part in it.
    let expected = lines([&announced[0], &announced[1], &second[0], &second[1]]);
    assert_eq!(sorted(&out), sorted(&expected));
}
