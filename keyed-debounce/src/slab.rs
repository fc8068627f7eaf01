use std::collections::BTreeSet;

/// Where a record lives, until it is removed.
pub(crate) type Slot = u32;

const CHUNK: u32 = 128;

/// Records in numbered places, in chunks.
///
/// Growing moves at most one chunk, never all records, and an empty chunk goes back to the allocator
/// (D18): that is what a `Vec` of records or the crate `slab` would not do.
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
    places: Vec<Option<T>>,
    free: Vec<u8>,
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
        let place = match chunk.free.pop() {
            Some(place) => {
                chunk.places[usize::from(place)] = Some(record);
                u32::from(place)
            }
            None => {
                chunk.places.push(Some(record));
                self::number(chunk.places.len()) - 1
            }
        };
        if chunk.is_full() {
            self.with_room.remove(&number);
        }
        self.len += 1;
        number * CHUNK + place
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<T> {
        let number = slot / CHUNK;
        let chunk = self.chunks.get_mut(number as usize)?.as_mut()?;
        let place = slot % CHUNK;
        let record = chunk.places.get_mut(place as usize)?.take()?;
        chunk.free.push(u8::try_from(place).expect("a chunk has fewer than 256 places"));
        self.len -= 1;
        if chunk.free.len() == chunk.places.len() {
            self.give_back(number);
        } else {
            self.with_room.insert(number);
        }
        Some(record)
    }

    pub(crate) fn record(&self, slot: Slot) -> Option<&T> {
        let chunk = self.chunks.get((slot / CHUNK) as usize)?.as_ref()?;
        chunk.places.get((slot % CHUNK) as usize)?.as_ref()
    }

    pub(crate) fn record_mut(&mut self, slot: Slot) -> Option<&mut T> {
        let chunk = self.chunks.get_mut((slot / CHUNK) as usize)?.as_mut()?;
        chunk.places.get_mut((slot % CHUNK) as usize)?.as_mut()
    }

    fn new_chunk(&mut self) -> u32 {
        let chunk = Some(Box::new(Chunk { places: Vec::new(), free: Vec::new() }));
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
    fn is_full(&self) -> bool {
        self.free.is_empty() && self.places.len() == CHUNK as usize
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("the store refuses keys before their numbers run out")
}
