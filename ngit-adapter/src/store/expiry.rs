//! R6: what is held too long goes, and does not come back by itself.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use nostr::event::EventId;
use purgatory_sync::{Identifier, Observer, StoreError, SyncEvent};

use super::{
    event_store::{Inner, NostrEventStore},
    held::Held,
    placeholders::Placeholder,
    stored,
};
use crate::nip34::GitEvent;

/// What went because its time was over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenUp {
    /// The held events, announcements included.
    pub events: Vec<EventId>,
    /// Their repositories: `changed` is due for each.
    pub identifiers: BTreeSet<Identifier>,
    /// Data without an event: `refs/nostr/<event>` of each repository may go.
    pub placeholders: Vec<(EventId, Placeholder)>,
}

impl NostrEventStore {
    /// Gives up what is held too long, by [`StoreConfig::hold_for`](super::StoreConfig::hold_for) and
    /// [`keep_placeholder_for`](super::StoreConfig::keep_placeholder_for).
    ///
    /// The id of an event is remembered if [`fetch_ended`](Self::fetch_ended) came while it was held:
    /// it was looked for in vain, and a sync shall not bring it back.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the change could not be made durable. It is made all the same.
    ///
    /// # Cancel safety
    ///
    /// A dropped call has given up some of it, without saying which.
    pub async fn expire(&self) -> Result<GivenUp, StoreError> {
        let inner = self.inner();
        let now = inner.now();
        let mut gone = GivenUp::default();
        while let Some((id, identifier)) = inner.next_expired(now) {
            let _pass = inner.gates.enter(&identifier).await;
            if inner.give_up(&id, now) {
                tracing::debug!(identifier = identifier.as_str(), event_id = %id, "held event given up");
                gone.events.push(id);
                gone.identifiers.insert(identifier);
            }
        }
        let expired = inner.shelf().expired_placeholders(now);
        for (event, placeholder) in expired {
            let is_met = match inner.is_met(&event, &placeholder).await {
                Ok(is_met) => is_met,
                Err(error) => {
                    // It stays for the next time. What is forgotten by now has to be told.
                    tracing::warn!(%error, event_id = %event, "a pushed commit could not be judged");
                    continue;
                }
            };
            if inner.shelf().fill(&event).is_some() && !is_met {
                gone.placeholders.push((event, placeholder));
            }
        }
        inner.shelf().forget_expired(now);
        inner.flush().await.map(|()| gone)
    }

    /// How long it is until [`expire`](Self::expire) has something to do. `None` if nothing waits for it.
    pub fn until_expiry(&self) -> Option<Duration> {
        let next = self.inner().shelf().next_deadline()?;
        Some(Duration::from_secs(next.saturating_sub(self.inner().now())))
    }

    /// Notes that a fetch for a repository ended, whatever it brought.
    pub fn fetch_ended(&self, identifier: &Identifier) {
        self.inner().shelf().mark_hunted(identifier);
    }

    /// Notes that data for a repository arrived: its held announcements get their whole time again.
    pub fn data_arrived(&self, identifier: &Identifier) {
        let inner = self.inner();
        let announcements: Vec<_> = {
            let shelf = inner.shelf();
            let held = shelf.purgatory().entries(identifier).iter().map(|entry| &entry.held);
            held.filter(|held| held.announcement().is_some()).cloned().collect()
        };
        inner.extend(announcements.iter());
    }
}

/// Notes what the engine's fetches do: which repositories were looked for, and where data arrived.
///
/// Give the store to the engine's builder as its observer where events expire.
impl Observer for NostrEventStore {
    fn observe(&self, event: &SyncEvent) {
        if let SyncEvent::FetchEnded(fetch) = event {
            self.fetch_ended(&fetch.identifier);
            if fetch.received > 0 {
                self.data_arrived(&fetch.identifier);
            }
        }
    }
}

impl Inner {
    fn next_expired(&self, now: u64) -> Option<(EventId, Identifier)> {
        let shelf = self.shelf();
        let entry = shelf.purgatory().next_expired(now)?;
        Some((entry.held.id, entry.held.identifier.clone()))
    }

    /// Whether what lies at a placeholder's ref belongs to its event, which came: it is what that says.
    async fn is_met(&self, event: &EventId, it: &Placeholder) -> Result<bool, StoreError> {
        let held = self.shelf().purgatory().find(event).map(|entry| Arc::clone(&entry.held));
        match held {
            Some(held) => Ok(it.fits(&held)),
            None => self.is_of_served(event, it).await,
        }
    }

    /// Whether a placeholder is what an event says that is served.
    async fn is_of_served(
        &self,
        event: &EventId,
        placeholder: &Placeholder,
    ) -> Result<bool, StoreError> {
        let event = stored::event(&*self.database, event).await?;
        let read = event.and_then(|event| GitEvent::read(&event).ok());
        Ok(read.and_then(GitEvent::into_proposal).is_some_and(|it| placeholder.fits_proposal(&it)))
    }

    /// Lets an event go if its time is still over.
    fn give_up(&self, id: &EventId, now: u64) -> bool {
        let mut shelf = self.shelf();
        if shelf.purgatory().find(id).is_none_or(|entry| entry.deadline > now) {
            return false;
        }
        if shelf.let_go(id).is_some_and(|entry| entry.hunted) {
            let until = now.saturating_add(self.config.remember_for.as_secs());
            shelf.remember(*id, until, self.config.max_remembered);
        }
        true
    }

    /// Gives held events their whole time again.
    pub(super) fn extend<'a>(&self, held: impl Iterator<Item = &'a Arc<Held>>) {
        let deadline = self.config.deadline(self.now());
        let mut shelf = self.shelf();
        for held in held {
            shelf.extend(&held.id, deadline);
        }
    }
}
