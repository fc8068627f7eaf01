use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    Domain, Moment,
    shard::Shard,
    slot::{Slot, SlotId},
};

const SHARDS: u16 = 256;
/// How many domains are looked at, at most, before a lock is released.
const DOMAINS_PER_LOCK: usize = 64;

/// All domains that are remembered, spread over shards, each behind a lock that is held for a moment.
#[derive(Debug)]
pub(crate) struct Store {
    shards: Box<[Mutex<Shard>]>,
    len: AtomicUsize,
    max: usize,
    hand: Mutex<Hand>,
}

/// What the sweep looks at next.
#[derive(Debug, Default)]
struct Hand {
    shard: u16,
    at: usize,
}

/// What one step of the hand did.
struct Step {
    seen: usize,
    gone: usize,
    has_come_round: bool,
}

/// There is no room for another domain.
#[derive(Debug)]
pub(crate) struct Full;

/// A domain's shard is locked, and this is where the domain is.
pub(crate) struct Found<'a> {
    pub(crate) shard: MutexGuard<'a, Shard>,
    pub(crate) id: SlotId,
}

impl Store {
    pub(crate) fn new(max: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, len: AtomicUsize::new(0), max, hand: Mutex::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.len() < self.max
    }

    #[inline]
    pub(crate) fn find(&self, domain: &Domain) -> Option<Found<'_>> {
        let number = shard_of(domain);
        let shard = self.lock(number);
        let at = shard.find(domain)?;
        Some(Found { shard, id: SlotId { shard: number, at } })
    }

    /// Says also whether it is the first domain in an empty store.
    pub(crate) fn find_or_insert(
        &self,
        domain: &Domain,
        make: impl FnOnce() -> Slot,
    ) -> Result<(Found<'_>, bool), Full> {
        let number = shard_of(domain);
        let mut shard = self.lock(number);
        if let Some(at) = shard.find(domain) {
            return Ok((Found { shard, id: SlotId { shard: number, at } }, false));
        }
        let grow = |len: usize| (len < self.max).then_some(len + 1);
        let grown = self.len.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow);
        let before = grown.map_err(|_| Full)?;
        let at = shard.insert(domain, make());
        Ok((Found { shard, id: SlotId { shard: number, at } }, before == 0))
    }

    /// Moves the hand over so many domains at most, forgets the idle ones among them and makes the
    /// others smaller. Says whether the hand has come round.
    pub(crate) fn sweep_some(&self, now: Moment, most: usize) -> bool {
        let (mut hand, mut seen) = (self.hand(), 0);
        while seen < most {
            let step = self.step(&mut hand, now);
            seen += step.seen;
            if step.has_come_round {
                return true;
            }
        }
        false
    }

    /// Moves the hand until an idle domain is forgotten, over so many domains at most, or once round.
    pub(crate) fn make_room(&self, now: Moment, most: usize) {
        let (mut hand, mut seen, mut gone, mut rounds) = (self.hand(), 0, 0, 0);
        while gone == 0 && seen < most && rounds < 2 {
            let step = self.step(&mut hand, now);
            seen += step.seen;
            gone += step.gone;
            rounds += u32::from(step.has_come_round);
        }
    }

    /// Moves the hand over a few slots of one shard, with its lock.
    fn step(&self, hand: &mut Hand, now: Moment) -> Step {
        let mut shard = self.lock(hand.shard);
        let end = shard.slots().min(hand.at + DOMAINS_PER_LOCK);
        let (mut seen, mut gone) = (0, 0);
        for at in hand.at..end {
            let (is_there, is_gone) = shard.tidy(at, now);
            seen += usize::from(is_there);
            gone += usize::from(is_gone);
        }
        self.len.fetch_sub(gone, Ordering::Relaxed);
        hand.at = end;
        let is_last = end >= shard.slots();
        if is_last {
            shard.give_back(DOMAINS_PER_LOCK);
            *hand = Hand { shard: (hand.shard + 1) % SHARDS, at: 0 };
        }
        Step { seen, gone, has_come_round: is_last && hand.shard == 0 }
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Visits all domains, with no lock. What is added meanwhile may be left out.
    ///
    /// Each shard from its end: what moves between two steps moves to a lower number, so none that
    /// is still to be visited gets behind the visit.
    pub(crate) fn visit(&self, mut visit: impl FnMut(SlotId)) {
        for shard in 0..SHARDS {
            let end = u32::try_from(self.lock(shard).slots()).expect("a slot's number");
            (0..end).rev().for_each(|at| visit(SlotId { shard, at }));
        }
    }

    #[inline]
    pub(crate) fn lock(&self, shard: u16) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[usize::from(shard)];
        // A poisoned lock is taken as it is: no code of a user runs under it.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[inline]
fn shard_of(domain: &Domain) -> u16 {
    // The index of a shard uses the other bits of the same hash.
    u16::from(domain.name_hash().to_le_bytes()[3]) % SHARDS
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;
    use crate::{Endpoint, Feedback, Limits};

    const SHARD: u16 = 7;

    /// Domains of one shard. The first half is idle, the others have a start in their window.
    fn store_with(endpoints: &[Endpoint]) -> (Store, BTreeSet<String>) {
        let store = Store::new(usize::MAX);
        let hour = Limits { window: Duration::from_secs(3_600), ..Limits::default() };
        let mut kept = BTreeSet::new();
        for (n, at) in endpoints.iter().enumerate() {
            let make = || Slot::new(at.domain().shared().clone(), hour.into(), 0);
            let (mut found, _) = store.find_or_insert(at.domain(), make).expect("there is room");
            if n >= endpoints.len() / 2 {
                let domain = found.shard.slot(found.id.at).and_then(Slot::activate).expect("new");
                let grant = domain.core.try_take(Moment::ZERO, at, "a").expect("open");
                domain.core.settle(Moment::ZERO, grant, at, Feedback::Ok);
                kept.insert(at.domain().to_string());
            }
        }
        (store, kept)
    }

    /// L11: a visit of all domains meets each that stays, also if it moves closer to the others in
    /// the middle of the visit.
    #[test]
    fn a_visit_misses_no_domain_that_moves_meanwhile() {
        let all = (0..).map(|n| format!("https://h{n}.example").parse().expect("a URL"));
        let here = |at: &Endpoint| shard_of(at.domain()) == SHARD;
        let endpoints: Vec<Endpoint> = all.filter(here).take(8).collect();
        for sweep_before in 0..endpoints.len() {
            let (store, kept) = store_with(&endpoints);
            let (mut met, mut calls) = (BTreeSet::new(), 0);
            store.visit(|id| {
                if calls == sweep_before {
                    store.sweep_some(Moment::ZERO, usize::MAX);
                }
                calls += 1;
                let mut shard = store.lock(id.shard);
                met.extend(shard.slot(id.at).and_then(|slot| slot.name()).map(str::to_owned));
            });
            assert!(met.is_superset(&kept), "swept before {sweep_before}: {met:?}");
            assert!(store.lock(SHARD).slots() < endpoints.len(), "nothing moved");
        }
    }
}
