//! The port that the event store asks, done with git.

use std::sync::Arc;

use async_trait::async_trait;
use gix::refs::FullName;
use nostr::event::EventId;
use purgatory_sync::Oid;

use super::{
    Repositories, RepositoryError,
    objects::{Objects, sha1},
    refs,
    repositories::off_worker,
};
use crate::{RefError, RefKeeper, RepositoryId, StateRefs};

#[async_trait]
impl RefKeeper for Repositories {
    async fn apply_state(
        &self,
        repository: &RepositoryId,
        state: &StateRefs,
    ) -> Result<(), RefError> {
        refs::check_names(state)?;
        let path = self.create(repository).await?;
        if state.refs.is_empty() {
            return Ok(());
        }
        let lock = Arc::new(self.lock(repository).await?);
        let mut oids: Vec<Oid> = state.refs.values().copied().collect();
        oids.sort_unstable();
        oids.dedup();
        self.bring(&lock, repository, &oids).await?;
        let state = state.clone();
        // The lock goes along: what was begun ends, also when nobody waits for it any more.
        off_worker(move || {
            let _lock = lock;
            let objects = Objects::open(&path)?;
            refs::check_kinds(&objects, &state)?;
            refs::apply(&objects, &path, &state)
        })
        .await
    }

    async fn keep_objects(
        &self,
        repository: &RepositoryId,
        objects: &[Oid],
    ) -> Result<(), RefError> {
        if objects.is_empty() {
            return Ok(());
        }
        self.create(repository).await?;
        let lock = Arc::new(self.lock(repository).await?);
        Ok(self.bring(&lock, repository, objects).await?)
    }

    async fn keep_pull_request(
        &self,
        repository: &RepositoryId,
        event: &EventId,
        tip: &Oid,
    ) -> Result<(), RefError> {
        let Some(id) = sha1(tip) else {
            return Err(RefError::Conflict(format!("SHA-256 is not supported: {tip}")));
        };
        let name = FullName::try_from(format!("refs/nostr/{}", event.to_hex()))
            .map_err(RepositoryError::because("an event id is no ref name"))?;
        let path = self.create(repository).await?;
        let lock = Arc::new(self.lock(repository).await?);
        self.bring(&lock, repository, &[*tip]).await?;
        off_worker(move || {
            let _lock = lock;
            Ok(refs::set(&Objects::open(&path)?, &path, name, id)?)
        })
        .await
    }
}

impl From<RepositoryError> for RefError {
    fn from(error: RepositoryError) -> Self {
        Self::Failed(Box::new(error))
    }
}
