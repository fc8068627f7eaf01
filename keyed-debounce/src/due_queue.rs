use std::collections::BTreeMap;

use crate::{slab::Slot, timestamp::Timestamp};

/// The waiting keys in the order in which they leave: by due, then by first request (D11).
pub(crate) struct DueQueue {
    entries: BTreeMap<Position, Slot>,
}

/// A place in the queue. No two keys have the same: `order` is a running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) due: Timestamp,
    pub(crate) order: u64,
}

impl DueQueue {
    pub(crate) const fn new() -> Self {
        Self { entries: BTreeMap::new() }
    }

    pub(crate) fn insert(&mut self, position: Position, slot: Slot) {
        self.entries.insert(position, slot);
    }

    pub(crate) fn remove(&mut self, position: Position) -> Option<Slot> {
        self.entries.remove(&position)
    }

    pub(crate) fn first(&self) -> Option<(Position, Slot)> {
        self.entries.first_key_value().map(|(&position, &slot)| (position, slot))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
