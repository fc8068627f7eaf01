use std::collections::HashMap;

use crate::{key_name::KeyName, moment::Moment};

/// A key's slot in [`Keys`]. Slots are used again once their key is forgotten.
pub(crate) type KeyId = u32;

/// What a domain knows of one key.
#[derive(Debug, Default)]
pub(crate) struct Key {
    /// What was here last, if the slot is free: the next is often the same.
    pub(crate) name: KeyName,
    is_there: bool,
    /// It has a permit.
    pub(crate) alive: bool,
    /// A permit is set aside for one of its waiters.
    pub(crate) reserved: bool,
    /// The server asked this key to stay away until then.
    pub(crate) held_until: Option<Moment>,
    /// How many of its waiters are in the line.
    pub(crate) waiters: u32,
    /// Its place in the rotation: lowest first.
    pub(crate) turn: u64,
    /// The place to go back to if the permit that is set aside is not used.
    pub(crate) turn_before: u64,
}

impl Key {
    /// Whether a waiter of this key may go, as far as the key is concerned.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        !self.alive && !self.reserved && self.held_until.is_none()
    }

    #[inline]
    fn is_unused(&self) -> bool {
        self.is_free() && self.waiters == 0
    }
}

/// The keys of a domain that have a permit, wait or are held.
///
/// A handful is searched one by one, which is faster than hashing; more get an index.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    slots: Vec<Key>,
    free: Vec<KeyId>,
    #[expect(clippy::box_collection, reason = "most domains never have one: 8 bytes, not 48")]
    index: Option<Box<HashMap<Box<str>, KeyId>>>,
}

const SEARCHED_ONE_BY_ONE: usize = 16;

impl Keys {
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Option<KeyId> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None if self.is_empty() => None,
            None => {
                let is_it = |slot: &Key| slot.is_there && slot.name.is(name);
                self.slots.iter().position(is_it).map(key_id)
            }
        }
    }

    pub(crate) fn find_or_insert(&mut self, name: &str) -> KeyId {
        self.find(name).unwrap_or_else(|| self.insert(name))
    }

    /// Adds a key that is not there.
    #[inline]
    pub(crate) fn insert(&mut self, name: &str) -> KeyId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Key::default());
            key_id(self.slots.len() - 1)
        });
        let slot = &mut self.slots[id as usize];
        if !slot.name.is(name) {
            slot.name = KeyName::new(name);
        }
        slot.is_there = true;
        match &mut self.index {
            Some(index) => {
                index.insert(name.into(), id);
            }
            None if self.slots.len() > SEARCHED_ONE_BY_ONE => self.build_index(),
            None => {}
        }
        id
    }

    /// Forgets a key that neither has nor awaits anything, and gives memory back.
    #[inline]
    pub(crate) fn forget_if_unused(&mut self, id: KeyId) {
        if !self[id].is_unused() {
            return;
        }
        let slot = &mut self.slots[id as usize];
        slot.is_there = false;
        if let Some(index) = &mut self.index {
            index.remove(&*slot.name.text());
        }
        if slot.name.is_long() {
            slot.name = KeyName::default();
        }
        self.free.push(id);
        if self.free.len() == self.slots.len() && self.slots.len() > SEARCHED_ONE_BY_ONE {
            *self = Self::default();
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Gives back what is kept for speed. Only of use when no key is there.
    pub(crate) fn shrink(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }

    fn build_index(&mut self) {
        let keys = self.slots.iter().enumerate();
        let there = keys.filter(|(_, slot)| slot.is_there);
        let entries = there.map(|(at, slot)| (slot.name.text().into(), key_id(at)));
        self.index = Some(Box::new(entries.collect()));
    }
}

impl std::ops::Index<KeyId> for Keys {
    type Output = Key;

    #[inline]
    fn index(&self, id: KeyId) -> &Key {
        let key = &self.slots[id as usize];
        debug_assert!(key.is_there, "an id is held only while its key is there");
        key
    }
}

impl std::ops::IndexMut<KeyId> for Keys {
    #[inline]
    fn index_mut(&mut self, id: KeyId) -> &mut Key {
        let key = &mut self.slots[id as usize];
        debug_assert!(key.is_there, "an id is held only while its key is there");
        key
    }
}

#[inline]
fn key_id(at: usize) -> KeyId {
    u32::try_from(at).expect("memory ends before four billion keys of one domain")
}
