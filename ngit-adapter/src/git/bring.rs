//! How all that a repository needs gets into it, from whichever sibling has it.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use purgatory_sync::Oid;

use super::{
    Repositories, RepositoryError, RepositoryLock, adopt,
    fetch_target::tips,
    local_git::Copy,
    objects::Objects,
    pack_list,
    repositories::{Inner, off_worker, open_or_warn},
    whole,
};
use crate::RepositoryId;

impl Repositories {
    /// Sees to it that `repository`, which is locked, has all of `oids` in full, from its siblings if need be.
    ///
    /// What changes it keeps the lock until it ends, also when nobody waits for it any more.
    pub(super) async fn bring(
        &self,
        lock: &Arc<RepositoryLock>,
        repository: &RepositoryId,
        oids: &[Oid],
    ) -> Result<(), RepositoryError> {
        let path = self.path(repository);
        let copies = match self.plan(lock, repository, oids).await? {
            Plan::Nothing => return Ok(()),
            Plan::Copies(copies) => copies,
        };
        for copy in copies {
            let copied = self.inner.git.copy(copy).await?;
            let (inner, path, lock) = (self.inner.clone(), path.clone(), lock.clone());
            off_worker(move || {
                let _lock = lock;
                adopt::link(&copied.pack, &path)?;
                inner.mender.changed(&path);
                inner.mender.mend(&path)
            })
            .await?;
        }
        self.check(repository, &path, oids).await
    }

    /// What brings what `repository` lacks. The first sibling that has an object gives it.
    async fn plan(
        &self,
        lock: &Arc<RepositoryLock>,
        repository: &RepositoryId,
        oids: &[Oid],
    ) -> Result<Plan, RepositoryError> {
        let (inner, repository, to, oids) =
            (self.inner.clone(), repository.clone(), self.path(repository), oids.to_vec());
        let lock = lock.clone();
        off_worker(move || {
            let _lock = lock;
            inner.mender.mend(&to)?;
            let here = Objects::open(&to)?;
            let mut absent = oids;
            here.take_present(&mut absent);
            if absent.is_empty() {
                return Ok(match is_proven(&here, &to) {
                    true => Plan::Nothing,
                    false => Plan::Copies(Vec::new()),
                });
            }
            inner.copies(&repository, &to, &here, absent).map(Plan::Copies)
        })
        .await
    }

    /// The last look before refs move. What was checked when it came may have been tidied away since, by somebody who saw no ref to it.
    async fn check(
        &self,
        repository: &RepositoryId,
        path: &Path,
        oids: &[Oid],
    ) -> Result<(), RepositoryError> {
        let (at, mut absent) = (path.to_owned(), oids.to_vec());
        let (absent, is_whole, new) = off_worker(move || {
            let objects = Objects::open(&at)?;
            let mut new = absent.clone();
            objects.take_present(&mut absent);
            if is_proven(&objects, &at) {
                new.clear();
            } else {
                let named = tips(&objects)?;
                new.retain(|oid| !named.contains(oid));
            }
            Ok::<_, RepositoryError>((absent, objects.are_whole(), new))
        })
        .await?;
        if let Some(oid) = absent.first() {
            return Err(not_in_full(repository, oid));
        }
        // In a repository that is not whole the look above was at all there is.
        if !is_whole || new.is_empty() || self.inner.git.is_connected(path, &new).await? {
            return Ok(());
        }
        // From now on objects in it count only after a look at all they reach, so that what lacks is fetched again.
        whole::unmark(path).map_err(RepositoryError::because(format_args!(
            "cannot mark the repository {} as damaged",
            path.display()
        )))?;
        Err(not_in_full(repository, &new[0]))
    }
}

/// What is to be done for a repository to have what it needs.
enum Plan {
    /// It has all of it, in full.
    Nothing,
    /// These copies have to be made, and then looked at.
    Copies(Vec<Copy>),
}

/// Whether what is in the repository at `path` is known to be there with all it reaches, now.
fn is_proven(objects: &Objects, path: &Path) -> bool {
    objects.are_whole() && pack_list::holds(path)
}

impl Inner {
    fn copies(
        &self,
        repository: &RepositoryId,
        to: &Path,
        here: &Objects,
        mut absent: Vec<Oid>,
    ) -> Result<Vec<Copy>, RepositoryError> {
        let bases = if here.are_whole() { tips(here)? } else { Vec::new() };
        let mut copies = Vec::new();
        for sibling in self.siblings(&repository.identifier)? {
            if sibling.id == *repository || absent.is_empty() {
                continue;
            }
            let Some(there) = open_or_warn(&sibling.path) else { continue };
            let wanted = take_from(&there, &mut absent);
            if wanted.is_empty() {
                continue;
            }
            let common = take_from(&there, &mut bases.clone());
            copies.push(Copy { from: sibling.path, wanted, common, to: PathBuf::from(to) });
        }
        match absent.first() {
            Some(oid) => Err(not_in_full(repository, oid)),
            None => Ok(copies),
        }
    }
}

/// Takes those out of `absent` that are `there` in full, and gives them.
fn take_from(there: &Objects, absent: &mut Vec<Oid>) -> Vec<Oid> {
    let mut taken = absent.clone();
    there.take_present(absent);
    let left: HashSet<&Oid> = absent.iter().collect();
    taken.retain(|oid| !left.contains(oid));
    taken
}

fn not_in_full(repository: &RepositoryId, oid: &Oid) -> RepositoryError {
    RepositoryError::new(format!("{oid} and all it reaches is not here for {repository:?}"))
}
