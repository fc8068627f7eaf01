use hashbrown::HashTable;

use crate::{Domain, Moment, domain::hash_of, slot::Slot};

/// A part of all domains, behind one lock: their slots, and an index by name.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: HashTable<u32>,
}

impl Shard {
    /// How many slots there are, vacant ones included.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(crate) fn slot(&mut self, at: u32) -> Option<&mut Slot> {
        self.slots.get_mut(at as usize)
    }

    #[inline]
    pub(crate) fn find(&self, domain: &Domain) -> Option<u32> {
        let is_it = |&at: &u32| self.slots[at as usize].is(domain.shared());
        self.index.find(domain.name_hash(), is_it).copied()
    }

    /// Adds a domain that is not there.
    pub(crate) fn insert(&mut self, domain: &Domain, slot: Slot) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            if self.slots.len() == self.slots.capacity() {
                // An eighth more, not twice as many: of a hundred thousand the rest would be spare.
                self.slots.reserve_exact((self.slots.len() / 8).max(4));
            }
            self.slots.push(Slot::vacant());
            u32::try_from(self.slots.len() - 1).expect("memory ends before four billion domains")
        });
        self.slots[at as usize] = slot;
        let slots = &self.slots;
        self.index.insert_unique(domain.name_hash(), at, |&at| hash_in(slots, at));
        at
    }

    /// Gives back what one domain does not need any more. Says whether there is one, and whether it
    /// was forgotten.
    pub(crate) fn tidy(&mut self, at: usize, now: Moment) -> (bool, bool) {
        let Some(slot) = self.slots.get_mut(at) else { return (false, false) };
        if !slot.tidy(now) {
            return (!slot.is_vacant(), false);
        }
        let Some(name) = slot.name() else { return (false, false) };
        let hash = hash_of(name);
        *slot = Slot::vacant();
        let at = u32::try_from(at).expect("a slot's number");
        if let Ok(entry) = self.index.find_entry(hash, |&other| other == at) {
            entry.remove();
        }
        self.free.push(at);
        (true, true)
    }

    /// Gives back the memory of slots that are vacant, if they are many: what lies at the end moves
    /// to the front, as far as it can be moved. At most `most` are moved.
    pub(crate) fn give_back(&mut self, most: usize) {
        if self.free.len() <= self.slots.len() / 4 {
            return;
        }
        let mut free = std::mem::take(&mut self.free);
        for moved in 0.. {
            while self.slots.last().is_some_and(Slot::is_vacant) {
                self.slots.pop();
            }
            if moved == most || !self.slots.last().is_some_and(Slot::is_parked) {
                break;
            }
            let last = self.slots.len() - 1;
            let Some(to) = std::iter::from_fn(|| free.pop()).find(|&to| (to as usize) < last)
            else {
                break;
            };
            self.move_last_to(to);
        }
        free.retain(|&at| (at as usize) < self.slots.len());
        self.free = free;
        self.free.shrink_to_fit();
        if self.slots.capacity() > self.slots.len() + self.slots.len() / 4 {
            self.slots.shrink_to_fit();
        }
        let slots = &self.slots;
        if self.index.capacity() > 4 * self.index.len() {
            self.index.shrink_to(self.index.len(), |&at| hash_in(slots, at));
        }
    }

    /// Moves the last slot, in which nothing goes on, to one that is vacant before it.
    fn move_last_to(&mut self, to: u32) {
        let last = self.slots.len() - 1;
        let from = u32::try_from(last).expect("a slot's number");
        let hash = hash_in(&self.slots, from);
        if let Some(entry) = self.index.find_mut(hash, |&at| at == from) {
            *entry = to;
        }
        self.slots.swap(to as usize, last);
        self.slots.truncate(last);
    }
}

fn hash_in(slots: &[Slot], at: u32) -> u64 {
    slots[at as usize].name().map_or(0, hash_of)
}
