use crate::slab::Slot;

/// What is kept of a hash. It is spread over all bits, whatever the hasher made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortHash(u32);

impl ShortHash {
    pub(crate) fn new(hash: u64) -> Self {
        Self((hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32)
    }

    /// Chooses the bucket.
    pub(crate) fn low_bits(self) -> usize {
        self.0 as usize
    }

    /// Chooses the place in the bucket: a number below `places`, by the high bits.
    fn scaled(self, places: usize) -> usize {
        ((u64::from(self.0) * places as u64) >> 32) as usize
    }
}

/// Says where the record of a hash is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) hash: ShortHash,
    pub(crate) slot: Slot,
}

/// No record.
const NONE: Slot = Slot::MAX;
const EMPTY: Pair = Pair { hash: ShortHash(0), slot: NONE };

/// A small table: each pair is at its place or, where that is taken, in the next free one.
#[derive(Default)]
pub(crate) struct Bucket {
    places: Box<[Pair]>,
    len: usize,
}

impl Bucket {
    pub(crate) fn of(pairs: Vec<Pair>) -> Self {
        if pairs.is_empty() {
            return Self::default();
        }
        let mut bucket = Self { places: empty(roomy(pairs.len())), len: pairs.len() };
        for pair in pairs {
            bucket.place(pair);
        }
        bucket
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.places.iter().copied().filter(|pair| pair.slot != NONE)
    }

    /// The first record with this hash for which `is_it` holds.
    pub(crate) fn find(
        &self,
        hash: ShortHash,
        mut is_it: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        let (before, from) = self.places.split_at(hash.scaled(self.places.len()));
        for pair in from.iter().chain(before) {
            if pair.slot == NONE {
                return None;
            }
            if pair.hash == hash && is_it(pair.slot) {
                return Some(pair.slot);
            }
        }
        None
    }

    pub(crate) fn insert(&mut self, pair: Pair) {
        if (self.len + 1) * 8 > self.places.len() * 7 {
            self.resize(roomy(self.len + 1));
        }
        self.place(pair);
        self.len += 1;
    }

    /// Takes the pair out and moves those up that had to give way to it.
    pub(crate) fn remove(&mut self, pair: Pair) {
        let Some(mut hole) = self.index(pair) else { return };
        self.len -= 1;
        let places = self.places.len();
        let after = |place: usize, steps: usize| (place + steps) % places;
        let mut place = after(hole, 1);
        while self.places[place].slot != NONE {
            let home = self.places[place].hash.scaled(places);
            // How far it is from home, and how far the hole is from it.
            if after(place, places - home) >= after(place, places - hole) {
                self.places[hole] = self.places[place];
                hole = place;
            }
            place = after(place, 1);
        }
        self.places[hole] = EMPTY;
        if self.len * 4 < places && places > roomy(0) {
            self.resize(roomy(self.len));
        }
    }

    fn index(&self, pair: Pair) -> Option<usize> {
        let (before, from) = self.places.split_at(pair.hash.scaled(self.places.len()));
        let found = |places: &[Pair]| places.iter().position(|other| *other == pair);
        found(from).map(|at| before.len() + at).or_else(|| found(before))
    }

    fn resize(&mut self, places: usize) {
        let old = std::mem::replace(&mut self.places, empty(places));
        for pair in old.into_iter().filter(|pair| pair.slot != NONE) {
            self.place(pair);
        }
    }

    fn place(&mut self, pair: Pair) {
        let places = self.places.len();
        let mut place = pair.hash.scaled(places);
        while self.places[place].slot != NONE {
            place += 1;
            if place == places {
                place = 0;
            }
        }
        self.places[place] = pair;
    }
}

/// Places for so many pairs, some of which stay free.
fn roomy(pairs: usize) -> usize {
    (pairs * 5 / 4 + 2).next_multiple_of(8)
}

fn empty(places: usize) -> Box<[Pair]> {
    vec![EMPTY; places].into()
}
