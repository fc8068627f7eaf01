//! R7: what a git server has to know before and after a push.

use std::collections::HashSet;

use nostr::{event::EventId, key::PublicKey};
use purgatory_sync::{Oid, Released, StoreError};

use super::{
    event_store::{Inner, NostrEventStore},
    held::Body,
    look::Look,
    placeholders::Placeholder,
    stored,
    version::Version,
};
use crate::{RepositoryId, StateRefs, nip34::State};

/// A state that has authority over a repository: what a push may bring it to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RightfulState {
    /// Who signed it.
    pub author: PublicKey,
    /// Its refs.
    pub refs: StateRefs,
    /// Whether it is served already.
    pub served: bool,
}

impl NostrEventStore {
    /// The states that have authority over a repository, held and served, the newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn rightful_states(
        &self,
        repository: &RepositoryId,
    ) -> Result<Vec<RightfulState>, StoreError> {
        let inner = self.inner();
        let _pass = inner.gates.enter(&repository.identifier).await;
        let look = inner.look(&repository.identifier).await?;
        Ok(inner.rightful_states(&look, &repository.owner))
    }

    /// The commit of a pull request or an update that is held or served.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn pull_request_tip(&self, event: &EventId) -> Result<Option<Oid>, StoreError> {
        let inner = self.inner();
        if let Some(entry) = inner.shelf().purgatory().find(event) {
            return Ok(match &entry.held.body {
                Body::Proposal(proposal) => Some(proposal.tip),
                _ => None,
            });
        }
        stored::tip(&*inner.database, event).await
    }

    /// Notes that a commit was pushed for a pull request that is not known yet. It is durable.
    ///
    /// When the event comes and names that commit, [`Admission::wake`](super::Admission::wake) asks
    /// for a look at once. Without the event, [`expire`](Self::expire) gives it back.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if there are too many, or the note could not be made durable.
    ///
    /// # Cancel safety
    ///
    /// A dropped call has made the note or not, and it may not be durable yet. Placing it again is no harm.
    pub async fn place(
        &self,
        event: EventId,
        repository: RepositoryId,
        tip: Oid,
    ) -> Result<(), StoreError> {
        let inner = self.inner();
        let keep_for = inner.config.keep_placeholder_for.as_secs();
        let placeholder =
            Placeholder { repository, tip, until: inner.now().saturating_add(keep_for) };
        while !inner.try_place(event, &placeholder) {
            let due = inner.shelf().placeholders().due();
            let loser = inner.placeholder_to_lose(&placeholder.repository).await?;
            // If as many are to go already, nobody sees to it.
            let loser = loser.filter(|_| due < inner.config.max_placeholders);
            let full = || StoreError::new("too many commits wait for their pull requests");
            inner.shelf().give_back(&loser.ok_or_else(full)?);
        }
        inner.flush().await
    }

    /// After an accepted push: releases what it completes, and the repository's announcement with it.
    ///
    /// `here` is as for [`EventStore::release`](purgatory_sync::EventStore::release).
    ///
    /// # Errors
    ///
    /// [`StoreError`] as for that.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped each event is still held or served, none is lost. Call it again, or let the
    /// engine look.
    pub async fn pushed(
        &self,
        repository: &RepositoryId,
        here: &[Oid],
    ) -> Result<Released, StoreError> {
        let inner = self.inner();
        let _pass = inner.gates.enter(&repository.identifier).await;
        let here: HashSet<Oid> = here.iter().copied().collect();
        let released = inner.release_pushed(repository, &here).await;
        let noted = inner.flush().await;
        let released = released?;
        noted.map(|()| released)
    }
}

impl Inner {
    /// Notes a placeholder if there is room.
    fn try_place(&self, event: EventId, placeholder: &Placeholder) -> bool {
        let mut shelf = self.shelf();
        let all = shelf.placeholders();
        let has_room = shelf.placeholder(&event).is_some()
            || all.len() - all.due() < self.config.max_placeholders;
        if has_room {
            shelf.place(event, placeholder.clone());
        }
        has_room
    }

    fn rightful_states(&self, look: &Look, owner: &PublicKey) -> Vec<RightfulState> {
        let authority = look.authority();
        let rightful = |author: &PublicKey| authority.owners_for(author).contains(owner);
        let served = look.states().iter().filter(|it| rightful(&it.author)).map(|it| {
            let state = RightfulState { author: it.author, refs: it.refs.clone(), served: true };
            (it.version, state)
        });
        let held = look.held().iter().filter(|entry| {
            matches!(entry.held.body, Body::State(_)) && rightful(&entry.held.author)
        });
        let held = held.filter_map(|entry| {
            let event = self.read_back(&entry.held)?;
            let refs = State::from_tags(&event.tags).ok()?.refs;
            Some((
                entry.held.version(),
                RightfulState { author: event.pubkey, refs, served: false },
            ))
        });
        let mut all: Vec<(Version, RightfulState)> = served.chain(held).collect();
        all.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
        all.into_iter().map(|(_, state)| state).collect()
    }

    async fn release_pushed(
        &self,
        repository: &RepositoryId,
        here: &HashSet<Oid>,
    ) -> Result<Released, StoreError> {
        let first = self.release(&repository.identifier, here).await?;
        let mut look = self.look(&repository.identifier).await?;
        let Some(announcement) = look.held_announcement(&repository.owner).cloned() else {
            return Ok(first);
        };
        self.serve(&mut look, &announcement).await?;
        // What waits for no object could not go before.
        let then = self.release(&repository.identifier, here).await?;
        Ok(Released { released: first.released + then.released, held: then.held })
    }
}
