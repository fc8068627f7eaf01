//! One release for every way in which data can arrive: a fetch, a push, a sibling, a start.
//!
//! The steps are: refs set, saved, told, let go. A crash between any two of them leaves the event
//! held, and each step may be done again: after the next release the end is the same.

use std::{collections::HashSet, sync::Arc};

use nostr::{
    event::{Event, EventId},
    key::PublicKey,
};
use nostr_database::DatabaseEventStatus;
use purgatory_sync::{Identifier, Oid, Released, StoreError};

use super::{
    event_store::Inner,
    followers::NO_MORE_COPIES,
    held::{Body, Held},
    look::Look,
    settle::Saved,
    stored::{self, StoredState},
};
use crate::{RefError, StateRefs, nip34::State};

/// What became of one event that was ready.
enum Step {
    Released,
    /// It went without being served: its author has a newer one, or deleted it.
    Dropped,
    /// It stays, with the reason noted.
    Stays,
}

impl Inner {
    /// Releases what waits for nothing but objects that are `here`. The caller has the gate.
    pub(super) async fn release(
        &self,
        identifier: &Identifier,
        here: &HashSet<Oid>,
    ) -> Result<Released, StoreError> {
        if self.shelf().purgatory().entries(identifier).is_empty() {
            return Ok(Released::default());
        }
        let mut look = self.look(identifier).await?;
        let mut released = 0;
        let result = self.release_all(&mut look, here, &mut released).await;
        let held = self.shelf().purgatory().counted(identifier);
        result.map(|()| Released { released, held })
    }

    async fn release_all(
        &self,
        look: &mut Look,
        here: &HashSet<Oid>,
        released: &mut usize,
    ) -> Result<(), StoreError> {
        self.settle(look).await?;
        let mut failure = None;
        // What waits for no object goes after its announcement, which goes with what waits for one.
        for waits_for_objects in [true, false] {
            for held in ready(look, here, waits_for_objects) {
                match self.release_one(look, &held).await {
                    Ok(Step::Released) => *released += 1,
                    Ok(Step::Dropped | Step::Stays) => {}
                    // One owner's repository that fails must not hold up the others.
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    async fn release_one(&self, look: &mut Look, held: &Arc<Held>) -> Result<Step, StoreError> {
        let owners = owners(look, held);
        if owners.is_empty() {
            return Ok(Step::Stays);
        }
        let owners = self.within_bounds(look, held, owners);
        if owners.is_empty() {
            return Ok(self.keep(held, NO_MORE_COPIES.to_owned()));
        }
        let Some(event) = self.read_back(held) else {
            look.forget(held);
            return Ok(Step::Dropped);
        };
        if let Some(why) = self.is_over(held, &event).await? {
            return Ok(self.drop_one(look, held, why));
        }
        let state = match held.body {
            Body::State(_) => State::from_tags(&event.tags).ok(),
            _ => None,
        };
        if let Err(conflict) = self.set_refs(look, held, &owners, state.as_ref()).await? {
            return Ok(self.keep(held, conflict));
        }
        let saved = self.save(held, &event).await?;
        if state.is_some() && !matches!(saved, Saved::Yes) {
            // The refs have moved to a state that is not served: back to the one that is.
            self.follow(look, &owners).await?;
        }
        match saved {
            Saved::Yes => {}
            Saved::Never(why) => return Ok(self.drop_one(look, held, why)),
            Saved::Refused(why) => {
                return Ok(self.keep(held, format!("the database does not take it: {why}")));
            }
        }
        if let Some(state) = state.filter(|state| !state.refs.refs.is_empty()) {
            let (author, version) = (held.author, held.version());
            look.serve_state(StoredState { author, version, refs: state.refs });
        }
        if !held.oids().is_empty() {
            self.serve_announcements(look, &owners).await?;
        }
        self.observer.released(&look.identifier, &event);
        log_release(look, held, owners.len());
        self.let_go(&[held.id]);
        look.forget(held);
        Ok(Step::Released)
    }

    /// Why an event must not be served any more, if so.
    async fn is_over(
        &self,
        held: &Held,
        event: &Event,
    ) -> Result<Option<&'static str>, StoreError> {
        if event.is_expired_at(self.now().into()) {
            return Ok(Some("it is over"));
        }
        match stored::status(&*self.database, &held.id).await? {
            DatabaseEventStatus::Saved => return Ok(None),
            DatabaseEventStatus::Deleted => return Ok(Some("its author deleted it")),
            DatabaseEventStatus::NotExistent => {}
        }
        if self.is_superseded(held).await? {
            return Ok(Some("its author has a newer one"));
        }
        // By its address, too: the database would refuse it only after the refs have moved.
        let deleted = stored::is_deleted(&*self.database, event).await?;
        Ok(deleted.then_some("its author deleted it"))
    }

    /// The first step of a release. The inner error is a conflict: nothing will change it but another event.
    async fn set_refs(
        &self,
        look: &Look,
        held: &Held,
        owners: &[PublicKey],
        state: Option<&State>,
    ) -> Result<Result<(), String>, StoreError> {
        let result = match (&held.body, state) {
            (Body::Proposal(proposal), _) => {
                self.keep_pull_request(look, owners, &held.id, &proposal.tip).await
            }
            (Body::State(_), Some(state)) if !state.refs.refs.is_empty() => {
                self.apply_state(look, held, owners, &state.refs).await
            }
            _ => Ok(()),
        };
        match result {
            Ok(()) => Ok(Ok(())),
            Err(RefError::Failed(source)) => {
                Err(StoreError::new("refs could not be set").with_source(source))
            }
            Err(conflict) => Ok(Err(conflict.to_string())),
        }
    }

    async fn keep_pull_request(
        &self,
        look: &Look,
        owners: &[PublicKey],
        id: &EventId,
        tip: &Oid,
    ) -> Result<(), RefError> {
        for owner in owners {
            self.refs.keep_pull_request(&look.repository(*owner), id, tip).await?;
        }
        Ok(())
    }

    /// Moves the refs of each owner for whom this is the newest served state (R5). The others get its data all the
    /// same (G10).
    async fn apply_state(
        &self,
        look: &Look,
        held: &Held,
        owners: &[PublicKey],
        refs: &StateRefs,
    ) -> Result<(), RefError> {
        let (led, others): (Vec<PublicKey>, Vec<PublicKey>) = {
            let newest = look.newest_states();
            let leads =
                |owner: &PublicKey| newest.get(owner).is_none_or(|it| it.version <= held.version());
            owners.iter().partition(|owner| leads(owner))
        };
        for owner in led {
            self.refs.apply_state(&look.repository(owner), refs).await?;
        }
        for owner in others {
            self.refs.keep_objects(&look.repository(owner), held.oids()).await?;
        }
        Ok(())
    }

    /// The announcements that go with an event that waited for an object.
    async fn serve_announcements(
        &self,
        look: &mut Look,
        owners: &[PublicKey],
    ) -> Result<(), StoreError> {
        for owner in owners {
            if let Some(announcement) = look.held_announcement(owner).cloned() {
                self.serve(look, &announcement).await?;
            }
        }
        Ok(())
    }

    fn drop_one(&self, look: &mut Look, held: &Held, why: &'static str) -> Step {
        tracing::debug!(identifier = look.identifier.as_str(), event_id = %held.id, why, "held event dropped");
        self.let_go(&[held.id]);
        look.forget(held);
        Step::Dropped
    }

    fn keep(&self, held: &Held, why: String) -> Step {
        tracing::warn!(identifier = held.identifier.as_str(), event_id = %held.id, why, "processing failed");
        self.shelf().set_trouble(&held.id, Some(why.into()));
        Step::Stays
    }

    /// The last step: the event is not held any more.
    pub(super) fn let_go(&self, ids: &[EventId]) {
        let mut shelf = self.shelf();
        for id in ids {
            if let Some(entry) = shelf.let_go(id) {
                shelf.meet(&entry.held);
            }
        }
    }
}

/// The events that may be ready, oldest first.
fn ready(look: &Look, here: &HashSet<Oid>, waits_for_objects: bool) -> Vec<Arc<Held>> {
    let complete = |held: &Held| {
        held.counts()
            && held.oids().is_empty() != waits_for_objects
            && held.oids().iter().all(|oid| here.contains(oid))
    };
    let held = look.held().iter().map(|entry| &entry.held);
    let mut ready: Vec<_> = held.filter(|held| complete(held)).cloned().collect();
    ready.sort_by_key(|held| (held.created_at, held.id));
    ready
}

/// Whose repositories an event is for: those over which its author has authority, or that a pull
/// request names and somebody announced. One that waits for no object is for served ones only.
fn owners(look: &Look, held: &Held) -> Vec<PublicKey> {
    let authority = look.authority();
    let mut owners = match &held.body {
        Body::Announcement(_) => Vec::new(),
        Body::State(_) => authority.owners_for(&held.author),
        Body::Proposal(proposal) => {
            let named = proposal.repositories.iter().map(|it| it.owner);
            named.filter(|owner| authority.knows(owner)).collect()
        }
    };
    if held.oids().is_empty() {
        owners.retain(|owner| look.is_served(owner));
    }
    owners
}

fn log_release(look: &Look, held: &Held, repositories: usize) {
    let (identifier, event_id) = (look.identifier.as_str(), &held.id);
    if matches!(held.body, Body::State(_)) {
        tracing::info!(identifier, %event_id, repos_synced = repositories, "state synced");
    } else {
        tracing::info!(identifier, %event_id, repos_synced = repositories, "pull request synced");
    }
}
