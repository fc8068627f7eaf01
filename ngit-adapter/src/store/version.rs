use std::cmp::Reverse;

use nostr::event::{Event, EventId};

/// How new an event is among those that replace each other: the later one, of two of the same second
/// the one with the lower id (NIP-01). Greater is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    created_at: u64,
    id: Reverse<EventId>,
}

impl Version {
    pub(super) fn new(created_at: u64, id: EventId) -> Self {
        Self { created_at, id: Reverse(id) }
    }

    pub(super) fn id(&self) -> EventId {
        self.id.0
    }

    pub(super) fn of(event: &Event) -> Self {
        Self::new(event.created_at.as_secs(), event.id)
    }
}
