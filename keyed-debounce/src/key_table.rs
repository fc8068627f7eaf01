use std::mem;

use crate::{
    key_bucket::{Bucket, Pair, ShortHash},
    slab::Slot,
};

/// Finds records by hash: pairs of hash and slot in small tables.
///
/// It grows and shrinks by one small table at a time (linear hashing), so that no single request
/// pays for moving a million keys while others wait for the lock (D18). A pair knows its hash, so
/// moving it does not touch the record.
pub(crate) struct KeyTable {
    buckets: Vec<Bucket>,
    len: usize,
}

/// How many pairs a bucket has on average before one more bucket is made.
const CROWDED: usize = 256;

impl KeyTable {
    pub(crate) const fn new() -> Self {
        Self { buckets: Vec::new(), len: 0 }
    }

    /// The first record with this hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: ShortHash, is_it: impl FnMut(Slot) -> bool) -> Option<Slot> {
        if self.buckets.is_empty() {
            return None;
        }
        self.buckets[self.bucket(hash)].find(hash, is_it)
    }

    pub(crate) fn insert(&mut self, hash: ShortHash, slot: Slot) {
        if self.len >= self.buckets.len() * CROWDED {
            self.add_bucket();
        }
        let bucket = self.bucket(hash);
        self.buckets[bucket].insert(Pair { hash, slot });
        self.len += 1;
    }

    /// The caller has looked: the pair is here.
    pub(crate) fn remove(&mut self, hash: ShortHash, slot: Slot) {
        let bucket = self.bucket(hash);
        self.buckets[bucket].remove(Pair { hash, slot });
        self.len -= 1;
        if self.len == 0 {
            *self = Self::new();
        } else if self.len < self.buckets.len() * CROWDED / 3 {
            self.remove_bucket();
        }
    }

    fn bucket(&self, hash: ShortHash) -> usize {
        let base = 1 << self.buckets.len().ilog2();
        let bucket = hash.low_bits() & (2 * base - 1);
        if bucket < self.buckets.len() { bucket } else { bucket & (base - 1) }
    }

    /// Splits the lower half of the new bucket.
    fn add_bucket(&mut self) {
        let new = self.buckets.len();
        self.buckets.push(Bucket::default());
        if new > 0 {
            let both = mem::take(&mut self.buckets[lower_half(new)]);
            let (go, stay) = both.pairs().partition(|pair| self.bucket(pair.hash) == new);
            self.buckets[new] = Bucket::of(go);
            self.buckets[lower_half(new)] = Bucket::of(stay);
        }
    }

    /// Joins the last bucket with its lower half. One bucket stays.
    fn remove_bucket(&mut self) {
        if self.buckets.len() == 1 {
            return;
        }
        let Some(last) = self.buckets.pop() else { return };
        let half = lower_half(self.buckets.len());
        let half = &mut self.buckets[half];
        *half = Bucket::of(half.pairs().chain(last.pairs()).collect());
        if self.buckets.len() * 4 < self.buckets.capacity() {
            self.buckets.shrink_to(self.buckets.len() * 2);
        }
    }
}

/// The bucket whose pairs `bucket` takes over when it is added.
fn lower_half(bucket: usize) -> usize {
    bucket - (1 << bucket.ilog2())
}
