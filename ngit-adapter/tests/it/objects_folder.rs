//! A folder of repositories for the tests of objects, refs and siblings.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::path::PathBuf;

use ngit_adapter::{
    RefName, RepositoryId, StateRefs,
    git::{CheckedPack, FetchTarget, Repositories},
    nostr::key::{Keys, PublicKey, SecretKey},
};
use purgatory_sync::{Identifier, Oid};
use tempfile::TempDir;

use crate::support::TestRepo;

/// A folder of repositories that goes with the test.
pub(crate) struct Folder {
    pub(crate) repositories: Repositories,
    root: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().expect("a temporary folder");
        let repositories = Repositories::open(root.path()).expect("the folder can be opened");
        Self { repositories, root }
    }

    /// The folder once more, as another process would open it.
    pub(crate) fn reopened(&self) -> Repositories {
        Repositories::open(self.root.path()).expect("the folder can be opened again")
    }

    /// The repository `id`, made if it is not there.
    pub(crate) async fn made(&self, id: &RepositoryId) -> TestRepo {
        TestRepo::open(self.repositories.create(id).await.expect("it can be made"))
    }

    /// A repository elsewhere, to make data in.
    pub(crate) fn elsewhere(&self, name: &str) -> TestRepo {
        TestRepo::init(self.root.path().join(name))
    }
}

/// The owner of this number: always the same.
pub(crate) fn owner(number: u8) -> PublicKey {
    let secret = SecretKey::from_slice(&[number + 1; 32]).expect("a secret key");
    Keys::new(secret).public_key()
}

/// The repository `name` of this owner.
pub(crate) fn repository(number: u8, name: &str) -> RepositoryId {
    RepositoryId::new(owner(number), Identifier::from(name))
}

/// A state with these refs, without `HEAD`.
pub(crate) fn state<'a>(refs: impl IntoIterator<Item = (&'a str, Oid)>) -> StateRefs {
    StateRefs {
        refs: refs.into_iter().map(|(name, oid)| (ref_name(name), oid)).collect(),
        ..StateRefs::default()
    }
}

pub(crate) fn ref_name(name: &str) -> RefName {
    name.parse().expect("a ref name")
}

/// A pack with all that `tips` of `from` reach.
pub(crate) fn pack_of(from: &TestRepo, tips: &[Oid], without: &[Oid]) -> CheckedPack {
    let mut input = String::new();
    tips.iter().for_each(|oid| input += &format!("{oid}\n"));
    without.iter().for_each(|oid| input += &format!("^{oid}\n"));
    let base = from.path().join("pack");
    let base_text = base.to_str().expect("test paths are UTF-8");
    let hash =
        from.git_with_input(&["pack-objects", "--quiet", "--revs", base_text], input.as_bytes());
    let file = |kind: &str| PathBuf::from(format!("{base_text}-{hash}.{kind}"));
    CheckedPack { pack: file("pack"), index: file("idx"), stands_alone: without.is_empty() }
}

/// Puts all that `tips` of `from` reach into `to`, as a fetch into an empty repository would.
pub(crate) async fn give(folder: &Folder, from: &TestRepo, tips: &[Oid], to: &RepositoryId) {
    folder.made(to).await;
    adopt(folder, to, &pack_of(from, tips, &[])).await;
}

/// Puts `pack` into the repository `to` and no other.
pub(crate) async fn adopt(folder: &Folder, to: &RepositoryId, pack: &CheckedPack) {
    let path = folder.repositories.path(to);
    let target = FetchTarget {
        repository: to.clone(),
        is_whole: !pack.stands_alone,
        objects: path.join("objects"),
        tips: Vec::new(),
        path,
    };
    folder.repositories.adopt(&target, pack, &[]).await.expect("the pack is taken");
}
