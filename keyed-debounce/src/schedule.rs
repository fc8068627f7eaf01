//! The pure core: all keys, told the time by its caller.
//!
//! [`Schedule`] is what [`KeyedDebouncer`](crate::KeyedDebouncer) puts behind a lock and a timer.
//! Take it directly to simulate, to drive it from another runtime, or to build a backend on it. It
//! reads no clock, starts nothing and waits for nothing: each call says what time it is, and
//! [`next_wake`](Schedule::next_wake) says when to look again.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{BuildHasher, Hash, RandomState},
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};

use crate::{
    Counts, Debounce, Drain, KeyState, ScheduleError, Scheduled,
    due_queue::{DueQueue, Next, Place, Position, Records},
    intake::Intake,
    intervals::Intervals,
    key_record::{KeyRecord, Phase},
    key_store::KeyStore,
    rounds::Rounds,
    slab::Slot,
};

mod requests;
mod runs;

pub use crate::{
    ending::Ending,
    hand_out::{Cancelled, Finished, Forgotten, HandOut, Then, Ticket},
    timestamp::Timestamp,
};

/// How a [`Schedule`] is set up. The default sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How many keys it may hold (D12). Without it, up to four billion.
    pub capacity: Option<NonZeroUsize>,
    /// The least time between the starts of two rounds (D13). Without it there are no rounds.
    pub min_gap: Option<Duration>,
    /// The least time between two run starts of one key (D16).
    pub min_interval: Option<Duration>,
}

/// All keys and when they run.
///
/// A `now` that is before that of an earlier call counts as that one: time stands still, it does
/// not run backwards.
pub struct Schedule<K, S = RandomState> {
    hasher: S,
    settings: Settings,
    intake: Intake,
    keys: KeyStore<K, KeyRecord>,
    queue: DueQueue,
    /// While all is drained: keys whose last start is too recent, by when they may start.
    held_by_interval: BTreeMap<Position, Slot>,
    rounds: Rounds,
    intervals: Intervals,
    running: usize,
    /// A running number for first requests and for runs.
    counter: u64,
    now: Timestamp,
}

impl<K: Hash + Eq> Schedule<K> {
    /// An empty schedule.
    pub fn new(settings: Settings) -> Self {
        Self::with_hasher(settings, RandomState::new())
    }
}

impl<K: Hash + Eq, S: BuildHasher> Schedule<K, S> {
    /// An empty schedule with a hasher of your own.
    pub fn with_hasher(settings: Settings, hasher: S) -> Self {
        Self {
            hasher,
            settings,
            intake: Intake::Open,
            keys: KeyStore::new(),
            queue: DueQueue::new(),
            held_by_interval: BTreeMap::new(),
            rounds: Rounds::new(settings.min_gap),
            intervals: Intervals::new(settings.min_interval),
            running: 0,
            counter: 0,
            now: Timestamp::ORIGIN,
        }
    }

    /// Requests a run of `key` (D1 to D4, D6, D8).
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Full`] if the key is new and there is no room, [`ScheduleError::Closed`]
    /// after [`close`](Self::close) or [`begin_drain`](Self::begin_drain). Nothing has changed then.
    pub fn schedule(
        &mut self,
        key: K,
        debounce: Debounce,
        now: Timestamp,
    ) -> Result<Scheduled, ScheduleError<K>> {
        let hash = self.hasher.hash_one(&key);
        self.request(hash, key, debounce, now).map(|accepted| accepted.how)
    }

    /// Forgets what waits for `key`, and a request made during its run (D19).
    pub fn cancel(&mut self, key: &K, now: Timestamp) -> Cancelled<K> {
        let hash = self.hasher.hash_one(key);
        self.cancel_hashed(hash, key, now)
    }

    /// What is known of `key` at `now`; `None` if it is absent.
    pub fn state(&self, key: &K, now: Timestamp) -> Option<KeyState> {
        self.state_hashed(self.hasher.hash_one(key), key, now)
    }
}

impl<K, S> Schedule<K, S> {
    /// When to call [`pop_due`](Self::pop_due) again, if nothing else happens before: at the due
    /// of the next key, or at the start of the next round. `None` if no key waits or nothing is
    /// handed out any more.
    ///
    /// May be in the past: then something is due, or there was more to sort out than one call does,
    /// after hundreds of keys were put off that were to go next.
    pub fn next_wake(&self) -> Option<Timestamp> {
        match self.intake {
            Intake::Closed => None,
            Intake::Draining(Drain::All) => match self.queue.is_empty() {
                false => Some(self.now),
                true => self.held_by_interval.keys().next().map(|position| position.due),
            },
            Intake::Open | Intake::Draining(_) => match self.queue.next()? {
                Next::Due(due) => Some(self.rounds.opens(due)),
                Next::NotBefore(_) => Some(self.now),
            },
        }
    }

    /// Refuses requests and hands nothing out any more (D15).
    pub fn close(&mut self) {
        self.intake = Intake::Closed;
    }

    /// Refuses requests and hands out only what `what` says, each key once; when that is done, it is
    /// closed (D15).
    pub fn begin_drain(&mut self, what: Drain, now: Timestamp) {
        let now = self.advance(now);
        self.intake = self.intake.drain(what);
        self.close_if_over(now);
    }

    /// Whether [`pop_due`](Self::pop_due) will never hand out a key again.
    pub fn is_over(&self, now: Timestamp) -> bool {
        let now = now.max(self.now);
        match self.intake {
            Intake::Open => false,
            Intake::Closed => true,
            Intake::Draining(_) if self.running > 0 => false,
            Intake::Draining(Drain::All) => {
                self.queue.is_empty() && self.held_by_interval.is_empty()
            }
            Intake::Draining(_) => match self.queue.next() {
                None => true,
                Some(Next::Due(due) | Next::NotBefore(due)) => due > now,
            },
        }
    }

    /// How many keys are not absent.
    pub fn len(&self) -> usize {
        self.keys.len() - self.intervals.remembered()
    }

    /// Whether all keys are absent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many runs are on.
    pub fn running_len(&self) -> usize {
        self.running
    }

    /// Counts keys by state. Looks at each key.
    pub fn counts(&self, now: Timestamp) -> Counts {
        let mut counts = Counts::default();
        let mut from = 0;
        while let Some(next) = self.count_some(from, now, &mut counts) {
            from = next;
        }
        counts
    }

    /// Gives back one key that was kept only for its last start (D16), if one is no longer needed.
    ///
    /// Nothing wakes up for this: call it along with other calls, a few times each.
    pub fn expire(&mut self, now: Timestamp) -> Option<Forgotten<K>> {
        let now = self.advance(now);
        let slot = self.intervals.expire(now)?;
        self.keys.remove(slot).map(|(key, _)| Forgotten(key))
    }
}

impl<K, S> Schedule<K, S> {
    /// A handle to the key in `slot`.
    pub(crate) fn share(&mut self, slot: Slot) -> Option<Arc<K>> {
        self.keys.share(slot)
    }

    /// Counts a bounded number of keys, so that nobody waits long for the lock (D18). Returns where
    /// to go on.
    pub(crate) fn count_some(
        &self,
        from: Slot,
        now: Timestamp,
        counts: &mut Counts,
    ) -> Option<Slot> {
        const AT_ONCE: Slot = 4096;
        let now = now.max(self.now);
        let end = self.keys.slots_end();
        let to = end.min(from.saturating_add(AT_ONCE));
        for slot in from..to {
            if let Some(state) = self.keys.value(slot).and_then(|record| record.state(now)) {
                counts.count(state);
            }
        }
        (to < end).then_some(to)
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    /// A drain that is over stays over, also when a key becomes due later.
    fn close_if_over(&mut self, now: Timestamp) {
        if self.is_over(now) {
            self.intake = Intake::Closed;
        }
    }

    fn next_number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn is_full(&self) -> bool {
        self.settings.capacity.is_some_and(|capacity| self.len() >= capacity.get())
            || self.keys.is_full()
    }

    fn set_phase(&mut self, slot: Slot, phase: Phase) {
        if let Some(record) = self.keys.value_mut(slot) {
            record.phase = phase;
        }
    }

    /// Puts a key in the queue, not before it may start. Returns when it is due.
    fn enqueue(&mut self, slot: Slot, now: Timestamp) -> Timestamp {
        let earliest = self.intervals.not_before(slot).max(self.rounds.earliest_due(now));
        let Some(record) = self.keys.value_mut(slot) else { return now };
        record.wait_until(earliest);
        let due = record.position().due;
        self.queue.insert(slot, &mut self.keys);
        due
    }

    fn dequeue(&mut self, slot: Slot) {
        if !self.queue.remove(slot, &mut self.keys) {
            self.held_by_interval.remove(&self.held_position(slot));
        }
    }

    /// The place of a key among those that wait for nothing but their interval.
    fn held_position(&self, slot: Slot) -> Position {
        let order = self.keys.value(slot).map_or(0, |record| record.position().order);
        Position { due: self.intervals.not_before(slot), order }
    }
}

impl<K> Records for KeyStore<K, KeyRecord> {
    fn position(&self, slot: Slot) -> Position {
        self.value(slot).map_or(Position::LAST, KeyRecord::position)
    }

    fn place(&self, slot: Slot) -> Place {
        Self::place(self, slot)
    }

    fn set_place(&mut self, slot: Slot, place: Place) {
        Self::set_place(self, slot, place);
    }
}

impl<K, S> fmt::Debug for Schedule<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("len", &self.len())
            .field("running", &self.running)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D18 (controller-runtime#3415): producers stood behind a scan of a million keys under their
    /// lock. Here a scan gives the lock back after a bounded number of keys.
    #[test]
    fn a_scan_looks_at_a_bounded_number_of_keys_at_a_time() {
        let now = Timestamp::ORIGIN;
        let mut schedule = Schedule::new(Settings::default());
        for key in 0..10_000 {
            schedule.schedule(key, Debounce::after(Duration::from_secs(9)), now).unwrap();
        }
        let (mut counts, mut seen, mut from) = (Counts::default(), 0, Some(0));
        while let Some(slot) = from {
            from = schedule.count_some(slot, now, &mut counts);
            assert!(counts.total() - seen <= 4096, "{} keys in one step", counts.total() - seen);
            seen = counts.total();
        }
        assert_eq!(seen, 10_000);
    }
}
