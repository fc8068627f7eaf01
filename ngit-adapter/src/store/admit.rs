//! How events come in.

use std::sync::Arc;

use nostr::event::{Event, Kind};
use nostr_database::{DatabaseEventStatus, RejectedReason, SaveEventStatus};
use purgatory_sync::StoreError;

use super::{
    admission::{Admission, AdmitError, Arrival, Outcome},
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

impl Inner {
    /// Holds an event, or serves an announcement whose repository has data here.
    async fn take(
        &self,
        event: &Event,
        held: Arc<Held>,
        _arrival: Arrival,
    ) -> Result<Outcome, AdmitError> {
        let identifier = held.identifier.clone();
        let _pass = self.gates.enter(&identifier).await;
        if let Some(outcome) = self.needless(event, &held).await? {
            return Ok(outcome);
        }
        if held.announcement().is_some() {
            self.take_announcement(held).await
        } else {
            self.hold(held).await?;
            Ok(Outcome::Held { data_first: false })
        }
    }

    /// Why an event need not be taken, if so.
    async fn needless(&self, event: &Event, held: &Held) -> Result<Option<Outcome>, StoreError> {
        {
            let shelf = self.shelf();
            if shelf.contains(&held.id) {
                return Ok(Some(Outcome::Duplicate));
            }
            let newest = shelf.in_slot(&held.identifier, &held.slot());
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

    async fn hold(&self, held: Arc<Held>) -> Result<(), AdmitError> {
        let inserted = self.shelf().insert(Entry::new(held, u64::MAX), &self.config);
        match inserted {
            Inserted::Full(what, how_many) => Err(AdmitError::Full(what, how_many)),
            // The gate was passed alone, so the other answers cannot come; both are no harm.
            Inserted::New { .. } | Inserted::Duplicate | Inserted::Superseded => Ok(()),
        }
    }

    async fn take_announcement(&self, held: Arc<Held>) -> Result<Outcome, AdmitError> {
        let mut look = self.look(&held.identifier).await?;
        let older = look.held_announcement(&held.author).cloned();
        if let Some(older) = &older {
            look.forget(older);
        }
        look.held.push(Entry::new(Arc::clone(&held), u64::MAX));
        if self.has_data(&look, &held.author).await? {
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
        Ok(Outcome::Announced { served: !self.shelf().contains(&held.id) })
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
