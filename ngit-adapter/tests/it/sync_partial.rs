//! Data that is spread over servers, and data that is nowhere.

use purgatory_sync::Oid;
use tempfile::TempDir;

use crate::{
    support::TestRepo,
    support_events::{Person, lines},
    support_program::SyncRun,
    support_project::Project,
    support_server::TestServer,
};

/// P6, P9, P14: a state's commits on one host, a pull request's on another, one only where its author says: all go. One
/// that exists nowhere stays, and what it lacks is named.
#[test]
fn what_is_found_goes_and_what_is_nowhere_is_named() {
    let folders = [(); 3].map(|()| TempDir::new().expect("a temporary folder"));
    let [a, b, c] = &folders;
    let on_a = TestRepo::init(a.path().join("project.git"));
    let main = on_a.commits("main", 10);
    let on_b = TestRepo::init(b.path().join("project.git"));
    on_b.commits("main", 10);
    let from_b = on_b.commit("main", "b.txt", "only on b");
    let on_c = TestRepo::init(c.path().join("fork.git"));
    on_c.commits("main", 10);
    let from_c = on_c.commit("main", "c.txt", "only on c");
    let nowhere = Oid::sha1([0xab; 20]);
    let [host_a, host_b, host_c] = [("127.0.0.1", a), ("127.0.0.2", b), ("127.0.0.3", c)]
        .map(|(ip, folder)| TestServer::start(ip, folder.path()));

    let [owner, first, second, third] = [1, 2, 3, 4].map(Person::new);
    let state = owner.state("project", &[("refs/heads/main", main[9])]);
    let on_b = first.pull_request(&owner, "project", from_b, &[]);
    let on_c = second.pull_request(&owner, "project", from_c, &[&host_c.url("fork.git")]);
    let lost = third.pull_request(&owner, "project", nowhere, &[&host_c.url("none.git")]);
    let announcement =
        owner.announcement("project", &[&host_a.url("project.git"), &host_b.url("project.git")]);
    let sync = SyncRun::new(&lines([&state, &on_b, &on_c, &lost, &announcement]));
    let ran = sync.run();

    assert_eq!(ran.status, Some(3), "{ran:?}");
    let mut released = [&state, &on_b, &on_c].map(|event| event.id.to_hex());
    released.sort();
    assert_eq!(ran.texts("released", "id"), released);
    let held = ran.of_type("held");
    assert_eq!(held.len(), 1, "{ran:?}");
    assert_eq!(held[0]["id"], lost.id.to_hex());
    assert_eq!(held[0]["kind"], 1618);
    assert_eq!(held[0]["identifier"], "project");
    assert_eq!(held[0]["missing"], serde_json::json!([nowhere.to_string()]));
    assert_eq!((ran.summary("released"), ran.summary("held")), (3, 1));
    // No source was left: nobody waited for the deadline.
    assert!(ran.took.as_secs() < 60, "{:?}", ran.took);
    // Only the owner of the fork was asked for what is in it: nothing of the others.
    assert!(host_c.log().fetches() <= 2, "{:?}", host_c.log().entries());
    let repo = TestRepo::open(sync.repository(&owner.npub(), "project"));
    assert_eq!(repo.ref_oid("main"), Some(main[9]));
    for event in [&on_b, &on_c] {
        assert!(repo.refs().contains_key(&format!("refs/nostr/{}", event.id.to_hex())));
    }
}

/// R4: a state of somebody who is not a maintainer is not released, though its commits are here.
#[test]
fn a_strangers_state_is_held() {
    let folder = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(folder.path().join("project.git"));
    let main = repo.commits("main", 3);
    let server = TestServer::start("127.0.0.1", folder.path());
    let [owner, stranger] = [1, 2].map(Person::new);
    let good = owner.state("project", &[("refs/heads/main", main[1])]);
    let bad = stranger.state("project", &[("refs/heads/main", main[2])]);
    let announcement = owner.announcement("project", &[&server.url("project.git")]);
    let sync = SyncRun::new(&lines([&bad, &announcement, &good]));
    let ran = sync.run();

    assert_eq!(ran.status, Some(3), "{ran:?}");
    assert_eq!(ran.texts("released", "id"), [good.id.to_hex()]);
    assert_eq!(ran.texts("held", "id"), [bad.id.to_hex()]);
    assert!(ran.of_type("held")[0]["reason"].is_string(), "{ran:?}");
    let repo = TestRepo::open(sync.repository(&owner.npub(), "project"));
    assert_eq!(repo.ref_oid("main"), Some(main[1]));
    assert!(!sync.repository(&stranger.npub(), "project").exists());
}

/// P3: data that is here already needs no request, also when no URL can be used.
#[test]
fn a_second_run_finds_the_data_of_the_first_without_a_request() {
    let project = Project::served();
    let Project { server, announcement, state, .. } = &project;
    let sync = SyncRun::new(&lines([announcement, state])).arg("--database=memory");
    assert_eq!(sync.run().status, Some(0));
    let requests = server.log().requests();
    // The events are forgotten, the data is not.
    let again = sync.run();
    assert_eq!(again.status, Some(0), "{again:?}");
    assert_eq!((again.summary("released"), again.summary("fetches")), (1, 0));
    assert_eq!(server.log().requests(), requests);
}
