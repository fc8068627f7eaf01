use std::collections::{BTreeSet, HashMap};

use nostr::event::EventId;

/// The ids of events that were given up, each until its time is over or there are too many.
#[derive(Default)]
pub(super) struct Remembered {
    until: HashMap<EventId, u64>,
    order: BTreeSet<(u64, EventId)>,
}

impl Remembered {
    /// Remembers an id. Gives the ids that had to go for it.
    pub(super) fn insert(&mut self, id: EventId, until: u64, most: usize) -> Vec<EventId> {
        self.remove(&id);
        self.until.insert(id, until);
        self.order.insert((until, id));
        let mut gone = Vec::new();
        while self.until.len() > most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.until.remove(&oldest);
            gone.push(oldest);
        }
        gone
    }

    pub(super) fn remove(&mut self, id: &EventId) -> bool {
        let Some(until) = self.until.remove(id) else { return false };
        self.order.remove(&(until, *id))
    }

    pub(super) fn contains(&self, id: &EventId, now: u64) -> bool {
        self.until.get(id).is_some_and(|until| *until > now)
    }

    /// Forgets the next id whose time is over.
    pub(super) fn pop_expired(&mut self, now: u64) -> Option<EventId> {
        let (until, id) = *self.order.first()?;
        (until <= now && self.remove(&id)).then_some(id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&EventId, &u64)> {
        self.until.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.until.len()
    }
}
