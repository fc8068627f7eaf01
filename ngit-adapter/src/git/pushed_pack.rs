//! The pack of a push: through the same quarantine and the same checks as a fetched one (G4, G7).

use std::path::Path;

use purgatory_sync::Oid;
use tokio::process::ChildStdin;
use tokio_util::task::TaskTracker;

use super::{
    CheckedPack, FetchTarget, Git, Limits, Quarantine, Repositories, RepositoryError, connectivity,
    create,
    failure::Failure,
    index_pack::index_pack,
    objects::{Objects, oid, sha1},
    refs,
    repositories::off_worker,
    whole,
};
use crate::RepositoryId;

/// A pack that passed the checks, and is not in its repository yet. Dropping it removes it.
#[must_use = "dropping it removes what was pushed"]
pub(crate) struct PushedPack {
    target: FetchTarget,
    pack: CheckedPack,
    // Behind the pack that lies in it.
    _quarantine: Quarantine,
}

/// What a push is checked with.
pub(crate) struct PushCheck<'a> {
    pub(crate) repositories: &'a Repositories,
    pub(crate) git: &'a Git,
    pub(crate) limits: &'a Limits,
    /// Where what is dropped is removed. Whoever ends can wait for it.
    pub(crate) removals: &'a TaskTracker,
}

impl PushCheck<'_> {
    /// Takes the pack that `feed` writes, and checks that `tips` are whole with it and with what is in `repository`,
    /// which is made if it is not there.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, every process ends and nothing of the pack is left.
    pub(crate) async fn take(
        &self,
        repository: &RepositoryId,
        tips: &[Oid],
        feed: impl AsyncFnOnce(ChildStdin) -> Result<(), Failure>,
    ) -> Result<PushedPack, Failure> {
        let target = self.target(repository).await?;
        let root = self.repositories.root().to_owned();
        let base = target.is_whole.then(|| target.objects.clone());
        // From before it is made: whoever waits for removals waits for this one.
        let users = vec![self.removals.token()];
        let quarantine = off_worker(move || {
            Quarantine::create(&root, base.as_deref(), users)
                .map_err(RepositoryError::because("a quarantine folder cannot be made"))
        })
        .await
        .map_err(local)?;
        index_pack(self.git, &quarantine, self.limits, feed).await?;
        connectivity::check(self.git, &quarantine, self.limits, tips, &target.tips).await?;
        let folder = quarantine.git_dir().to_owned();
        let (pack, index) = off_worker(move || {
            Quarantine::find_pack(&folder)
                .map_err(RepositoryError::because("the pushed pack was not stored"))
        })
        .await
        .map_err(local)?;
        let pack = CheckedPack { pack, index, stands_alone: !target.is_whole };
        Ok(PushedPack { target, pack, _quarantine: quarantine })
    }

    /// What a push builds on: this very repository, since its client was told of the refs of no other.
    async fn target(&self, repository: &RepositoryId) -> Result<FetchTarget, Failure> {
        let path = self.repositories.create(repository).await.map_err(local)?;
        let repository = repository.clone();
        off_worker(move || {
            let is_whole = whole::is_whole(&path);
            let tips = if is_whole { tips(&path)? } else { Vec::new() };
            Ok(FetchTarget { repository, is_whole, objects: path.join("objects"), tips, path })
        })
        .await
        .map_err(local)
    }
}

impl PushedPack {
    /// Which of `oids` came with it.
    pub(crate) async fn brings(&self, oids: Vec<Oid>) -> Result<Vec<Oid>, RepositoryError> {
        let index = self.pack.index.clone();
        off_worker(move || in_index(&index, oids)).await
    }

    /// Puts it into its repository.
    pub(crate) async fn adopt(self, repositories: &Repositories) -> Result<(), RepositoryError> {
        repositories.adopt(&self.target, &self.pack, &[]).await
    }
}

fn tips(path: &Path) -> Result<Vec<Oid>, RepositoryError> {
    const MAX_TIPS: usize = 1_024;
    let objects = Objects::open(path)?;
    let targets = refs::list(objects.repository(), "refs/")?.into_values();
    let mut tips: Vec<_> = targets
        .filter_map(|target| target.try_into_id().ok())
        .filter(|id| objects.repository().has_object(id))
        .filter_map(|id| oid(&id))
        .collect();
    tips.sort_unstable();
    tips.dedup();
    tips.truncate(MAX_TIPS);
    Ok(tips)
}

fn in_index(index: &Path, oids: Vec<Oid>) -> Result<Vec<Oid>, RepositoryError> {
    let index = gix::odb::pack::index::File::at(index, gix::hash::Kind::Sha1)
        .map_err(RepositoryError::because("the index of a pushed pack cannot be read"))?;
    let has = |oid: &Oid| sha1(oid).is_some_and(|id| index.lookup(id).is_some());
    Ok(oids.into_iter().filter(has).collect())
}

fn local(error: RepositoryError) -> Failure {
    Failure::new(purgatory_sync::FetchErrorKind::Local, error.to_string()).because(error)
}

impl Repositories {
    /// The refs of `repository`, by their full names, but for symbolic ones. None if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn refs(
        &self,
        repository: &RepositoryId,
    ) -> Result<std::collections::BTreeMap<String, Oid>, RepositoryError> {
        let path = self.path(repository);
        off_worker(move || {
            if !create::is_repository(&path) {
                return Ok(std::collections::BTreeMap::new());
            }
            let refs = refs::list(Objects::open(&path)?.repository(), "refs/")?;
            let named = refs.into_iter().filter_map(|(name, target)| {
                let id = target.try_into_id().ok()?;
                Some((name.as_bstr().to_string(), oid(&id)?))
            });
            Ok(named.collect())
        })
        .await
    }

    /// Takes `refs/nostr/<event>` away, if it still points to `tip`. Its objects stay until the repository is tidied.
    ///
    /// # Errors
    ///
    /// If the repository cannot be changed.
    ///
    /// # Cancel safety
    ///
    /// What was begun ends also if the future is dropped.
    pub async fn forget_pull_request(
        &self,
        repository: &RepositoryId,
        event: &nostr::event::EventId,
        tip: &Oid,
    ) -> Result<(), RepositoryError> {
        let path = self.path(repository);
        let Some(id) = sha1(tip) else { return Ok(()) };
        let there = path.clone();
        if !off_worker(move || Ok::<_, RepositoryError>(create::is_repository(&there))).await? {
            return Ok(());
        }
        let name = gix::refs::FullName::try_from(format!("refs/nostr/{}", event.to_hex()))
            .map_err(RepositoryError::because("an event id is no ref name"))?;
        let lock = self.lock(repository).await?;
        off_worker(move || {
            let _lock = lock;
            refs::remove(&Objects::open(&path)?, &path, name, id)
        })
        .await
    }
}
