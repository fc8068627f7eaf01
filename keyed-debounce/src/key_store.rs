use std::{ops::Deref, sync::Arc};

use crate::{
    key_table::{Chained, KeyTable, NONE},
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

struct Record<K, V> {
    hash: u64,
    next: Slot,
    /// Only while the key is being shared, in between two lines of `share`, it is not here.
    key: Option<Key<K>>,
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
        let slot = self.records.insert(Record { hash, next: NONE, key: Some(key), value });
        self.table.insert(slot, &mut self.records);
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<(Key<K>, V)> {
        self.records.record(slot)?;
        self.table.remove(slot, &mut self.records);
        let record = self.records.remove(slot)?;
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
        self.table.find(hash, &self.records, |slot| self.key(slot) == Some(key))
    }
}

impl<K, V> Chained for Slab<Record<K, V>> {
    fn hash(&self, slot: Slot) -> u64 {
        self.chained(slot).hash
    }

    fn next(&self, slot: Slot) -> Slot {
        self.chained(slot).next
    }

    fn set_next(&mut self, slot: Slot, next: Slot) {
        self.record_mut(slot).expect("a chained record is in the slab").next = next;
    }
}

impl<K, V> Slab<Record<K, V>> {
    fn chained(&self, slot: Slot) -> &Record<K, V> {
        self.record(slot).expect("a chained record is in the slab")
    }
}
