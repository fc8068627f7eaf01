use std::collections::VecDeque;

use crate::{
    due_queue::{Place, Position, Records},
    shelf_index::ShelfIndex,
    slab::{Slab, Slot},
};

/// Waiting keys that do not leave next, on shelves, each of which is for a span of time.
///
/// Only the shelves are in order, what lies on one is not: so a key is put away without looking at
/// others, and is looked at and sorted with its shelf when the time of that has come. A key may be
/// put off where it lies: it never leaves before its shelf begins, but it may leave after its end.
pub(crate) struct Shelves {
    shelves: Slab<Shelf>,
    /// Where each shelf begins. It ends where the next one begins.
    begins: ShelfIndex,
}

struct Shelf {
    begin: Position,
    /// What was put here leaves no later, but for what was put off since.
    latest: Position,
    slots: Vec<Slot>,
}

/// How many keys a shelf holds.
pub(crate) const FULL: usize = 128;
/// How few keys are put together with those of the next shelf.
const SPARSE: usize = FULL / 8;

impl Shelves {
    pub(crate) const fn new() -> Self {
        Self { shelves: Slab::new(), begins: ShelfIndex::new() }
    }

    /// Where the first shelf begins.
    pub(crate) fn begin(&self) -> Option<Position> {
        self.begins.first().map(|(begin, _)| begin)
    }

    /// Puts a key away that does not leave before the first shelf begins.
    pub(crate) fn insert(&mut self, position: Position, slot: Slot, records: &mut impl Records) {
        let mut number = self.at(position);
        let shelf = self.shelf(number);
        if shelf.slots.len() >= FULL {
            if position > shelf.latest {
                self.add(vec![(position, slot)], records);
                return;
            }
            self.split(number, position, records);
            number = self.at(position);
        }
        self.shelf(number).push(position, slot);
        records.set_place(slot, Place::shelf(number));
    }

    /// Puts keys away, in order, that leave before the first shelf begins.
    pub(crate) fn prepend(&mut self, keys: VecDeque<(Position, Slot)>, records: &mut impl Records) {
        self.add(keys.into(), records);
    }

    /// Puts keys, in order, where they belong. After a few shelves were full, what finds no room goes
    /// on a shelf together, as if the later ones had been put off.
    pub(crate) fn put_back(&mut self, keys: Vec<(Position, Slot)>, records: &mut impl Records) {
        let mut splits = 4;
        let mut left = Vec::new();
        let mut keys = keys.into_iter().peekable();
        while let Some(&(position, _)) = keys.peek() {
            let number = self.at(position);
            let end = self.end_of(number);
            let shelf = self.shelf(number);
            let is_here = |(position, _): &(Position, Slot)| end.is_none_or(|end| *position < end);
            if shelf.slots.len() < FULL {
                while shelf.slots.len() < FULL
                    && let Some((position, slot)) = keys.next_if(is_here)
                {
                    shelf.push(position, slot);
                    records.set_place(slot, Place::shelf(number));
                }
            } else if splits > 0 {
                splits -= 1;
                let mut here = shelf.keys(records);
                here.sort_unstable();
                self.keep(number, here, FULL / 2, records);
            } else {
                left.extend(keys.next_if(is_here));
            }
        }
        self.add(left, records);
    }

    pub(crate) fn remove(&mut self, number: Slot, slot: Slot, records: &mut impl Records) {
        let shelf = self.shelf(number);
        let at = shelf.slots.iter().position(|&other| other == slot);
        shelf.slots.swap_remove(at.expect("a key is where its record says"));
        if shelf.slots.len() * 4 < shelf.slots.capacity() {
            shelf.slots.shrink_to(shelf.slots.len() * 2);
        }
        if shelf.slots.len() < SPARSE {
            self.join_next(number, records);
        }
    }

    /// Takes the first shelf away and returns what lay on it.
    pub(crate) fn pop_first(&mut self, records: &impl Records) -> Option<Vec<(Position, Slot)>> {
        let (_, number) = self.begins.pop_first()?;
        let shelf = self.shelves.remove(number)?;
        Some(shelf.keys(records))
    }

    /// The shelf for a key with this position.
    fn at(&self, position: Position) -> Slot {
        self.begins.at(position).expect("it is not before the first shelf").1
    }

    fn shelf(&mut self, number: Slot) -> &mut Shelf {
        self.shelves.record_mut(number).expect("a shelf is there while it has a begin")
    }

    /// Puts keys, in order, on a shelf of their own.
    fn add(&mut self, keys: Vec<(Position, Slot)>, records: &mut impl Records) {
        let (Some(&(begin, _)), Some(&(latest, _))) = (keys.first(), keys.last()) else { return };
        let number = self.shelves.insert(Shelf { begin, latest, slots: slots(&keys) });
        self.begins.insert((begin, number));
        for (_, slot) in keys {
            records.set_place(slot, Place::shelf(number));
        }
    }

    /// Makes room for a key. What was put off goes where it belongs now, or else the later half on
    /// a shelf of its own, or less than half where the key is among the last: keys most often come
    /// in the order in which they leave, and what they leave behind should be full.
    fn split(&mut self, number: Slot, for_key: Position, records: &mut impl Records) {
        let end = self.end_of(number);
        let mut keys = self.shelf(number).keys(records);
        keys.sort_unstable();
        let here = keys.partition_point(|(position, _)| end.is_none_or(|end| *position < end));
        if here < keys.len() {
            let put_off = keys.split_off(here);
            self.keep(number, keys, here, records);
            self.put_back(put_off, records);
        } else {
            let before = keys.partition_point(|(position, _)| *position < for_key);
            let stay = if before >= FULL - SPARSE { before.min(FULL - 1) } else { FULL / 2 };
            self.keep(number, keys, stay, records);
        }
    }

    /// Leaves so many of a shelf's keys there, which are in order. The others go on a shelf of their
    /// own.
    fn keep(
        &mut self,
        number: Slot,
        mut keys: Vec<(Position, Slot)>,
        stay: usize,
        records: &mut impl Records,
    ) {
        self.add(keys.split_off(stay), records);
        let shelf = self.shelf(number);
        shelf.slots = slots(&keys);
        shelf.latest = keys.last().map_or(shelf.begin, |(position, _)| *position);
    }

    fn end_of(&mut self, number: Slot) -> Option<Position> {
        let begin = self.shelf(number).begin;
        self.begins.after((begin, number)).map(|(end, _)| end)
    }

    fn join_next(&mut self, number: Slot, records: &mut impl Records) {
        let shelf = self.shelf(number);
        let (begin, len) = (shelf.begin, shelf.slots.len());
        let next = self.begins.after((begin, number));
        let room = next.map_or(0, |(_, next)| FULL - self.shelf(next).slots.len());
        if len > 0 && room < FULL / 2 {
            return;
        }
        self.begins.remove((begin, number));
        let few = self.shelves.remove(number);
        let (Some(few), Some((next_begin, next))) = (few, next.filter(|_| len > 0)) else { return };
        self.begins.remove((next_begin, next));
        self.begins.insert((begin, next));
        for &slot in &few.slots {
            records.set_place(slot, Place::shelf(next));
        }
        let shelf = self.shelf(next);
        shelf.begin = begin;
        shelf.slots.extend(few.slots);
    }
}

impl Shelf {
    fn push(&mut self, position: Position, slot: Slot) {
        const AT_ONCE: usize = 16;
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(AT_ONCE);
        }
        self.slots.push(slot);
        self.latest = self.latest.max(position);
    }

    fn keys(&self, records: &impl Records) -> Vec<(Position, Slot)> {
        self.slots.iter().map(|&slot| (records.position(slot), slot)).collect()
    }
}

fn slots(keys: &[(Position, Slot)]) -> Vec<Slot> {
    keys.iter().map(|&(_, slot)| slot).collect()
}
