use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hash, RandomState},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use tokio::sync::Notify;

use crate::{
    Backoff, Counts, Debounce, Event, KeyState, Observer, ScheduleError, Scheduled,
    clock::Clock,
    schedule::{Schedule, Settings, Timestamp},
    slab::Slot,
    waiters::Waiters,
    wake::wake_all,
};

/// What all handles of a debouncer, its waiters and its runs share.
///
/// The rule of this file: under the lock only `Eq` of the key is called. Hashing, waking, observing
/// and dropping keys happen outside.
pub(crate) struct Shared<K> {
    state: Mutex<State<K>>,
    hasher: RandomState,
    pub(crate) clock: Clock,
    pub(crate) backoff: Box<dyn Backoff>,
    observers: Vec<Box<dyn Observer<K>>>,
    /// Told when the last run that a drain waits for has ended.
    pub(crate) drained: Notify,
}

pub(crate) struct State<K> {
    pub(crate) schedule: Schedule<K>,
    pub(crate) waiters: Waiters,
    /// Those who wait for another request of a key that runs, by slot.
    again: BTreeMap<(Slot, u64), Waker>,
    next_again: u64,
}

/// Whom to wake once the lock is free.
#[derive(Default)]
#[must_use = "waiters that are not woken wait for ever"]
struct Wakes {
    one: Option<Waker>,
    more: Vec<Waker>,
    drained: bool,
    /// Dropped, not woken, and that too once the lock is free.
    spent: Vec<Waker>,
}

impl<K: Hash + Eq> Shared<K> {
    pub(crate) fn new(
        settings: Settings,
        backoff: Box<dyn Backoff>,
        observers: Vec<Box<dyn Observer<K>>>,
    ) -> Self {
        let hasher = RandomState::new();
        let state = State {
            schedule: Schedule::with_hasher(settings, hasher.clone()),
            waiters: Waiters::default(),
            again: BTreeMap::new(),
            next_again: 0,
        };
        Self {
            state: Mutex::new(state),
            hasher,
            clock: Clock::start(),
            backoff,
            observers,
            drained: Notify::new(),
        }
    }

    pub(crate) fn schedule(
        &self,
        key: K,
        debounce: Debounce,
    ) -> Result<Scheduled, ScheduleError<K>> {
        let hash = self.hasher.hash_one(&key);
        let taken = self.change(|state, now| {
            let accepted = state.schedule.request(hash, key, debounce, now)?;
            let again = match accepted.how {
                Scheduled::AfterRun => state.again_wakers(accepted.slot),
                _ => Vec::new(),
            };
            // The observers look at the key after the lock is gone.
            let stored = match accepted.spare {
                None if !self.observers.is_empty() => state.schedule.share(accepted.slot),
                _ => None,
            };
            Ok((accepted, again, stored))
        });
        let (accepted, again, stored) = match taken {
            Ok(taken) => taken,
            Err(refusal) => {
                self.refused(&refusal);
                return Err(refusal);
            }
        };
        wake_all(again);
        if let Some(key) = stored.as_deref().or(accepted.spare.as_ref()) {
            self.observe(&Event::Scheduled { key, how: accepted.how });
        }
        Ok(accepted.how)
    }

    pub(crate) fn cancel(&self, key: &K) -> bool {
        let hash = self.hasher.hash_one(key);
        let cancelled = self.change(|state, now| state.schedule.cancel_hashed(hash, key, now));
        if cancelled.found {
            self.observe(&Event::Cancelled { key, running: cancelled.running });
        }
        cancelled.found
    }

    pub(crate) fn state_of(&self, key: &K) -> Option<KeyState> {
        let hash = self.hasher.hash_one(key);
        let state = self.lock();
        state.schedule.state_hashed(hash, key, self.clock.now())
    }

    fn refused(&self, refusal: &ScheduleError<K>) {
        match refusal {
            ScheduleError::Full(key) => self.observe(&Event::Refused { key, closed: false }),
            ScheduleError::Closed(key) => self.observe(&Event::Refused { key, closed: true }),
            ScheduleError::Backend { .. } => {}
        }
    }
}

impl<K> Shared<K> {
    /// Changes something under the lock, then wakes who must look at it and drops what is no longer
    /// needed.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State<K>, Timestamp) -> R) -> R {
        let (result, wakes, _expired) = {
            let mut state = self.lock();
            let now = self.clock.now();
            let result = change(&mut state, now);
            let expired = [state.schedule.expire(now), state.schedule.expire(now)];
            (result, state.wakes(now), expired)
        };
        wake_all(wakes.one.into_iter().chain(wakes.more));
        if wakes.drained {
            self.drained.notify_waiters();
        }
        drop(wakes.spent);
        result
    }

    /// Counts keys, a bounded number at a time.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        let mut from = Some(0);
        while let Some(slot) = from {
            from = self.lock().schedule.count_some(slot, self.clock.now(), &mut counts);
        }
        counts
    }

    /// A panic of the key's `Eq` poisons the lock and has changed nothing.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fresh random number. Each `RandomState` has keys of its own.
    pub(crate) fn random(&self) -> u64 {
        RandomState::new().hash_one(0_u8)
    }

    /// Tells the observers. Their panics are theirs alone: a run may end while a thread panics,
    /// and a second panic would end the process.
    pub(crate) fn observe(&self, event: &Event<'_, K>) {
        for observer in &self.observers {
            let told = catch_unwind(AssertUnwindSafe(|| observer.on_event(event)));
            if let Err(panic) = told {
                // What was thrown may throw again when it is dropped.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
            }
        }
    }
}

impl<K> State<K> {
    /// Registers who waits for another request of the key in `slot`. Gives back the waker that was
    /// there before, to be dropped when the lock is free.
    pub(crate) fn wait_for_again(
        &mut self,
        slot: Slot,
        id: &mut Option<u64>,
        waker: Waker,
    ) -> Option<Waker> {
        let id = *id.get_or_insert_with(|| {
            self.next_again += 1;
            self.next_again
        });
        self.again.insert((slot, id), waker)
    }

    pub(crate) fn stop_waiting_for_again(&mut self, slot: Slot, id: u64) -> Option<Waker> {
        self.again.remove(&(slot, id))
    }

    fn again_wakers(&self, slot: Slot) -> Vec<Waker> {
        self.again.range((slot, 0)..=(slot, u64::MAX)).map(|(_, waker)| waker.clone()).collect()
    }

    fn wakes(&mut self, now: Timestamp) -> Wakes {
        let spent = self.waiters.take_spent();
        if !self.schedule.is_over(now) {
            let wake = self.schedule.next_wake();
            return Wakes { one: self.waiters.head_is(wake, now), spent, ..Wakes::default() };
        }
        let drained = self.schedule.running_len() == 0;
        Wakes { one: None, more: self.waiters.take_all(), drained, spent }
    }
}

/// An owner of what is shared, as runs and handles have it.
pub(crate) type Owner<K> = Arc<Shared<K>>;
