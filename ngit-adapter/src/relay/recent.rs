use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use nostr::{
    event::{Event, EventId, Kind},
    types::Timestamp,
};
use purgatory_sync::Identifier;
use tokio::sync::watch;

use super::hub::Hub;
use crate::store::StoreObserver;

/// How many are remembered.
const MOST: usize = 50;

/// What was let go of late, newest first, for the status page. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(Arc<Mutex<VecDeque<Release>>>);

/// An event that was let go.
#[derive(Clone, Debug)]
pub(super) struct Release {
    pub(super) id: EventId,
    pub(super) kind: Kind,
    pub(super) identifier: Identifier,
    pub(super) at: Timestamp,
}

impl Recent {
    fn note(&self, identifier: &Identifier, event: &Event) {
        let release = Release {
            id: event.id,
            kind: event.kind,
            identifier: identifier.clone(),
            at: Timestamp::now(),
        };
        let mut releases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        releases.push_front(release);
        releases.truncate(MOST);
    }

    pub(super) fn all(&self) -> Vec<Release> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// From the store to whoever asked for its events, and to the status page.
#[derive(Debug)]
pub(super) struct Teller {
    pub(super) hub: Hub,
    pub(super) recent: Recent,
    /// How often the announcements changed.
    pub(super) announced: watch::Sender<u64>,
}

impl StoreObserver for Teller {
    fn announced(&self, identifier: &Identifier, event: &Event) {
        self.released(identifier, event);
        self.announced.send_modify(|version| *version += 1);
    }

    fn released(&self, identifier: &Identifier, event: &Event) {
        self.recent.note(identifier, event);
        self.hub.publish(event.clone());
    }
}
