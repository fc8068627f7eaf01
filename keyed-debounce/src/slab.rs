use std::{collections::BTreeSet, mem};

/// Where a record lives, until it is removed.
pub(crate) type Slot = u32;

const CHUNK: u32 = 128;

/// Records in numbered places, in chunks.
///
/// Growing never moves a record, and an empty chunk goes back to the allocator (D18): that is what
/// a `Vec` of records or the crate `slab` would not do.
pub(crate) struct Slab<T> {
    /// Boxed, so that growing this list moves a pointer for each chunk.
    chunks: Vec<Option<Box<Chunk<T>>>>,
    /// Chunks that exist and have a free place.
    with_room: BTreeSet<u32>,
    /// Numbers below `chunks.len()` whose chunk was given back.
    given_back: BTreeSet<u32>,
    len: usize,
}

struct Chunk<T> {
    places: [Place<T>; CHUNK as usize],
    used: u32,
    first_free: u32,
}

enum Place<T> {
    Record(T),
    /// The number of the next free place.
    Free(u32),
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new(), with_room: BTreeSet::new(), given_back: BTreeSet::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// One more than the highest slot that may be in use.
    pub(crate) fn slots_end(&self) -> Slot {
        number(self.chunks.len()) * CHUNK
    }

    /// Puts a record into a free place.
    pub(crate) fn insert(&mut self, record: T) -> Slot {
        let number = self.with_room.first().copied().unwrap_or_else(|| self.new_chunk());
        let chunk = self.chunks[number as usize].as_mut().expect("a chunk with room exists");
        let place = chunk.insert(record);
        if chunk.used == CHUNK {
            self.with_room.remove(&number);
        }
        self.len += 1;
        number * CHUNK + place
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<T> {
        let number = slot / CHUNK;
        let chunk = self.chunks.get_mut(number as usize)?.as_mut()?;
        let record = chunk.remove(slot % CHUNK)?;
        self.len -= 1;
        match chunk.used {
            0 => self.give_back(number),
            used if used == CHUNK - 1 => {
                self.with_room.insert(number);
            }
            _ => {}
        }
        Some(record)
    }

    pub(crate) fn record(&self, slot: Slot) -> Option<&T> {
        let chunk = self.chunks.get((slot / CHUNK) as usize)?.as_ref()?;
        match &chunk.places[(slot % CHUNK) as usize] {
            Place::Record(record) => Some(record),
            Place::Free(_) => None,
        }
    }

    pub(crate) fn record_mut(&mut self, slot: Slot) -> Option<&mut T> {
        let chunk = self.chunks.get_mut((slot / CHUNK) as usize)?.as_mut()?;
        match &mut chunk.places[(slot % CHUNK) as usize] {
            Place::Record(record) => Some(record),
            Place::Free(_) => None,
        }
    }

    fn new_chunk(&mut self) -> u32 {
        let chunk = Some(Box::new(Chunk::new()));
        let number = match self.given_back.pop_first() {
            Some(number) => {
                self.chunks[number as usize] = chunk;
                number
            }
            None => {
                self.chunks.push(chunk);
                number(self.chunks.len()) - 1
            }
        };
        self.with_room.insert(number);
        number
    }

    fn give_back(&mut self, number: u32) {
        self.chunks[number as usize] = None;
        self.with_room.remove(&number);
        self.given_back.insert(number);
        while self.chunks.last().is_some_and(Option::is_none) {
            self.chunks.pop();
            self.given_back.remove(&self::number(self.chunks.len()));
        }
        if self.chunks.len() * 4 < self.chunks.capacity() {
            self.chunks.shrink_to(self.chunks.len() * 2);
        }
    }
}

impl<T> Chunk<T> {
    fn new() -> Self {
        let mut next = 0;
        let places = [(); CHUNK as usize].map(|()| {
            next += 1;
            Place::Free(next)
        });
        Self { places, used: 0, first_free: 0 }
    }

    /// The caller has looked: there is a free place.
    fn insert(&mut self, record: T) -> u32 {
        let place = self.first_free;
        let was = mem::replace(&mut self.places[place as usize], Place::Record(record));
        if let Place::Free(next) = was {
            self.first_free = next;
        }
        self.used += 1;
        place
    }

    fn remove(&mut self, place: u32) -> Option<T> {
        let here = &mut self.places[place as usize];
        if let Place::Free(_) = here {
            return None;
        }
        let was = mem::replace(here, Place::Free(self.first_free));
        self.first_free = place;
        self.used -= 1;
        match was {
            Place::Record(record) => Some(record),
            Place::Free(_) => None,
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("the store refuses keys before their numbers run out")
}
