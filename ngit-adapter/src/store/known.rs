use purgatory_sync::{Identifier, StoreError};

use super::{
    event_store::NostrEventStore,
    listing::{self, HeldEvent},
};
use crate::RepositoryId;

impl NostrEventStore {
    /// Whether a repository was announced, by an announcement that is held or served.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn is_announced(&self, repository: &RepositoryId) -> Result<bool, StoreError> {
        let inner = self.inner();
        let _pass = inner.gates.enter(&repository.identifier).await;
        let look = inner.look_at_announcements(&repository.identifier).await?;
        Ok(look.is_served(&repository.owner) || look.held_announcement(&repository.owner).is_some())
    }
}

impl NostrEventStore {
    /// How many events are held, announcements included.
    pub fn held_count(&self) -> usize {
        self.inner().shelf().purgatory().len()
    }

    /// The states, pull requests and updates of one identifier that wait, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot say which announcements are served.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn held_of(&self, identifier: &Identifier) -> Result<Vec<HeldEvent>, StoreError> {
        let inner = self.inner();
        let _pass = inner.gates.enter(identifier).await;
        Ok(listing::listing(&inner.look_at_announcements(identifier).await?))
    }
}
