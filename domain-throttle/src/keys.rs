use std::{collections::HashMap, sync::Arc};

use crate::moment::Moment;

/// A key's slot in [`Keys`]. Slots are used again once their key is forgotten.
pub(crate) type KeyId = u32;

/// What a domain knows of one key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: Arc<str>,
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
    pub(crate) fn is_free(&self) -> bool {
        !self.alive && !self.reserved && self.held_until.is_none()
    }

    fn is_unused(&self) -> bool {
        self.is_free() && self.waiters == 0
    }
}

/// The keys of a domain that have a permit, wait or are held.
///
/// A handful is searched one by one, which is faster than hashing; more get an index.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    slots: Vec<Option<Key>>,
    free: Vec<KeyId>,
    #[expect(clippy::box_collection, reason = "most domains never have one: 8 bytes, not 48")]
    index: Option<Box<HashMap<Arc<str>, KeyId>>>,
}

const SEARCHED_ONE_BY_ONE: usize = 16;

impl Keys {
    pub(crate) fn find(&self, name: &str) -> Option<KeyId> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => {
                let is_it = |slot: &Option<Key>| slot.as_ref().is_some_and(|k| &*k.name == name);
                self.slots.iter().position(is_it).map(key_id)
            }
        }
    }

    pub(crate) fn find_or_insert(&mut self, name: &str) -> KeyId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let name: Arc<str> = Arc::from(name);
        let key = Key {
            name: name.clone(),
            alive: false,
            reserved: false,
            held_until: None,
            waiters: 0,
            turn: 0,
            turn_before: 0,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = Some(key);
                id
            }
            None => {
                self.slots.push(Some(key));
                key_id(self.slots.len() - 1)
            }
        };
        match &mut self.index {
            Some(index) => {
                index.insert(name, id);
            }
            None if self.slots.len() > SEARCHED_ONE_BY_ONE => self.build_index(),
            None => {}
        }
        id
    }

    /// Forgets a key that neither has nor awaits anything, and gives memory back.
    pub(crate) fn forget_if_unused(&mut self, id: KeyId) {
        if !self[id].is_unused() {
            return;
        }
        if let Some(key) = self.slots[id as usize].take()
            && let Some(index) = &mut self.index
        {
            index.remove(&key.name);
        }
        self.free.push(id);
        if self.free.len() == self.slots.len() && self.slots.len() > SEARCHED_ONE_BY_ONE {
            *self = Self::default();
        }
    }

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
        let entries = keys.filter_map(|(at, slot)| Some((slot.as_ref()?.name.clone(), key_id(at))));
        self.index = Some(Box::new(entries.collect()));
    }
}

impl std::ops::Index<KeyId> for Keys {
    type Output = Key;

    fn index(&self, id: KeyId) -> &Key {
        self.slots[id as usize].as_ref().expect("an id is held only while its key is there")
    }
}

impl std::ops::IndexMut<KeyId> for Keys {
    fn index_mut(&mut self, id: KeyId) -> &mut Key {
        self.slots[id as usize].as_mut().expect("an id is held only while its key is there")
    }
}

fn key_id(at: usize) -> KeyId {
    u32::try_from(at).expect("memory ends before four billion keys of one domain")
}
