use std::{
    collections::{HashSet, hash_map::RandomState},
    hash::BuildHasher,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    Domain, Moment,
    cell::{Cell, Entry},
};

const SHARDS: usize = 256;
/// About how many domains one step of the hand looks at.
const DOMAINS_PER_STEP: usize = 256;

/// All domains that are remembered, spread over small locked sets. No guard leaves this file.
#[derive(Debug)]
pub(crate) struct Map {
    shards: Box<[Mutex<HashSet<Entry, RandomState>>]>,
    hasher: RandomState,
    len: AtomicUsize,
    max: usize,
    /// The shard the hand looks at next.
    hand: AtomicUsize,
}

/// There is no room for another domain.
#[derive(Debug)]
pub(crate) struct Full;

impl Map {
    pub(crate) fn new(max: usize) -> Self {
        let hasher = RandomState::new();
        let shard = || Mutex::new(HashSet::with_hasher(hasher.clone()));
        let shards = (0..SHARDS).map(|_| shard()).collect();
        Self { shards, hasher, len: AtomicUsize::new(0), max, hand: AtomicUsize::new(0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.len() < self.max
    }

    pub(crate) fn find(&self, domain: &Domain) -> Option<Arc<Cell>> {
        let shard = self.shard(domain.as_str());
        shard.get(domain.as_str()).map(|entry| entry.0.clone())
    }

    /// Says also whether it is the first domain in an empty map.
    pub(crate) fn find_or_insert(
        &self,
        domain: &Domain,
        make: impl FnOnce() -> Cell,
    ) -> Result<(Arc<Cell>, bool), Full> {
        let mut shard = self.shard(domain.as_str());
        if let Some(entry) = shard.get(domain.as_str()) {
            return Ok((entry.0.clone(), false));
        }
        let grow = |len: usize| (len < self.max).then_some(len + 1);
        let grown = self.len.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow);
        let before = grown.map_err(|_| Full)?;
        let cell = Arc::new(make());
        shard.insert(Entry(cell.clone()));
        Ok((cell, before == 0))
    }

    /// Moves the hand over a few shards and forgets the idle domains there. Says whether the hand
    /// has come round.
    pub(crate) fn sweep_some(&self, now: Moment) -> bool {
        let mut seen = 0;
        loop {
            let at = self.hand.fetch_add(1, Ordering::Relaxed) % SHARDS;
            seen += self.sweep_shard(at, now);
            if at == SHARDS - 1 || seen >= DOMAINS_PER_STEP {
                return at == SHARDS - 1;
            }
        }
    }

    /// The cells of one shard, for a visit of all domains that locks only a little at a time.
    pub(crate) fn cells_of(&self, at: usize) -> Vec<Arc<Cell>> {
        self.lock(at).iter().map(|entry| entry.0.clone()).collect()
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    fn sweep_shard(&self, at: usize, now: Moment) -> usize {
        let mut shard = self.lock(at);
        let before = shard.len();
        shard.retain(|entry| !forget_if_idle(&entry.0, now));
        let gone = before - shard.len();
        if shard.capacity() > 64 && shard.len() < shard.capacity() / 4 {
            shard.shrink_to_fit();
        }
        self.len.fetch_sub(gone, Ordering::Relaxed);
        before
    }

    fn shard(&self, name: &str) -> MutexGuard<'_, HashSet<Entry, RandomState>> {
        let hash = self.hasher.hash_one(name).to_le_bytes();
        // The set uses the other bits of the same hash.
        self.lock(usize::from(hash[3]) % SHARDS)
    }

    fn lock(&self, at: usize) -> MutexGuard<'_, HashSet<Entry, RandomState>> {
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A domain that is in use just now is not idle, so nobody is waited for.
fn forget_if_idle(cell: &Cell, now: Moment) -> bool {
    let Some(mut inside) = cell.try_lock() else { return false };
    let Some(at) = inside.core.idle_at() else { return false };
    if at <= now && inside.armed.is_none_or(|armed| armed <= now) {
        inside.forgotten = true;
    } else {
        // Nobody waits, so this wakes nobody.
        inside.core.shrink(now);
    }
    inside.forgotten
}
