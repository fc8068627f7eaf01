//! The public suite for fetchers, and what the fetcher tells while it works.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ngit_adapter::git::{Git, GitError, SmartHttpFetcher};
use purgatory_sync::{
    Identifier, Oid,
    testing::{FetcherHarness, Site, check_git_fetcher, url},
};
use tempfile::TempDir;

use crate::{
    fetch_server::{ScriptedServer, hang},
    fetch_support::{Here, absent},
    support::TestRepo,
    support_server::TestServer,
};

struct Harness {
    _dir: TempDir,
    there: Vec<Oid>,
    server: TestServer,
    silent: ScriptedServer,
    // Folders of the fetchers that were handed out.
    folders: Mutex<Vec<TempDir>>,
}

#[async_trait]
impl FetcherHarness for Harness {
    type Fetcher = SmartHttpFetcher;

    async fn fresh(&self) -> Site<SmartHttpFetcher> {
        let here = Here::new().await;
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let unreachable = free.local_addr().expect("a bound socket has an address");
        let site = Site {
            target: here.target(),
            identifier: Identifier::from("project"),
            fetcher: here.fetcher,
            url: url(&self.server.url("project.git")),
            there: self.there.clone(),
            not_there: absent(1),
            no_repository: url(&self.server.url("nothing.git")),
            unreachable: url(&format!("http://{unreachable}/project.git")),
            silent: url(&self.silent.url()),
        };
        self.folders.lock().expect("no panic").push(here.dir);
        site
    }
}

/// P3, P6, G5-G7: what every fetcher owes the engine.
#[tokio::test]
async fn the_fetcher_passes_the_public_suite() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let there = ["one", "two", "three"].map(|branch| repo.commit(branch, branch, branch)).to_vec();
    let server = TestServer::start("127.0.0.1", dir.path());
    let silent = ScriptedServer::start(|_, stream| hang(stream));
    let harness = Harness { _dir: dir, there, server, silent, folders: Mutex::default() };
    check_git_fetcher(&harness).await.expect("it keeps all rules");
}

/// G4: who wants to know is told how many bytes came and how many objects they are, in order, up to the whole.
#[tokio::test]
async fn progress_is_told() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let noise: String =
        (0..200_000_u32).map(|x| format!("{:x}", x.wrapping_mul(2_654_435_761))).collect();
    let tip = repo.commit("main", "file", &noise);
    let server = TestServer::start("127.0.0.1", dir.path());
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    let here = Here::with(move |builder| {
        builder.allow_private_networks(true).on_progress(move |progress| {
            let line = (
                progress.identifier.to_string(),
                progress.url.to_string(),
                progress.bytes,
                progress.objects,
            );
            tell.lock().expect("no panic").push(line);
        })
    })
    .await;
    let fetched = here.fetch(&server.url("project.git"), &[tip]).await.expect("it works");
    let told = told.lock().expect("no panic").clone();
    assert!(told.len() >= 3, "{told:?}");
    assert!(told.iter().all(|line| line.0 == "project" && line.1 == server.url("project.git")));
    assert!(told.iter().all(|line| line.3 == Some(3)), "a commit, a tree and a file: {told:?}");
    assert!(told.windows(2).all(|pair| pair[0].2 <= pair[1].2), "{told:?}");
    let last = told.last().expect("there is one").2;
    assert!(last > 400_000 && last <= fetched.bytes, "{last} of {}", fetched.bytes);
}

/// The fetcher goes where the engine needs it.
#[test]
fn the_fetcher_is_send_and_sync() {
    fn is<T: Send + Sync + Clone + std::fmt::Debug + 'static>() {}
    is::<SmartHttpFetcher>();
    is::<Git>();
    fn error<T: std::error::Error + Send + Sync + 'static>() {}
    error::<GitError>();
    error::<ngit_adapter::git::StartError>();
    error::<ngit_adapter::git::LookupError>();
}
