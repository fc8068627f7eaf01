//! Where a fetch goes, and what it may build on.

use std::{collections::HashSet, path::PathBuf};

use purgatory_sync::{Identifier, Oid, Target};

use super::{
    Repositories, RepositoryError, create,
    objects::{Objects, oid},
    paths, refs,
    repositories::{of_identifier, off_worker, open_or_warn},
    siblings::Sibling,
};
use crate::RepositoryId;

/// The most tips that are offered to a server as what is here already.
const MAX_TIPS: usize = 256;

/// Where a fetch goes.
#[derive(Clone, Debug)]
pub struct FetchTarget {
    /// The repository.
    pub repository: RepositoryId,
    /// Its folder.
    pub path: PathBuf,
    /// Whether a fetch may build on what is in it: a server may be told about `tips`, and `objects` be seen by the check.
    /// If not (it is shallow, or damaged), the pack has to stand alone.
    pub is_whole: bool,
    /// Its object folder.
    pub objects: PathBuf,
    /// What its refs name: that of `HEAD` first, none twice, at most 256. Empty if it is not whole.
    pub tips: Vec<Oid>,
}

impl Repositories {
    /// Where a fetch for `targets` goes: into the repository of `identifier` with the newest commit on its default
    /// branch. If there is none, that of the first target is made.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read, or there is no repository and no usable target.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. The repository may have been made.
    pub async fn fetch_target(
        &self,
        identifier: &Identifier,
        targets: &[Target],
    ) -> Result<FetchTarget, RepositoryError> {
        let wanted = of_identifier(identifier, targets);
        let (inner, identifier) = (self.inner.clone(), identifier.clone());
        off_worker(move || {
            let mut candidates = inner.siblings(&identifier)?;
            if candidates.is_empty() {
                let id = wanted.first().cloned().ok_or_else(|| {
                    RepositoryError::new(format!("no repository to fetch {identifier:?} into"))
                })?;
                let path = paths::repository_path(&inner.root, &id, inner.case);
                create::create_if_absent(&inner.work, &path)?;
                candidates.push(Sibling { id, path });
            }
            newest(candidates, &wanted)
        })
        .await
    }
}

/// The one with the newest commit, whole ones first; of equals one that is wanted, then the first.
fn newest(
    candidates: Vec<Sibling>,
    wanted: &[RepositoryId],
) -> Result<FetchTarget, RepositoryError> {
    let mut best = None;
    for candidate in candidates {
        let Some(objects) = open_or_warn(&candidate.path) else { continue };
        let rank = (objects.are_whole(), objects.newest_commit(), wanted.contains(&candidate.id));
        if best.as_ref().is_none_or(|(best, _, _)| *best < rank) {
            best = Some((rank, candidate, objects));
        }
    }
    let (_, Sibling { id, path }, objects) =
        best.ok_or_else(|| RepositoryError::new("no repository can be read to fetch into"))?;
    let is_whole = objects.are_whole();
    Ok(FetchTarget {
        repository: id,
        is_whole,
        objects: path.join("objects"),
        tips: if is_whole { tips(&objects)? } else { Vec::new() },
        path,
    })
}

pub(super) fn tips(objects: &Objects) -> Result<Vec<Oid>, RepositoryError> {
    let repository = objects.repository();
    let head = repository.head_id().ok().map(|id| id.detach());
    let targets = refs::list(repository, "refs/")?.into_values();
    let mut seen = HashSet::new();
    let ids = head.into_iter().chain(targets.filter_map(|target| target.try_into_id().ok()));
    Ok(ids
        .filter(|id| seen.insert(*id) && repository.has_object(id))
        .filter_map(|id| oid(&id))
        .take(MAX_TIPS)
        .collect())
}
