//! A fetcher with a folder of its own, and questions to it.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{error::Error, path::PathBuf};

use ngit_adapter::{
    RepositoryId,
    git::{Repositories, SmartHttpFetcher, SmartHttpFetcherBuilder},
    nostr,
};
use nostr::key::PublicKey;
use purgatory_sync::{
    CloneUrl, FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher, Identifier, Oid,
    Target,
};
use tempfile::TempDir;

use crate::support::TestRepo;

/// A folder of repositories, a fetcher for it, and one repository that data is fetched for.
pub(crate) struct Here {
    pub(crate) dir: TempDir,
    pub(crate) fetcher: SmartHttpFetcher,
    pub(crate) id: RepositoryId,
}

impl Here {
    /// With a fetcher that may reach loopback.
    pub(crate) async fn new() -> Self {
        Self::with(|builder| builder.allow_private_networks(true)).await
    }

    /// With a fetcher that is set up by `setup`.
    pub(crate) async fn with(
        setup: impl FnOnce(SmartHttpFetcherBuilder) -> SmartHttpFetcherBuilder,
    ) -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        let repositories = Repositories::open(dir.path()).expect("the folder can be used");
        let fetcher = setup(SmartHttpFetcher::builder(repositories));
        let fetcher = fetcher.build().await.expect("git is installed");
        Self { dir, fetcher, id: Self::repository() }
    }

    /// The one that data is fetched for.
    pub(crate) fn repository() -> RepositoryId {
        RepositoryId::new(owner(), Identifier::from("project"))
    }

    /// One fetch of `oids` from `url`.
    pub(crate) async fn fetch(&self, url: &str, oids: &[Oid]) -> Result<Fetched, FetchError> {
        let url: CloneUrl = url.parse().expect("a clone URL");
        let targets = [self.target()];
        let request = FetchRequest::new(&self.id.identifier, &url, oids, &targets);
        self.fetcher.fetch(request).await
    }

    /// One fetch that must fail. Gives the class of the failure.
    pub(crate) async fn fails(&self, url: &str, oids: &[Oid]) -> FetchErrorKind {
        let error = self.fetch(url, oids).await.expect_err("this fetch must fail");
        let kind = error.kind();
        // Shown by a test that fails.
        eprintln!("{kind:?}: {}", chain(&error));
        kind
    }

    pub(crate) fn target(&self) -> Target {
        self.id.to_target()
    }

    /// The repository that data is fetched for.
    pub(crate) fn repo(&self) -> TestRepo {
        TestRepo::open(self.fetcher.repositories().path(&self.id))
    }

    /// Which of `oids` are not here.
    pub(crate) async fn missing(&self, oids: &[Oid]) -> Vec<Oid> {
        self.fetcher.missing(&self.id.identifier, oids).await.expect("the folder can be read")
    }

    /// What fetches left in quarantine.
    pub(crate) fn quarantined(&self) -> Vec<PathBuf> {
        let folder = self.dir.path().join(".quarantine");
        let left =
            folder.read_dir().expect("it is there").map(|entry| entry.expect("an entry").path());
        let of_fetch = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"fetch-"))
        };
        left.filter(of_fetch).collect()
    }
}

/// All files below a folder, sorted.
pub(crate) fn files_below(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("the folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// An error and all its causes, in one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// An object id that no repository has.
pub(crate) fn absent(number: u8) -> Oid {
    Oid::sha1([number ^ 0xa5; 20])
}

/// The owner of everything here.
fn owner() -> PublicKey {
    let hex = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    PublicKey::from_hex(hex).expect("a public key")
}
