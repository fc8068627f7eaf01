//! How many requests a fetch makes, and what comes of them.

use purgatory_sync::Oid;
use tempfile::TempDir;

use crate::{
    fetch_support::{Here, absent},
    support::TestRepo,
    support_server::TestServer,
};

/// A server with one repository of 40 commits.
fn there() -> (TempDir, TestRepo, Vec<Oid>, TestServer) {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let commits = repo.commits("main", 40);
    let server = TestServer::start("127.0.0.1", dir.path());
    (dir, repo, commits, server)
}

fn with_absent(present: &[Oid], missing: u8) -> Vec<Oid> {
    (0..missing).map(absent).chain(present.iter().copied()).collect()
}

/// G5: what is all there comes with two requests.
#[tokio::test]
async fn all_present_takes_two_requests() {
    let (_dir, _repo, commits, server) = there();
    let here = Here::new().await;
    let fetched = here.fetch(&server.url("project.git"), &commits[30..]).await.expect("it works");
    assert_eq!(fetched.received, commits[30..]);
    assert_eq!((fetched.requests, server.log().requests()), (2, 2));
    assert!(fetched.ask_again.is_empty() && fetched.bytes > 0);
    assert!(here.repo().is_complete(commits[39]));
    assert_eq!(here.missing(&commits).await, []);
    assert_eq!(here.quarantined(), Vec::<std::path::PathBuf>::new());
}

/// G5: with some missing the rest comes, in four requests.
#[tokio::test]
async fn some_missing_takes_four_requests() {
    for (missing, present) in [(1, 9), (5, 35), (16, 3)] {
        let (_dir, _repo, commits, server) = there();
        let here = Here::new().await;
        let present = &commits[commits.len() - present..];
        let fetched = here
            .fetch(&server.url("project.git"), &with_absent(present, missing))
            .await
            .expect("it works");
        assert_eq!(fetched.received, present);
        assert_eq!((fetched.requests, server.log().requests()), (4, 4));
        assert!(fetched.ask_again.is_empty());
        assert_eq!(here.missing(present).await, []);
    }
}

/// G5, G6: if nothing is there, that is an answer and no failure, in three requests.
#[tokio::test]
async fn all_missing_takes_three_requests() {
    let (_dir, _repo, _commits, server) = there();
    let here = Here::new().await;
    let fetched =
        here.fetch(&server.url("project.git"), &with_absent(&[], 7)).await.expect("it works");
    assert!(fetched.received.is_empty() && fetched.ask_again.is_empty());
    assert_eq!((fetched.requests, server.log().requests()), (3, 3));
}
