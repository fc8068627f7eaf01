use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    task::Waker,
    time::Duration,
};

use crate::{
    Domain, DomainState, Moment,
    cell::{Cell, Inside},
    clock::Clock,
    driver::{Driver, Turn},
    map::{Full, Map},
    overrides::Overrides,
    tally::Tallies,
    telemetry,
    timers::Timers,
    wake::wake_all,
};

/// How many domains the driver serves before it lets other tasks run.
const DOMAINS_PER_TURN: usize = 64;
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
    map: Map,
    timers: Timers,
    overrides: RwLock<Arc<Overrides>>,
    /// Counts the changes of `overrides`, so that a domain knows whether it has seen the latest.
    edition: AtomicU32,
    waiters: AtomicUsize,
    max_waiters: usize,
    closed: AtomicBool,
    /// When the hand moves on, in nanoseconds of the clock.
    next_sweep: AtomicU64,
}

impl Shared {
    pub(crate) fn new(overrides: Overrides, max_domains: usize, max_waiters: usize) -> Self {
        Self {
            clock: Clock::start(),
            driver: Driver::default(),
            tallies: Tallies::default(),
            map: Map::new(max_domains),
            timers: Timers::default(),
            overrides: RwLock::new(Arc::new(overrides)),
            edition: AtomicU32::new(0),
            waiters: AtomicUsize::new(0),
            max_waiters,
            closed: AtomicBool::new(false),
            next_sweep: AtomicU64::new(0),
        }
    }

    /// Does something with a domain that may be new.
    pub(crate) fn enter<R>(
        self: &Arc<Self>,
        domain: &Domain,
        mut work: impl FnMut(&mut DomainState<Waker>, Moment) -> R,
    ) -> Result<(Arc<Cell>, R), Full> {
        loop {
            let cell = self.find_or_insert(domain)?;
            if let Some(result) = self.with(&cell, &mut work) {
                return Ok((cell, result));
            }
        }
    }

    /// Does something with a domain if it is remembered.
    pub(crate) fn look<R>(
        &self,
        domain: &Domain,
        mut work: impl FnMut(&mut DomainState<Waker>, Moment) -> R,
    ) -> Option<R> {
        loop {
            let cell = self.map.find(domain)?;
            if let Some(result) = self.with(&cell, &mut work) {
                return Some(result);
            }
        }
    }

    /// Does something with a domain under its lock, and wakes whom that lets go after the lock is
    /// released. `None` if the domain was forgotten meanwhile.
    pub(crate) fn with<R>(
        &self,
        cell: &Arc<Cell>,
        work: impl FnOnce(&mut DomainState<Waker>, Moment) -> R,
    ) -> Option<R> {
        let mut inside = cell.lock();
        if inside.forgotten {
            return None;
        }
        let now = self.clock.now();
        self.bring_up_to_date(&cell.domain, &mut inside, now);
        let result = work(&mut inside.core, now);
        let first = inside.core.pop_woken();
        let others: Vec<Waker> = std::iter::from_fn(|| inside.core.pop_woken()).collect();
        let earliest = self.arm(cell, &mut inside, now);
        drop(inside);
        wake_all(first.into_iter().chain(others));
        if earliest {
            self.driver.look_again();
        }
        Some(result)
    }

    /// Whether a new domain could be remembered. Idle ones make room.
    pub(crate) fn has_room(&self) -> bool {
        self.map.has_room() || {
            self.map.sweep_some(self.clock.now());
            self.map.has_room()
        }
    }

    pub(crate) fn domains(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn waiters(&self) -> usize {
        self.waiters.load(Ordering::Relaxed)
    }

    /// Counts one more waiter, if there may be one more.
    pub(crate) fn add_waiter(&self) -> bool {
        let grow = |waiters: usize| (waiters < self.max_waiters).then_some(waiters + 1);
        let added = self.waiters.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).is_ok();
        if added {
            telemetry::joined();
        }
        added
    }

    pub(crate) fn remove_waiter(&self) {
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        telemetry::left();
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
        for shard in 0..self.map.shards() {
            for cell in self.map.cells_of(shard) {
                let wakes = cell.lock().core.take_all_wakes();
                wake_all(wakes);
            }
        }
    }

    /// Changes the limits. Domains in which somebody waits see it at once, others when next used.
    pub(crate) fn change_overrides(&self, change: impl FnOnce(&mut Overrides)) {
        {
            let mut overrides = self.overrides.write().unwrap_or_else(PoisonError::into_inner);
            change(Arc::make_mut(&mut overrides));
            self.edition.fetch_add(1, Ordering::Release);
        }
        for shard in 0..self.map.shards() {
            for cell in self.map.cells_of(shard) {
                self.with(&cell, |core, now| core.advance(now));
            }
        }
    }

    /// One turn of the driver.
    pub(crate) fn turn(&self) -> Turn {
        for _ in 0..DOMAINS_PER_TURN {
            let Some((at, cell)) = self.timers.pop_due(self.clock.now()) else {
                self.tend();
                let next = [self.timers.first(), self.next_sweep()].into_iter().flatten().min();
                return next.map_or(Turn::Sleep, Turn::SleepUntil);
            };
            {
                let mut inside = cell.lock();
                if inside.armed == Some(at) {
                    inside.armed = None;
                }
            }
            self.with(&cell, |core, now| core.advance(now));
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
        if self.map.sweep_some(now) {
            let rest = now.saturating_add(BETWEEN_ROUNDS).as_nanos();
            self.next_sweep.store(rest, Ordering::Relaxed);
        }
    }

    fn next_sweep(&self) -> Option<Moment> {
        let at = Moment::from_nanos(self.next_sweep.load(Ordering::Relaxed));
        (self.map.len() > 0).then_some(at)
    }

    fn find_or_insert(self: &Arc<Self>, domain: &Domain) -> Result<Arc<Cell>, Full> {
        if let Some(cell) = self.map.find(domain) {
            return Ok(cell);
        }
        self.tend();
        let (limits, edition) = self.limits_of(domain);
        let tally = self.tallies.slot(domain);
        let make = || Cell::new(domain.clone(), tally, DomainState::new(limits), edition);
        if !self.has_room() {
            return Err(Full);
        }
        let (cell, is_first) = self.map.find_or_insert(domain, make)?;
        self.driver.ensure(self);
        if is_first {
            self.driver.look_again();
        }
        Ok(cell)
    }

    fn limits_of(&self, domain: &Domain) -> (Arc<crate::Limits>, u32) {
        let overrides = self.overrides.read().unwrap_or_else(PoisonError::into_inner);
        (overrides.limits_of(domain), self.edition.load(Ordering::Acquire))
    }

    fn bring_up_to_date(&self, domain: &Domain, inside: &mut Inside, now: Moment) {
        if inside.edition != self.edition.load(Ordering::Acquire) {
            let (limits, edition) = self.limits_of(domain);
            inside.edition = edition;
            inside.core.set_limits(now, limits);
        }
    }

    /// Sees to it that the driver looks at this domain in time. Says whether it must be told.
    fn arm(&self, cell: &Arc<Cell>, inside: &mut Inside, now: Moment) -> bool {
        let Some(need) = inside.core.next_wakeup(now) else { return false };
        if inside.armed.is_some_and(|armed| armed <= need) {
            return false;
        }
        let from = inside.armed.replace(need);
        self.timers.set(cell, from, need)
    }
}
