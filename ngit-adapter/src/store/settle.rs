//! Announcements: which of them may be served, and what follows from it.

use std::collections::HashSet;

use nostr::{
    event::{Event, EventId},
    key::PublicKey,
};
use nostr_database::{RejectedReason, SaveEventStatus};
use purgatory_sync::{Identifier, StoreError};

use super::{event_store::Inner, held::Held, look::Look, stored};
use crate::{
    RefError, RepositoryId, StateRefs,
    nip34::{EventLimits, VerifiedEvent},
};

/// What the database did with an event.
pub(super) enum Saved {
    /// It has it.
    Yes,
    /// It will never have it: the author has a newer one, or deleted it, or it is over.
    Never(&'static str),
    /// It does not take it, and does not say why it should not.
    Refused(String),
}

impl Inner {
    /// Serves every held announcement under which a served state has a say: another announcement may have
    /// given it one.
    pub(super) async fn settle(&self, look: &mut Look) -> Result<(), StoreError> {
        let led: Vec<PublicKey> = {
            let led = look.newest_states();
            let held = look.held().iter().map(|entry| &entry.held);
            let held = held.filter(|held| held.announcement().is_some());
            held.map(|held| held.author).filter(|owner| led.contains_key(owner)).collect()
        };
        for owner in self.may_serve(look, led) {
            if let Some(held) = look.held_announcement(&owner).cloned() {
                self.serve(look, &held).await?;
            }
        }
        Ok(())
    }

    /// Does what a crash may have left undone: announcements that could go with what was released.
    pub(super) async fn recover(&self) {
        let identifiers: Vec<_> = self.shelf().purgatory().announced().cloned().collect();
        for identifier in identifiers {
            if let Err(error) = self.recover_one(&identifier).await {
                // The next release or announcement of the repository does it.
                tracing::warn!(identifier = identifier.as_str(), %error, "processing failed");
            }
        }
    }

    async fn recover_one(&self, identifier: &Identifier) -> Result<(), StoreError> {
        let _pass = self.gates.enter(identifier).await;
        let mut look = self.look(identifier).await?;
        let held: Vec<_> = look.held().iter().map(|entry| entry.held.clone()).collect();
        for held in held.iter().filter(|held| held.announcement().is_some()) {
            let may = !self.may_serve(&look, vec![held.author]).is_empty();
            if may && self.has_data(&look, &held.author).await? {
                self.serve(&mut look, held).await?;
            }
        }
        self.flush().await
    }

    /// Whether something is served that brought data for this owner's repository: a state, a pull request,
    /// or an earlier version of its announcement.
    pub(super) async fn has_data(
        &self,
        look: &Look,
        owner: &PublicKey,
    ) -> Result<bool, StoreError> {
        if look.is_served(owner) || look.newest_states().contains_key(owner) {
            return Ok(true);
        }
        let pulls = stored::pull_requests(&*self.database, owner, &look.identifier).await?;
        Ok(!pulls.is_empty())
    }

    /// Serves an announcement: first the refs that follow from it, then saved, told, let go.
    pub(super) async fn serve(&self, look: &mut Look, held: &Held) -> Result<Saved, StoreError> {
        let Some(event) = self.read_back(held) else {
            look.forget(held);
            return Ok(Saved::Never("it was damaged"));
        };
        // What only follows somebody gets its data with an announcement of its own.
        let mut owners = look.with_place(look.authority().owners_for(&held.author));
        if !owners.contains(&held.author) {
            owners.push(held.author);
        }
        self.follow(look, &owners).await?;
        if !look.is_served(&held.author) {
            self.keep_pull_requests(look, &held.author, &HashSet::new()).await?;
        }
        let saved = self.save(held, &event).await?;
        let (identifier, event_id) = (&look.identifier, &held.id);
        match &saved {
            Saved::Yes => {
                self.observer.announced(identifier, &event);
                look.serve(held);
            }
            Saved::Never(why) => {
                tracing::debug!(identifier = identifier.as_str(), %event_id, why, "held event dropped");
            }
            Saved::Refused(why) => {
                tracing::warn!(identifier = identifier.as_str(), %event_id, why, "processing failed");
                self.shelf().set_trouble(&held.id, Some(why.as_str().into()));
                return Ok(saved);
            }
        }
        self.let_go(&[held.id]);
        look.forget(held);
        Ok(saved)
    }

    /// Moves each owner's refs to the newest served state that has authority (R5). Gives the first failure, after all were
    /// tried.
    pub(super) async fn follow(&self, look: &Look, owners: &[PublicKey]) -> Result<(), StoreError> {
        let moves: Vec<(RepositoryId, StateRefs)> = {
            let newest = look.newest_states();
            let of = |owner: &PublicKey| Some((*owner, newest.get(owner)?.refs.clone()));
            owners
                .iter()
                .filter_map(of)
                .map(|(owner, refs)| (look.repository(owner), refs))
                .collect()
        };
        let mut result = Ok(());
        for (repository, refs) in moves {
            match self.refs.apply_state(&repository, &refs).await {
                Ok(()) => {}
                Err(RefError::Failed(source)) => {
                    let failed = StoreError::new("refs could not be set").with_source(source);
                    result = result.and(Err(failed));
                }
                Err(conflict) => {
                    let identifier = &look.identifier;
                    tracing::warn!(identifier = identifier.as_str(), %conflict, "refs of a served state cannot be set");
                }
            }
        }
        result
    }

    /// Sets the refs of the served pull requests in a repository that is served from now on, but for those that lack data.
    /// Gives the first failure, after all were tried.
    pub(super) async fn keep_pull_requests(
        &self,
        look: &Look,
        owner: &PublicKey,
        lacking: &HashSet<EventId>,
    ) -> Result<(), StoreError> {
        let repository = look.repository(*owner);
        let pulls = stored::pull_requests(&*self.database, owner, &look.identifier).await?;
        let mut result = Ok(());
        for (id, tip) in pulls.into_iter().filter(|(id, _)| !lacking.contains(id)) {
            let kept = self.refs.keep_pull_request(&repository, &id, &tip).await;
            let failed = |error| StoreError::new("a ref could not be set").with_source(error);
            result = result.and(kept.map_err(failed));
        }
        result
    }

    /// Saves an event and says what came of it. Only what the database has may be told.
    pub(super) async fn save(&self, held: &Held, event: &Event) -> Result<Saved, StoreError> {
        let saved =
            self.database.save_event(event).await.map_err(|error| {
                StoreError::new("an event could not be saved").with_source(error)
            })?;
        Ok(match saved {
            // A duplicate was saved before a crash that came before the note of it.
            SaveEventStatus::Success | SaveEventStatus::Rejected(RejectedReason::Duplicate) => {
                Saved::Yes
            }
            SaveEventStatus::Rejected(RejectedReason::Replaced) => {
                if self.is_superseded(held).await? {
                    Saved::Never("its author has a newer one")
                } else {
                    // Its index holds long names in part, and takes another name for this one.
                    Saved::Refused("it takes it for a version of another event".to_owned())
                }
            }
            SaveEventStatus::Rejected(RejectedReason::Deleted) => {
                Saved::Never("its author deleted it")
            }
            SaveEventStatus::Rejected(RejectedReason::Expired) => Saved::Never("it is over"),
            SaveEventStatus::Rejected(RejectedReason::Vanished) => {
                Saved::Never("its author asked to be forgotten")
            }
            SaveEventStatus::Rejected(other) => Saved::Refused(format!("{other:?}")),
        })
    }

    /// Whether the database has a newer one of the same author for the repository.
    pub(super) async fn is_superseded(&self, held: &Held) -> Result<bool, StoreError> {
        if !held.kind.is_addressable() {
            return Ok(false);
        }
        let newest =
            stored::newest_of(&*self.database, held.author, held.kind, &held.identifier).await?;
        Ok(newest.is_some_and(|newest| newest > held.version()))
    }

    /// The event behind what is held, checked once more: what is held may have lain on a disk. One
    /// that was tampered with is let go.
    pub(super) fn read_back(&self, held: &Held) -> Option<Event> {
        let limits = EventLimits { max_bytes: usize::MAX, max_tags: usize::MAX };
        match VerifiedEvent::from_json(held.json.as_bytes(), &limits) {
            Ok(event) if event.id == held.id => Some(event.into_event()),
            result => {
                let error =
                    result.err().map_or("it is another event".to_owned(), |it| it.to_string());
                tracing::warn!(event_id = %held.id, error, "a held event was damaged and is dropped");
                self.let_go(&[held.id]);
                None
            }
        }
    }
}
