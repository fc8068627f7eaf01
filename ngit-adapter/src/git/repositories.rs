//! The folder of repositories: what is here, where a fetch goes, and how what came gets where it belongs.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use purgatory_sync::{Identifier, Oid, Target};

use super::{
    CheckedPack, FetchTarget, Git, RepositoryError, RepositoryLock, adopt, create,
    local_git::LocalGit,
    lock::Locks,
    mend::Mender,
    objects::Objects,
    paths::{self, Case},
    siblings::{Sibling, siblings},
    work_folder::WorkFolder,
};
use crate::RepositoryId;

/// The folder in which repositories live: `<npub>/<identifier>.git`. Cheap to clone.
///
/// # What "here" means
///
/// An object is here if some repository of its identifier has it *with all that it reaches*. Repositories that are
/// made here keep to that for each of their objects: a pack enters one only after a strict `index-pack` saw it together with the
/// objects of that repository and of no other, so that everything it names was there or came with it. One look is enough
/// then. In repositories that others made, in shallow ones, and in one that was found damaged, an object counts if a walk over
/// all it reaches finds everything.
///
/// # Who else may use the folder
///
/// Several processes may: changes of a repository are made under a lock file. `git gc` may run in it at any time.
#[derive(Clone, Debug)]
pub struct Repositories {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) root: PathBuf,
    pub(super) case: Case,
    pub(super) work: WorkFolder,
    locks: Locks,
    pub(super) mender: Mender,
    pub(super) git: LocalGit,
}

impl Repositories {
    /// Opens the folder `root` and makes it if it is not there. Blocks: it is for the start of a program.
    ///
    /// What a killed process left half done is removed.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made or written.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, RepositoryError> {
        let root = root.into();
        let failed = || format!("cannot use the folder of repositories {}", root.display());
        fs::create_dir_all(&root).map_err(RepositoryError::because(failed()))?;
        // Git is started in other folders.
        let root = root.canonicalize().map_err(RepositoryError::because(failed()))?;
        let work = WorkFolder::open(&root).map_err(RepositoryError::because(failed()))?;
        let case = work.case().map_err(RepositoryError::because(failed()))?;
        let git = LocalGit::new(root.clone());
        Ok(Self {
            inner: Arc::new(Inner {
                root,
                case,
                work,
                locks: Locks::default(),
                mender: Mender::default(),
                git,
            }),
        })
    }

    /// Uses `git` for copies between repositories, if none was needed yet. Without this, the first git on `PATH` is found
    /// and checked when one is needed.
    pub fn use_git(&self, git: Git) {
        self.inner.git.set(git);
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Where `repository` lives, whether or not it is there.
    pub fn path(&self, repository: &RepositoryId) -> PathBuf {
        paths::repository_path(&self.inner.root, repository, self.inner.case)
    }

    /// Makes `repository` if it is not there, bare and empty, and gives its folder. Any number of callers may do so at once.
    ///
    /// # Errors
    ///
    /// If the disk refuses, or something that is no repository is in its place.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped the repository may be made all the same.
    pub async fn create(&self, repository: &RepositoryId) -> Result<PathBuf, RepositoryError> {
        let (inner, path) = (self.inner.clone(), self.path(repository));
        off_worker(move || {
            create::create_if_absent(&inner.work, &path)?;
            Ok(path)
        })
        .await
    }

    /// Waits until nobody else changes `repository`, which is there, and holds it. Not to be held across the network.
    ///
    /// # Errors
    ///
    /// If it is not there, or another process holds it for more than a minute.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped wait leaves the queue.
    pub async fn lock(&self, repository: &RepositoryId) -> Result<RepositoryLock, RepositoryError> {
        self.inner.locks.lock(&self.path(repository)).await
    }

    /// The repositories of `identifier` that are there, in the order of their owners.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn siblings(
        &self,
        identifier: &Identifier,
    ) -> Result<Vec<RepositoryId>, RepositoryError> {
        let (inner, identifier) = (self.inner.clone(), identifier.clone());
        off_worker(move || Ok(inner.siblings(&identifier)?.into_iter().map(|it| it.id).collect()))
            .await
    }

    /// Which of `oids` are not here, in their order.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read. A repository that cannot be read counts as one that has nothing.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn missing(
        &self,
        identifier: &Identifier,
        oids: &[Oid],
    ) -> Result<Vec<Oid>, RepositoryError> {
        let (inner, identifier, mut missing) =
            (self.inner.clone(), identifier.clone(), oids.to_vec());
        off_worker(move || {
            for sibling in inner.siblings(&identifier)? {
                if missing.is_empty() {
                    break;
                }
                if let Some(objects) = open_or_warn(&sibling.path) {
                    objects.take_present(&mut missing);
                }
            }
            Ok(missing)
        })
        .await
    }

    /// Puts a checked pack where it belongs: into the repository that it was fetched for, and into those of
    /// `targets` that it is right for as it is. Others get what they need when their refs are set.
    ///
    /// The quarantine may go afterwards. Repacking or deleting one of the repositories leaves the others whole.
    ///
    /// # Errors
    ///
    /// If the disk refuses. Some of the repositories may have it then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped some of the repositories may have it. None has half of it.
    pub async fn adopt(
        &self,
        target: &FetchTarget,
        pack: &CheckedPack,
        targets: &[Target],
    ) -> Result<(), RepositoryError> {
        self.link(&target.repository, pack).await?;
        if pack.stands_alone {
            for other in of_identifier(&target.repository.identifier, targets) {
                if other != target.repository {
                    self.create(&other).await?;
                    self.link(&other, pack).await?;
                }
            }
        }
        Ok(())
    }

    async fn link(
        &self,
        repository: &RepositoryId,
        pack: &CheckedPack,
    ) -> Result<(), RepositoryError> {
        let lock = self.lock(repository).await?;
        let (inner, path, pack) = (self.inner.clone(), self.path(repository), pack.clone());
        off_worker(move || {
            let _lock = lock;
            adopt::link(&pack, &path)?;
            inner.mender.changed(&path);
            inner.mender.mend(&path)
        })
        .await
    }
}

impl Inner {
    pub(super) fn siblings(
        &self,
        identifier: &Identifier,
    ) -> Result<Vec<Sibling>, RepositoryError> {
        siblings(&self.root, identifier, self.case)
    }
}

/// Runs what waits for the disk where it holds up nobody.
pub(super) async fn off_worker<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<RepositoryError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            Err(RepositoryError::new("work on a repository was ended").with_source(error).into())
        }
    }
}

/// The repositories that `targets` name. Other identifiers have no business here.
pub(super) fn of_identifier(identifier: &Identifier, targets: &[Target]) -> Vec<RepositoryId> {
    targets
        .iter()
        .filter_map(RepositoryId::from_target)
        .filter(|id| id.identifier == *identifier)
        .collect()
}

pub(super) fn open_or_warn(path: &Path) -> Option<Objects> {
    Objects::open(path)
        .inspect_err(|error| {
            tracing::warn!(path = %path.display(), error = %error, "a repository cannot be read");
        })
        .ok()
}
