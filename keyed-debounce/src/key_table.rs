use crate::slab::Slot;

const SEGMENT: usize = 256;

/// Finds records by hash: a table of chains that run through the records.
///
/// It grows and shrinks by one bucket at a time (linear hashing), so that no single request pays
/// for moving a million keys while others wait for the lock (D18). The records hold the links, see
/// [`Chained`].
pub(crate) struct KeyTable {
    #[expect(clippy::vec_box, reason = "growing moves pointers, not buckets")]
    segments: Vec<Box<[u32; SEGMENT]>>,
    buckets: usize,
    len: usize,
}

/// No record.
pub(crate) const NONE: Slot = Slot::MAX;

/// What holds the chained records.
pub(crate) trait Chained {
    fn hash(&self, slot: Slot) -> u64;
    fn next(&self, slot: Slot) -> Slot;
    fn set_next(&mut self, slot: Slot, next: Slot);
}

impl KeyTable {
    pub(crate) const fn new() -> Self {
        Self { segments: Vec::new(), buckets: 0, len: 0 }
    }

    /// The first record with this hash for which `is_it` holds.
    pub(crate) fn find(
        &self,
        hash: u64,
        records: &impl Chained,
        mut is_it: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        if self.buckets == 0 {
            return None;
        }
        let mut slot = self.head(self.bucket(hash));
        while slot != NONE {
            if records.hash(slot) == hash && is_it(slot) {
                return Some(slot);
            }
            slot = records.next(slot);
        }
        None
    }

    pub(crate) fn insert(&mut self, slot: Slot, records: &mut impl Chained) {
        if self.len >= self.buckets {
            self.add_bucket(records);
        }
        let bucket = self.bucket(records.hash(slot));
        self.push(bucket, slot, records);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, slot: Slot, records: &mut impl Chained) {
        let bucket = self.bucket(records.hash(slot));
        let after = records.next(slot);
        let mut before = self.head(bucket);
        if before == slot {
            self.set_head(bucket, after);
        } else {
            while records.next(before) != slot {
                before = records.next(before);
            }
            records.set_next(before, after);
        }
        self.len -= 1;
        if self.len == 0 {
            *self = Self::new();
        } else if self.len < self.buckets / 2 {
            self.remove_bucket(records);
        }
    }

    fn bucket(&self, hash: u64) -> usize {
        let base = 1 << self.buckets.ilog2();
        #[expect(clippy::cast_possible_truncation, reason = "only the low bits choose the bucket")]
        let hash = hash as usize;
        let bucket = hash & (2 * base - 1);
        if bucket < self.buckets { bucket } else { hash & (base - 1) }
    }

    /// Splits the chain of the new bucket's lower half.
    fn add_bucket(&mut self, records: &mut impl Chained) {
        let new = self.buckets;
        if new == self.segments.len() * SEGMENT {
            self.segments.push(Box::new([NONE; SEGMENT]));
        }
        self.buckets += 1;
        if new == 0 {
            return;
        }
        let old = lower_half(new);
        let mut slot = self.head(old);
        self.set_head(old, NONE);
        while slot != NONE {
            let next = records.next(slot);
            let bucket = self.bucket(records.hash(slot));
            self.push(bucket, slot, records);
            slot = next;
        }
    }

    /// Joins the last bucket's chain with that of its lower half.
    fn remove_bucket(&mut self, records: &mut impl Chained) {
        let last = self.buckets - 1;
        let mut slot = self.head(last);
        self.set_head(last, NONE);
        self.buckets = last;
        while slot != NONE {
            let next = records.next(slot);
            self.push(lower_half(last), slot, records);
            slot = next;
        }
        // One segment is kept ahead, so that a count that sways does not allocate each time.
        if last + SEGMENT < self.segments.len() * SEGMENT {
            self.segments.pop();
        }
    }

    fn push(&mut self, bucket: usize, slot: Slot, records: &mut impl Chained) {
        records.set_next(slot, self.head(bucket));
        self.set_head(bucket, slot);
    }

    fn head(&self, bucket: usize) -> Slot {
        self.segments[bucket / SEGMENT][bucket % SEGMENT]
    }

    fn set_head(&mut self, bucket: usize, slot: Slot) {
        self.segments[bucket / SEGMENT][bucket % SEGMENT] = slot;
    }
}

/// The bucket whose keys `bucket` took over when it was added.
fn lower_half(bucket: usize) -> usize {
    bucket - (1 << bucket.ilog2())
}
