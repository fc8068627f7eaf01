use nostr::{event::EventId, key::PublicKey, types::Timestamp};
use purgatory_sync::{Identifier, StoreError};

use super::{
    event_store::NostrEventStore,
    held::Body,
    listing::{self, HeldEvent},
    stored,
};
use crate::{RepositoryId, nip34::GitEvent};

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

/// A repository that is announced here.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) repository: RepositoryId,
    /// The relays that its announcement names, if that is served.
    pub(crate) relays: Vec<String>,
    pub(crate) served: bool,
}

impl NostrEventStore {
    /// Whether anybody announced a repository of this name, by an announcement that is held or served.
    pub(crate) async fn knows(&self, identifier: &Identifier) -> Result<bool, StoreError> {
        let inner = self.inner();
        let _pass = inner.gates.enter(identifier).await;
        let look = inner.look_at_announcements(identifier).await?;
        Ok(!look.authority().is_empty())
    }

    /// All announcements, held ones included.
    pub(crate) async fn all_announced(&self) -> Result<Vec<Announced>, StoreError> {
        let held: Vec<_> = {
            let shelf = self.inner().shelf();
            let held = shelf.purgatory().all().map(|entry| &entry.held);
            let held = held.filter(|held| held.announcement().is_some());
            held.map(|held| RepositoryId::new(held.author, held.identifier.clone())).collect()
        };
        let served = stored::all_announcements(&*self.inner().database).await?;
        let held = held.into_iter().map(|repository| Announced {
            repository,
            relays: Vec::new(),
            served: false,
        });
        let served = served.into_iter().map(|(repository, announcement)| Announced {
            repository,
            relays: announcement.relays,
            served: true,
        });
        Ok(served.chain(held).collect())
    }

    /// The announcements that are held.
    pub(crate) fn held_announcements(&self) -> Vec<(EventId, Timestamp)> {
        let shelf = self.inner().shelf();
        let held = shelf.purgatory().all().map(|entry| &entry.held);
        let held = held.filter(|held| held.announcement().is_some());
        held.map(|held| (held.id, held.created_at.into())).collect()
    }

    /// The states, pull requests and updates that are held for repositories of these names.
    pub(crate) fn held_about(&self, identifiers: &[Identifier]) -> Vec<(EventId, Timestamp)> {
        let shelf = self.inner().shelf();
        let held = identifiers.iter().flat_map(|it| shelf.purgatory().entries(it));
        let held = held.map(|entry| &entry.held).filter(|held| held.counts());
        held.map(|held| (held.id, held.created_at.into())).collect()
    }

    /// The owners over whose repositories of this name a key has authority, by announcements that are held or served,
    /// in the order of their keys.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn owners_for(
        &self,
        author: &PublicKey,
        identifier: &Identifier,
    ) -> Result<Vec<PublicKey>, StoreError> {
        let inner = self.inner();
        let _pass = inner.gates.enter(identifier).await;
        let look = inner.look_at_announcements(identifier).await?;
        Ok(look.authority().owners_for(author))
    }

    /// How many events are held, announcements included.
    pub fn held_count(&self) -> usize {
        self.inner().shelf().purgatory().len()
    }

    /// Whether an event is held.
    pub fn holds(&self, event: &EventId) -> bool {
        self.inner().shelf().purgatory().contains(event)
    }

    /// Whether a pull request or an update, held or served, names this repository. `None` if none is known under this id.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn is_about(
        &self,
        event: &EventId,
        repository: &RepositoryId,
    ) -> Result<Option<bool>, StoreError> {
        let inner = self.inner();
        if let Some(entry) = inner.shelf().purgatory().find(event) {
            return Ok(match &entry.held.body {
                Body::Proposal(proposal) => Some(proposal.repositories.contains(repository)),
                _ => None,
            });
        }
        let found = inner.database.event_by_id(event).await.map_err(|error| {
            StoreError::new("the database could not look an event up").with_source(error)
        })?;
        let proposal = found.and_then(|event| GitEvent::read(&event).ok()?.into_proposal());
        Ok(proposal.map(|it| it.repositories.contains(repository)))
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
