//! How events come in.

use std::sync::Arc;

use nostr::event::{Event, Kind};
use nostr_database::{DatabaseEventStatus, RejectedReason, SaveEventStatus};
use purgatory_sync::{Arrival, StoreError};

use super::{
    admission::{Admission, AdmitError, Outcome},
    event_store::{Inner, NostrEventStore},
    held::Held,
    purgatory::{Entry, Inserted},
    settle::Saved,
    stored,
};
use crate::nip34::{GitEvent, VerifiedEvent};

impl NostrEventStore {
    /// Takes one event in JSON: checks it, and holds it, serves it or leaves it alone.
    ///
    /// # Errors
    ///
    /// [`AdmitError`]; [`is_rejection`](AdmitError::is_rejection) says whether the event is at fault.
    ///
    /// # Cancel safety
    ///
    /// A dropped call has taken the event or not. Sending it again is no harm.
    pub async fn admit_json(&self, json: &[u8], arrival: Arrival) -> Result<Admission, AdmitError> {
        let event = VerifiedEvent::from_json(json, &self.inner().config.event_limits)?;
        self.admit(event, arrival).await
    }

    /// Takes one event. As [`admit_json`](Self::admit_json), for whoever has it in another form.
    ///
    /// When it returns, the event is durable, and what [`Admission::wake`] says is due.
    ///
    /// # Errors
    ///
    /// As for [`admit_json`](Self::admit_json).
    ///
    /// # Cancel safety
    ///
    /// As for [`admit_json`](Self::admit_json).
    pub async fn admit(
        &self,
        event: VerifiedEvent,
        arrival: Arrival,
    ) -> Result<Admission, AdmitError> {
        let read = GitEvent::read(&event)?;
        let (id, kind) = (event.id, event.kind);
        let identifier = read.identifier().cloned();
        let inner = self.inner();
        let outcome = match read {
            GitEvent::Patch(_) => inner.pass(&event).await?,
            GitEvent::Other if kind == Kind::EventDeletion => inner.delete(&event).await?,
            GitEvent::Other => Outcome::Other,
            read => match Held::new(&event, read) {
                Some(held) => inner.take(&event, Arc::new(held), arrival).await?,
                None => Outcome::Other,
            },
        };
        Ok(Admission { id, kind, identifier, outcome })
    }
}

/// How many events may go for one.
const MOST_GONE: usize = 4;

impl Inner {
    /// Holds an event, or serves an announcement whose repository has data here.
    async fn take(
        &self,
        event: &Event,
        held: Arc<Held>,
        arrival: Arrival,
    ) -> Result<Outcome, AdmitError> {
        let identifier = held.identifier.clone();
        let _pass = self.gates.enter(&identifier).await;
        if let Some(outcome) = self.needless(event, &held).await? {
            return Ok(outcome);
        }
        if self.shelf().is_remembered(&held.id, self.now()) {
            // It was looked for in vain. A sync brings it back for ever; its author may mean it.
            match arrival {
                Arrival::Synced => return Ok(Outcome::GivenUp),
                Arrival::Submitted => self.shelf().forget(&held.id),
            }
        }
        if held.announcement().is_some() {
            return self.take_announcement(held).await;
        }
        self.hold(Arc::clone(&held)).await?;
        let data_first = self.shelf().meet(&held);
        self.extend_announcements(&held).await?;
        Ok(Outcome::Held { data_first })
    }

    /// Why an event need not be taken, if so.
    async fn needless(&self, event: &Event, held: &Held) -> Result<Option<Outcome>, StoreError> {
        {
            let shelf = self.shelf();
            if shelf.purgatory().contains(&held.id) {
                return Ok(Some(Outcome::Duplicate));
            }
            let newest = shelf.purgatory().in_slot(&held.identifier, &held.slot());
            if newest.is_some_and(|newest| newest.version() > held.version()) {
                return Ok(Some(Outcome::Superseded));
            }
        }
        if event.is_expired_at(self.now().into()) {
            return Ok(Some(Outcome::Expired));
        }
        match stored::status(&*self.database, &held.id).await? {
            DatabaseEventStatus::Saved => return Ok(Some(Outcome::Duplicate)),
            DatabaseEventStatus::Deleted => return Ok(Some(Outcome::Deleted)),
            DatabaseEventStatus::NotExistent => {}
        }
        if self.is_superseded(held).await? {
            return Ok(Some(Outcome::Superseded));
        }
        let deleted = stored::is_deleted(&*self.database, event).await?;
        Ok(deleted.then_some(Outcome::Deleted))
    }

    /// Holds an event. It is durable when this returns.
    async fn hold(&self, held: Arc<Held>) -> Result<(), AdmitError> {
        let id = held.id;
        let mut gone = Vec::new();
        let result = match self.insert(held, &mut gone).await {
            Ok(()) => self.flush().await.map_err(AdmitError::from),
            error => error,
        };
        // What could not be made durable was not taken, and takes nobody's place.
        if result.is_err() {
            let unbounded = self.config.clone().unbounded();
            let mut shelf = self.shelf();
            shelf.let_go(&id);
            for entry in gone {
                shelf.hold(entry, &unbounded);
            }
        }
        result
    }

    /// Puts an event among those that are held. What goes for it is added to `gone`.
    async fn insert(&self, held: Arc<Held>, gone: &mut Vec<Entry>) -> Result<(), AdmitError> {
        let deadline = self.config.deadline(self.now());
        loop {
            let entry = Entry::new(Arc::clone(&held), deadline);
            let inserted = self.shelf().hold(entry, &self.config);
            match inserted {
                Inserted::New { replaced } => {
                    gone.extend(replaced);
                    return Ok(());
                }
                // The gate was passed alone, so it is new.
                Inserted::Duplicate | Inserted::Superseded => return Ok(()),
                Inserted::Full(what, how_many) => {
                    // Others may take the room that is made, but not for ever.
                    if gone.len() > MOST_GONE || !self.make_room(&held, what, gone).await? {
                        return Err(AdmitError::Full(what, how_many));
                    }
                }
            }
        }
    }

    /// R6: a new state gives the announcements that it has authority under more time.
    async fn extend_announcements(&self, held: &Held) -> Result<(), StoreError> {
        if self.config.hold_for.is_none() || held.kind != Kind::RepoState {
            return Ok(());
        }
        let look = self.look_at_announcements(&held.identifier).await?;
        let owners = look.authority().owners_for(&held.author);
        self.extend(owners.iter().filter_map(|owner| look.held_announcement(owner)));
        self.flush().await
    }

    async fn take_announcement(&self, held: Arc<Held>) -> Result<Outcome, AdmitError> {
        let mut look = self.look(&held.identifier).await?;
        let older = look.announce(Arc::clone(&held));
        let may = !self.may_serve(&look, vec![held.author]).is_empty();
        if may && self.has_data(&look, &held.author).await? {
            if let Saved::Refused(why) = self.serve(&mut look, &held).await? {
                return Err(AdmitError::Refused(why));
            }
            if let Some(older) = older {
                self.let_go(&[older.id]);
            }
        } else {
            self.hold(Arc::clone(&held)).await?;
        }
        // It may give a say over the repositories of others, too.
        self.settle(&mut look).await?;
        self.flush().await?;
        Ok(Outcome::Announced { served: !self.shelf().purgatory().contains(&held.id) })
    }

    /// Saves a patch: it carries its data.
    async fn pass(&self, event: &Event) -> Result<Outcome, AdmitError> {
        if stored::is_deleted(&*self.database, event).await? {
            return Ok(Outcome::Deleted);
        }
        let saved =
            self.database.save_event(event).await.map_err(|error| {
                StoreError::new("an event could not be saved").with_source(error)
            })?;
        match saved {
            SaveEventStatus::Success => Ok(Outcome::Passed),
            SaveEventStatus::Rejected(RejectedReason::Duplicate) => Ok(Outcome::Duplicate),
            SaveEventStatus::Rejected(RejectedReason::Deleted) => Ok(Outcome::Deleted),
            SaveEventStatus::Rejected(RejectedReason::Expired) => Ok(Outcome::Expired),
            SaveEventStatus::Rejected(other) => Err(AdmitError::Refused(format!("{other:?}"))),
        }
    }
}
