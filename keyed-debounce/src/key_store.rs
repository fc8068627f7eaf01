use std::{ops::Deref, sync::Arc};

use crate::{
    due_queue::Place,
    key_bucket::ShortHash,
    key_table::KeyTable,
    slab::{Slab, Slot},
};

/// A key, stored once: by value while it waits, shared with the holder of a run.
pub(crate) enum Key<K> {
    Own(K),
    Shared(Arc<K>),
}

impl<K> Key<K> {
    /// Another handle to the key, which is shared from then on.
    pub(crate) fn share(self) -> (Self, Arc<K>) {
        let key = match self {
            Self::Own(key) => Arc::new(key),
            Self::Shared(key) => key,
        };
        (Self::Shared(Arc::clone(&key)), key)
    }
}

impl<K> Deref for Key<K> {
    type Target = K;

    fn deref(&self) -> &K {
        match self {
            Self::Own(key) => key,
            Self::Shared(key) => key,
        }
    }
}

/// All keys with what is known of each. Knows nothing of time.
pub(crate) struct KeyStore<K, V> {
    records: Slab<Record<K, V>>,
    table: KeyTable,
}

/// In this order, so that what the queue looks at, in random order, lies together.
#[repr(C)]
struct Record<K, V> {
    /// Only while the key is being shared, in between two lines of `share`, it is not here.
    key: Option<Key<K>>,
    hash: ShortHash,
    /// Where the key is in the queue. Here, since beside the hash it takes no room.
    place: Place,
    value: V,
}

impl<K, V> KeyStore<K, V> {
    pub(crate) const fn new() -> Self {
        Self { records: Slab::new(), table: KeyTable::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn slots_end(&self) -> Slot {
        self.records.slots_end()
    }

    /// Whether there is no number left for one more key.
    pub(crate) fn is_full(&self) -> bool {
        self.records.slots_end() >= Slot::MAX - 1024
    }

    /// The caller has looked: the key is not here.
    pub(crate) fn insert(&mut self, hash: u64, key: Key<K>, value: V) -> Slot {
        let hash = ShortHash::new(hash);
        let slot =
            self.records.insert(Record { hash, place: Place::NOWHERE, key: Some(key), value });
        self.table.insert(hash, slot);
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<(Key<K>, V)> {
        let record = self.records.remove(slot)?;
        self.table.remove(record.hash, slot);
        Some((record.key?, record.value))
    }

    pub(crate) fn key(&self, slot: Slot) -> Option<&K> {
        self.records.record(slot)?.key.as_deref()
    }

    /// A handle to the key, which stays here too.
    pub(crate) fn share(&mut self, slot: Slot) -> Option<Arc<K>> {
        let record = self.records.record_mut(slot)?;
        let (here, shared) = record.key.take()?.share();
        record.key = Some(here);
        Some(shared)
    }

    pub(crate) fn place(&self, slot: Slot) -> Place {
        self.records.record(slot).map_or(Place::NOWHERE, |record| record.place)
    }

    pub(crate) fn set_place(&mut self, slot: Slot, place: Place) {
        if let Some(record) = self.records.record_mut(slot) {
            record.place = place;
        }
    }

    pub(crate) fn value(&self, slot: Slot) -> Option<&V> {
        Some(&self.records.record(slot)?.value)
    }

    pub(crate) fn value_mut(&mut self, slot: Slot) -> Option<&mut V> {
        Some(&mut self.records.record_mut(slot)?.value)
    }
}

impl<K: Eq, V> KeyStore<K, V> {
    /// Calls `Eq` of the key, which may panic, and changes nothing.
    pub(crate) fn find(&self, hash: u64, key: &K) -> Option<Slot> {
        self.table.find(ShortHash::new(hash), |slot| self.key(slot) == Some(key))
    }
}
