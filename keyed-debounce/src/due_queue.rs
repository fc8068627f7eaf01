use std::collections::VecDeque;

use crate::{
    shelves::{FULL, Shelves},
    slab::Slot,
    timestamp::Timestamp,
};

/// The waiting keys in the order in which they leave: by due, then by first request (D11).
///
/// Those who leave next stand in line, sorted. All others lie on [`Shelves`], unsorted, each shelf
/// for a span of time. A shelf holds a bounded number of keys, so that no step is long (D18). What
/// lies on it is a slot; the key's record knows the rest, so a key that is put off stays where it
/// is until the time of its shelf has come.
pub(crate) struct DueQueue {
    /// All that leaves before the first shelf begins.
    line: VecDeque<(Position, Slot)>,
    shelves: Shelves,
}

/// When a key leaves. No two keys have the same: `order` is a running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) due: Timestamp,
    pub(crate) order: u64,
}

impl Position {
    pub(crate) const LAST: Self = Self { due: Timestamp::MAX, order: u64::MAX };
}

/// What is known of the key that leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// When it is due.
    Due(Timestamp),
    /// It is not due before; [`DueQueue::tidy`] finds out more.
    NotBefore(Timestamp),
}

/// Where a waiting key is: in the line, or on which shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) const NOWHERE: Self = Self(u32::MAX);
    const LINE: Self = Self(u32::MAX - 1);

    pub(crate) const fn shelf(shelf: Slot) -> Self {
        Self(shelf)
    }
}

/// What holds the records of the keys.
pub(crate) trait Records {
    /// When the key leaves. While it is in the queue it changes only as
    /// [`DueQueue::may_be_put_off`] says.
    fn position(&self, slot: Slot) -> Position;
    fn place(&self, slot: Slot) -> Place;
    fn set_place(&mut self, slot: Slot, place: Place);
}

/// How long the line may get before its end goes on a shelf.
const LONG: usize = 256;

impl DueQueue {
    pub(crate) const fn new() -> Self {
        Self { line: VecDeque::new(), shelves: Shelves::new() }
    }

    pub(crate) fn insert(&mut self, slot: Slot, records: &mut impl Records) {
        let position = records.position(slot);
        if self.shelves.begin().is_some_and(|begin| begin <= position) {
            self.shelves.insert(position, slot, records);
            self.tidy(records);
            return;
        }
        let at = self.line.partition_point(|(other, _)| *other < position);
        self.line.insert(at, (position, slot));
        records.set_place(slot, Place::LINE);
        if self.line.len() > LONG {
            self.shelves.prepend(self.line.split_off(LONG + 1 - FULL), records);
        }
    }

    /// Whether the key's position may become a later one without more ado.
    pub(crate) fn may_be_put_off(&self, slot: Slot, records: &impl Records) -> bool {
        !matches!(records.place(slot), Place::NOWHERE | Place::LINE)
    }

    /// Takes a key out, wherever it is. Says whether it was here.
    pub(crate) fn remove(&mut self, slot: Slot, records: &mut impl Records) -> bool {
        match records.place(slot) {
            Place::NOWHERE => return false,
            Place::LINE => {
                let position = records.position(slot);
                let at = self.line.partition_point(|(other, _)| *other < position);
                self.line.remove(at);
            }
            Place(shelf) => self.shelves.remove(shelf, slot, records),
        }
        records.set_place(slot, Place::NOWHERE);
        self.tidy(records);
        true
    }

    pub(crate) fn next(&self) -> Option<Next> {
        match self.line.front() {
            Some((position, _)) => Some(Next::Due(position.due)),
            None => self.shelves.begin().map(|begin| Next::NotBefore(begin.due)),
        }
    }

    /// Takes the key that leaves next. `None` if nothing waits, or while [`next`](Self::next) does
    /// not know which it is.
    pub(crate) fn pop_first(&mut self, records: &mut impl Records) -> Option<(Position, Slot)> {
        self.tidy(records);
        let (position, slot) = self.line.pop_front()?;
        records.set_place(slot, Place::NOWHERE);
        self.tidy(records);
        Some((position, slot))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.shelves.begin().is_none()
    }

    /// Moves what leaves next into the line if that is empty, a bounded number of keys at a time
    /// (D18): after hundreds of them were put off, that may take some calls.
    pub(crate) fn tidy(&mut self, records: &mut impl Records) {
        const SHELVES: usize = 4;
        for _ in 0..SHELVES {
            if !self.line.is_empty() {
                return;
            }
            let Some(mut next) = self.shelves.pop_first(records) else {
                self.line = VecDeque::new();
                return;
            };
            next.sort_unstable();
            if let Some(end) = self.shelves.begin() {
                let put_off = next.split_off(next.partition_point(|(position, _)| *position < end));
                self.shelves.put_back(put_off, records);
            }
            for &(_, slot) in &next {
                records.set_place(slot, Place::LINE);
            }
            self.line.extend(next);
        }
    }
}

#[cfg(test)]
mod tests;
