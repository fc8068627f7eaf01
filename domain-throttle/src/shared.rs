use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Waker,
    time::Duration,
};

use crate::{
    Domain, DomainState, Endpoint, Feedback, Grant, Limits, Moment, Refusal, Settled,
    clock::Clock,
    driver::{Driver, Turn},
    overrides::Overrides,
    permit_hook::Granted,
    slot::{Active, Slot, SlotId},
    store::{Found, Full, Store},
    tally::Tallies,
    timers::Timers,
    wake::wake_all,
};

/// How many domains the driver serves before it lets other tasks run.
const DOMAINS_PER_TURN: usize = 64;
/// How many domains a request for a new one looks at when there is no room: a few microseconds.
const DOMAINS_PER_REQUEST: usize = 64;
/// How many domains one step of the hand looks at.
const DOMAINS_PER_STEP: usize = 256;
/// Between two steps of the hand that forgets idle domains.
const BETWEEN_STEPS: Duration = Duration::from_millis(100);
/// Between two rounds of that hand.
const BETWEEN_ROUNDS: Duration = Duration::from_secs(15);

/// What all handles, permits and waiters of one throttle share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) driver: Driver,
    pub(crate) tallies: Tallies,
    store: Store,
    timers: Timers,
    overrides: RwLock<Overrides>,
    waiters: AtomicUsize,
    max_waiters: usize,
    closed: AtomicBool,
    /// When the hand moves on, in nanoseconds of the clock.
    next_sweep: AtomicU64,
}

/// A domain to work with, while its shard is locked.
pub(crate) struct Seat<'a> {
    pub(crate) core: &'a mut DomainState<Waker>,
    pub(crate) now: Moment,
    /// Where its requests are counted.
    pub(crate) tally: u8,
    pub(crate) id: SlotId,
}

impl Shared {
    pub(crate) fn new(overrides: Overrides, max_domains: usize, max_waiters: usize) -> Self {
        Self {
            clock: Clock::start(),
            driver: Driver::default(),
            tallies: Tallies::default(),
            store: Store::new(max_domains),
            timers: Timers::default(),
            overrides: RwLock::new(overrides),
            waiters: AtomicUsize::new(0),
            max_waiters,
            closed: AtomicBool::new(false),
            next_sweep: AtomicU64::new(0),
        }
    }

    /// Does something with a domain that may be new.
    #[inline]
    pub(crate) fn enter<R>(
        self: &Arc<Self>,
        domain: &Domain,
        work: impl FnOnce(Seat<'_>) -> R,
    ) -> Result<R, Full> {
        let (found, is_first) = match self.store.find(domain) {
            Some(found) => (found, false),
            None => self.insert(domain)?,
        };
        let result = self.work(found, work).expect("what was found is there");
        // After the lock is released, for it wakes the driver.
        if is_first {
            self.driver.look_again();
        }
        Ok(result)
    }

    /// Does something with a domain if it is remembered.
    pub(crate) fn look<R>(&self, domain: &Domain, work: impl FnOnce(Seat<'_>) -> R) -> Option<R> {
        self.work(self.store.find(domain)?, work)
    }

    /// Does something with the domain in a slot, if there is one: there is as long as a permit or a
    /// waiter is.
    pub(crate) fn at<R>(&self, id: SlotId, work: impl FnOnce(Seat<'_>) -> R) -> Option<R> {
        self.work(Found { shard: self.store.lock(id.shard), id }, work)
    }

    /// Takes a permit if there is one.
    #[inline]
    pub(crate) fn try_take(
        &self,
        seat: Seat<'_>,
        at: &Endpoint,
        key: &str,
    ) -> Result<Granted, Refusal> {
        let grant = seat.core.try_take(seat.now, at, key)?;
        Ok(self.granted(&seat, grant))
    }

    /// Counts a grant.
    #[inline]
    pub(crate) fn granted(&self, seat: &Seat<'_>, grant: Grant) -> Granted {
        self.tallies.granted(seat.tally);
        Granted { grant, slot: seat.id, tally: seat.tally }
    }

    /// A permit of the domain in this slot comes back.
    #[inline]
    pub(crate) fn settle(
        &self,
        id: SlotId,
        grant: Grant,
        at: &Endpoint,
        feedback: Feedback,
    ) -> Option<(u8, Settled, Moment)> {
        let mut shard = self.store.lock(id.shard);
        let domain = shard.slot(id.at)?.active()?;
        let tally = domain.tally;
        self.tallies.settled(tally, feedback);
        match domain.core.settle_quietly(grant, feedback) {
            Ok(()) => Some((tally, Settled::default(), Moment::ZERO)),
            Err(grant) => self.work(Found { shard, id }, |seat| {
                (tally, seat.core.settle(seat.now, grant, at, feedback), seat.now)
            }),
        }
    }

    /// Does something with a domain under its shard's lock, and wakes whom that lets go after the
    /// lock is released.
    #[inline]
    fn work<R>(&self, mut found: Found<'_>, work: impl FnOnce(Seat<'_>) -> R) -> Option<R> {
        let id = found.id;
        let domain = found.shard.slot(id.at)?.activate()?;
        let (now, tally) = (self.clock.now(), domain.tally);
        let result = work(Seat { core: &mut domain.core, now, tally, id });
        if !domain.core.has_line() {
            return Some(result);
        }
        let first = domain.core.pop_woken();
        let others: Vec<Waker> = std::iter::from_fn(|| domain.core.pop_woken()).collect();
        let earliest = self.arm(id, domain, now);
        drop(found);
        wake_all(first.into_iter().chain(others));
        if earliest {
            self.driver.look_again();
        }
        Some(result)
    }

    /// Whether a new domain could be remembered. Idle ones make room.
    pub(crate) fn has_room(&self) -> bool {
        self.make_room();
        self.store.has_room()
    }

    fn make_room(&self) {
        if !self.store.has_room() {
            self.store.make_room(self.clock.now(), DOMAINS_PER_REQUEST);
        }
    }

    pub(crate) fn domains(&self) -> usize {
        self.store.len()
    }

    pub(crate) fn waiters(&self) -> usize {
        self.waiters.load(Ordering::Relaxed)
    }

    /// Counts one more waiter, if there may be one more.
    pub(crate) fn add_waiter(&self) -> bool {
        let grow = |waiters: usize| (waiters < self.max_waiters).then_some(waiters + 1);
        self.waiters.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).is_ok()
    }

    pub(crate) fn remove_waiter(&self) {
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Wakes everybody who waits, whether they may go or not.
    pub(crate) fn wake_all(&self) {
        self.store.visit(|id| {
            let mut shard = self.store.lock(id.shard);
            let domain = shard.slot(id.at).and_then(Slot::active);
            let wakes = domain.map(|domain| domain.core.take_all_wakes());
            drop(shard);
            wake_all(wakes.into_iter().flatten());
        });
    }

    /// Changes the limits, then those of each domain. A domain that is added meanwhile reads them
    /// under its shard's lock: before the visit, which puts them right, or after the change.
    pub(crate) fn change_overrides(&self, change: impl FnOnce(&mut Overrides)) {
        {
            let mut overrides = self.overrides.write().unwrap_or_else(PoisonError::into_inner);
            change(&mut overrides);
        }
        self.store.visit(|id| {
            let mut shard = self.store.lock(id.shard);
            let Some(slot) = shard.slot(id.at) else { return };
            let Some(limits) = slot.name().map(|name| self.limits_of(name)) else { return };
            if slot.limits() != Some(&limits) {
                self.work(Found { shard, id }, |seat| seat.core.set_limits(seat.now, limits));
            }
        });
    }

    /// One turn of the driver.
    pub(crate) fn turn(&self) -> Turn {
        for _ in 0..DOMAINS_PER_TURN {
            let Some((at, id)) = self.timers.pop_due(self.clock.now()) else {
                self.tend();
                let next = [self.timers.first(), self.next_sweep()].into_iter().flatten().min();
                return next.map_or(Turn::Sleep, Turn::SleepUntil);
            };
            let mut shard = self.store.lock(id.shard);
            let Some(domain) = shard.slot(id.at).and_then(Slot::active) else { continue };
            if domain.armed == Some(at) {
                domain.armed = None;
            }
            self.work(Found { shard, id }, |seat| seat.core.advance(seat.now));
        }
        Turn::MoreIsDue
    }

    /// Moves the hand that forgets idle domains, if it is time.
    fn tend(&self) {
        let now = self.clock.now();
        let due = self.next_sweep.load(Ordering::Relaxed);
        let step = now.saturating_add(BETWEEN_STEPS).as_nanos();
        if now.as_nanos() < due
            || self
                .next_sweep
                .compare_exchange(due, step, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        if self.store.sweep_some(now, DOMAINS_PER_STEP) {
            let rest = now.saturating_add(BETWEEN_ROUNDS).as_nanos();
            self.next_sweep.store(rest, Ordering::Relaxed);
        }
    }

    fn next_sweep(&self) -> Option<Moment> {
        let at = Moment::from_nanos(self.next_sweep.load(Ordering::Relaxed));
        (self.store.len() > 0).then_some(at)
    }

    /// Says also whether it is the first domain, of which the driver is to be told.
    fn insert(self: &Arc<Self>, domain: &Domain) -> Result<(Found<'_>, bool), Full> {
        self.tend();
        // Whether that was enough is decided under the lock: the domain may be known by now.
        self.make_room();
        // Before the lock: a runtime that is shutting down drops the task at once.
        self.driver.ensure(self);
        let make = || {
            let limits = self.limits_of(domain.as_str());
            Slot::new(domain.shared().clone(), limits, self.tallies.slot(domain))
        };
        self.store.find_or_insert(domain, make)
    }

    fn limits_of(&self, domain: &str) -> Arc<Limits> {
        self.overrides.read().unwrap_or_else(PoisonError::into_inner).limits_of(domain)
    }

    /// Sees to it that the driver looks at this domain in time. Says whether it must be told.
    fn arm(&self, id: SlotId, domain: &mut Active, now: Moment) -> bool {
        let Some(need) = domain.core.next_wakeup(now) else { return false };
        if domain.armed.is_some_and(|armed| armed <= need) {
            return false;
        }
        let from = domain.armed.replace(need);
        self.timers.set(id, from, need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L12: of two who ask for the same new domain at once, one remembers it in the last place. The
    /// other, who had not found it, is served there too: the bound refuses only what is not known.
    #[test]
    fn who_comes_second_to_a_new_domain_needs_no_room() {
        let shared = Arc::new(Shared::new(Overrides::new(Duration::ZERO), 1, 1));
        let at: Endpoint = "https://a.example".parse().expect("a URL");
        let take = |key: &str| {
            shared.enter(at.domain(), |seat| seat.core.try_take(seat.now, &at, key).expect("open"))
        };
        let _alive = take("a").expect("there is room for one");
        assert!(shared.insert(at.domain()).is_ok());
        let other: Domain = "b.example".parse().expect("a domain");
        assert!(shared.insert(&other).is_err());
        assert_eq!(shared.domains(), 1);
    }
}
