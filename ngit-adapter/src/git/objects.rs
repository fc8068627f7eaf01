//! What is in a repository: looked up in process, on a repository that is opened anew for each look.

use std::path::Path;

use gix::{ObjectId, objs::Kind};
use purgatory_sync::Oid;

use super::{RepositoryError, closure::Closure, whole};

/// The objects of one repository, as they are at the time of opening.
///
/// Packs that come later are not seen: a miss then costs no look at the disk for new packs, which with many packs is
/// most of the time. So a value of this lives for one batch.
pub(crate) struct Objects {
    repository: gix::Repository,
    whole: bool,
}

impl Objects {
    /// Opens the repository at `path` by its own configuration and nothing else.
    pub(crate) fn open(path: &Path) -> Result<Self, RepositoryError> {
        let options = gix::open::Options::isolated()
            .open_path_as_is(true)
            // The folder is named by the one who runs us, so whoever owns its files is trusted.
            .with(gix::sec::Trust::Full)
            .config_overrides(["core.logAllRefUpdates=false", "core.useReplaceRefs=false"]);
        let mut repository = gix::open_opts(path, options).map_err(RepositoryError::because(
            format_args!("cannot open the repository {}", path.display()),
        ))?;
        repository.objects.refresh_never();
        Ok(Self { whole: whole::is_whole(path), repository })
    }

    /// The repository, for its refs.
    pub(crate) fn repository(&self) -> &gix::Repository {
        &self.repository
    }

    /// Whether every object that is in it is there with all it reaches.
    pub(crate) fn are_whole(&self) -> bool {
        self.whole
    }

    /// Takes those out of `missing` that are here with all they reach.
    pub(crate) fn take_present(&self, missing: &mut Vec<Oid>) {
        if self.whole {
            missing.retain(|oid| !self.contains(oid));
        } else {
            let mut closure = Closure::new(&self.repository);
            missing.retain(|oid| {
                !(self.contains(oid) && sha1(oid).is_some_and(|id| closure.is_whole(id)))
            });
        }
    }

    /// Whether the object itself is here.
    pub(crate) fn contains(&self, oid: &Oid) -> bool {
        sha1(oid).is_some_and(|id| self.repository.has_object(id))
    }

    /// What kind of object it is, if it is here.
    pub(crate) fn kind(&self, oid: &Oid) -> Result<Option<Kind>, RepositoryError> {
        let Some(id) = sha1(oid) else { return Ok(None) };
        let header = self
            .repository
            .try_find_header(id)
            .map_err(RepositoryError::because(format_args!("cannot read the object {oid}")))?;
        Ok(header.map(|header| header.kind()))
    }

    /// When the commit that `HEAD` leads to was made, in seconds since 1970. `None` without one.
    pub(crate) fn newest_commit(&self) -> Option<i64> {
        let mut head = self.repository.head().ok()?;
        let commit = head.peel_to_commit().ok()?;
        Some(commit.time().ok()?.seconds)
    }
}

/// The object id as git here understands it. SHA-256 repositories are not supported.
pub(crate) fn sha1(oid: &Oid) -> Option<ObjectId> {
    let bytes: [u8; 20] = oid.as_bytes().try_into().ok()?;
    Some(ObjectId::Sha1(bytes))
}

/// And back.
pub(crate) fn oid(id: &gix::oid) -> Option<Oid> {
    Some(Oid::sha1(id.as_bytes().try_into().ok()?))
}
