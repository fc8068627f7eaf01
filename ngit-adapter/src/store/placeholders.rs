use std::collections::{BTreeSet, HashMap};

use nostr::event::EventId;
use purgatory_sync::Oid;

use crate::RepositoryId;

/// Data that came before its event: a commit that was pushed for a pull request nobody has seen yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placeholder {
    /// Where it was pushed to.
    pub repository: RepositoryId,
    /// The commit.
    pub tip: Oid,
    /// When it goes, in seconds since 1970.
    pub until: u64,
}

/// The placeholders, found by event and by deadline.
#[derive(Default)]
pub(super) struct Placeholders {
    by_event: HashMap<EventId, Placeholder>,
    deadlines: BTreeSet<(u64, EventId)>,
}

impl Placeholders {
    /// Puts a placeholder in the place of an earlier one of the same event.
    pub(super) fn insert(&mut self, event: EventId, placeholder: Placeholder) {
        self.remove(&event);
        self.deadlines.insert((placeholder.until, event));
        self.by_event.insert(event, placeholder);
    }

    pub(super) fn remove(&mut self, event: &EventId) -> Option<Placeholder> {
        let placeholder = self.by_event.remove(event)?;
        self.deadlines.remove(&(placeholder.until, *event));
        Some(placeholder)
    }

    pub(super) fn find(&self, event: &EventId) -> Option<&Placeholder> {
        self.by_event.get(event)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&EventId, &Placeholder)> {
        self.by_event.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.by_event.len()
    }

    pub(super) fn next_expired(&self, now: u64) -> Option<EventId> {
        self.deadlines.first().filter(|(until, _)| *until <= now).map(|(_, event)| *event)
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(until, _)| *until)
    }
}
