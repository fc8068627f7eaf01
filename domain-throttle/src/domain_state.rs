mod learning;
mod line;
mod verdict;

use std::{collections::VecDeque, sync::Arc, time::Duration};

pub use line::PICK_UP;

use crate::{
    Endpoint, Feedback, Grant, Limits, Refusal, Settled,
    fair_queue::{FairQueue, WaiterId},
    keys::{KeyId, Keys},
    moment::Moment,
    pause::Pauses,
    window::Window,
};

/// All that is decided about one domain, as a value: no clock, no task, no lock.
///
/// The caller passes `now`, which must not go back. [`DomainThrottle`](crate::DomainThrottle) keeps
/// one of these per domain; use it alone for simulations or for a throttle of your own.
///
/// `W` is what wakes a waiter. After any call, take what is to be woken from
/// [`pop_woken`](Self::pop_woken), and ask [`next_wakeup`](Self::next_wakeup) when to call
/// [`advance`](Self::advance) at the latest.
#[derive(Debug)]
pub struct DomainState<W> {
    limits: Arc<Limits>,
    window: Window,
    keys: Keys,
    alive: u32,
    grants: u64,
    rare: Option<Box<Rare>>,
    line: Option<Box<Line<W>>>,
}

/// What most domains never have.
#[derive(Debug, Default)]
struct Rare {
    pauses: Pauses,
    /// Limits that were in force until lately, so that starts are kept for their return.
    earlier: Option<Earlier>,
}

#[derive(Clone, Copy, Debug)]
struct Earlier {
    max_per_window: usize,
    window: Duration,
    until: Moment,
}

#[derive(Debug)]
struct Line<W> {
    queue: FairQueue<W>,
    woken: VecDeque<W>,
}

impl<W> DomainState<W> {
    /// A domain nobody has asked yet.
    pub fn new(limits: impl Into<Arc<Limits>>) -> Self {
        let limits = limits.into();
        Self {
            window: Window::new(limits.window),
            limits,
            keys: Keys::default(),
            alive: 0,
            grants: 0,
            rare: None,
            line: None,
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many permits are alive.
    pub fn in_flight(&self) -> u32 {
        self.alive
    }

    /// How many wait in line.
    pub fn waiting(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.queue.len())
    }

    /// How many starts the window holds.
    pub fn in_window(&self, now: Moment) -> usize {
        self.window.count(now, self.limits.window)
    }

    /// Until when the whole domain is paused, if it is.
    pub fn paused_until(&self, now: Moment) -> Option<Moment> {
        self.rare.as_ref().map(|rare| rare.pauses.domain_until()).filter(|&until| until > now)
    }

    /// Puts other limits in force. Permits that are alive stay so.
    ///
    /// The starts of the old window keep counting as long as they would have, so lowering a limit
    /// and raising it again lets nothing more through. A window that grows counts the starts that
    /// are still remembered.
    pub fn set_limits(&mut self, now: Moment, limits: impl Into<Arc<Limits>>) {
        let limits = limits.into();
        if *limits == *self.limits {
            return;
        }
        let (max, window) = self.kept(now);
        // What no rule counts any more must not come back with a longer window.
        self.window.trim(now, max, window);
        let max_per_window = max.max(as_count(limits.max_per_window.get()));
        let window = window.max(limits.window);
        let until = now.saturating_add(window);
        self.rare().earlier = Some(Earlier { max_per_window, window, until });
        self.window.lengthen(window);
        self.limits = limits;
        self.give_up_reservations(|_| true);
        self.advance(now);
    }

    /// Says whether `key` would get a permit for `at` now.
    ///
    /// # Errors
    ///
    /// The reason why not.
    #[inline]
    pub fn check(&mut self, now: Moment, at: &Endpoint, key: &str) -> Result<(), Refusal> {
        self.advance(now);
        self.verdict(now, at, key)
    }

    /// Takes a permit if there is one now.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    #[inline]
    pub fn try_take(&mut self, now: Moment, at: &Endpoint, key: &str) -> Result<Grant, Refusal> {
        self.advance(now);
        let known = self.keys.find(key);
        self.verdict_for(now, at, known)?;
        let key = known.unwrap_or_else(|| self.keys.insert(key));
        let probe = self.rare.as_mut().is_some_and(|rare| rare.pauses.granted(at, now));
        Ok(self.start(now, key, probe))
    }

    /// Stands in line for the first of these endpoints that may be asked. All must be of this domain.
    pub fn join(&mut self, now: Moment, at: &[Endpoint], key: &str, wake: W) -> WaiterId {
        let id = self.keys.find_or_insert(key);
        let line = self.line.get_or_insert_with(Line::boxed);
        let key = &mut self.keys[id];
        if key.waiters == 0 && !key.reserved {
            key.turn = line.queue.new_turn();
        }
        key.waiters += 1;
        let turn = key.is_free().then_some(key.turn);
        let waiter = line.queue.join(id, turn, at, wake);
        self.advance(now);
        waiter
    }

    /// Takes the permit that was set aside for a waiter, who leaves the line with it. The number is
    /// that of its endpoint in the list given to [`join`](Self::join).
    ///
    /// A waiter who had been passed over because it did not come stands in its place again.
    pub fn claim(&mut self, now: Moment, waiter: WaiterId) -> Option<(usize, Grant)> {
        self.claim_with_wake(now, waiter).map(|(endpoint, grant, _wake)| (endpoint, grant))
    }

    /// What wakes a waiter at present; `None` after it was woken.
    pub fn wake_of(&self, waiter: WaiterId) -> Option<&W> {
        self.line.as_ref()?.queue.wake_of(waiter)
    }

    /// Changes what wakes a waiter. Returns what it replaced, or `wake` itself if nobody waits there.
    pub fn replace_wake(&mut self, waiter: WaiterId, wake: W) -> Option<W> {
        match &mut self.line {
            Some(line) => line.queue.replace_wake(waiter, wake),
            None => Some(wake),
        }
    }

    /// Leaves the line. A permit that was set aside goes to the next.
    pub fn leave(&mut self, now: Moment, waiter: WaiterId) -> Option<W> {
        self.give_up_reservation(waiter, true);
        let line = self.line.as_mut()?;
        let id = line.queue.key_of(waiter)?;
        let key = &mut self.keys[id];
        key.waiters -= 1;
        let left = line.queue.remove(waiter, key.turn)?;
        self.keys.forget_if_unused(id);
        self.advance(now);
        self.drop_empty_line();
        left.into_wake()
    }

    /// The request has ended.
    pub fn settle(
        &mut self,
        now: Moment,
        grant: Grant,
        at: &Endpoint,
        feedback: Feedback,
    ) -> Settled {
        self.end(&grant, feedback);
        let settled = self.learn(now, &grant, at, feedback);
        if settled.domain_paused.is_some() {
            self.give_up_reservations(|_| true);
        } else if settled.endpoint_paused.is_some() {
            self.give_up_reservations(|endpoint| endpoint == at);
        }
        self.free_key(grant.key);
        self.advance(now);
        settled
    }

    /// Does what time brings: ends pauses and holds, and sets permits aside for those in line.
    #[inline]
    pub fn advance(&mut self, now: Moment) {
        self.end_holds(now);
        if self.line.is_none() {
            return;
        }
        while let Some((until, waiter)) =
            self.line.as_ref().and_then(|line| line.queue.first_reserved())
            && until <= now
        {
            self.give_up_reservation(waiter, true);
        }
        self.pump(now);
    }

    /// The next who is to be woken: a permit is set aside for it.
    pub fn pop_woken(&mut self) -> Option<W> {
        let woken = self.line.as_mut()?.woken.pop_front();
        if woken.is_none() {
            self.drop_empty_line();
        }
        woken
    }

    /// Takes everything that wakes a waiter, for a throttle that is closed.
    pub fn take_all_wakes(&mut self) -> Vec<W> {
        self.line.as_mut().map_or_else(Vec::new, |line| line.queue.take_all_wakes())
    }

    /// When [`advance`](Self::advance) has something to do for those in line, if nothing else
    /// happens. Ask again after every call.
    pub fn next_wakeup(&self, now: Moment) -> Option<Moment> {
        let queue = &self.line.as_ref()?.queue;
        let pick_up = queue.first_reserved().map(|(until, _)| until);
        let room = self.room_for_line(now);
        let rare = self.rare.as_ref();
        let hold = rare.and_then(|rare| {
            let waiting = |&&(_, key): &&(Moment, KeyId)| self.keys[key].waiters > 0;
            rare.pauses.holds.iter().find(waiting).map(|&(until, _)| until)
        });
        let endpoint = rare.and_then(|rare| {
            let ends = rare.pauses.endpoint_ends(now);
            ends.filter(|(at, _)| queue.waits_for(at)).map(|(_, until)| until).min()
        });
        [pick_up, room, hold, endpoint].into_iter().flatten().min()
    }

    /// From when on this domain may be forgotten, if nothing else happens; `None` while it has
    /// permits or waiters. What is decided afterwards does not depend on whether it was.
    pub fn idle_at(&self) -> Option<Moment> {
        if self.alive > 0 || self.waiting() > 0 {
            return None;
        }
        let over = self.rare.as_ref().map_or(Moment::ZERO, |rare| {
            let earlier = rare.earlier.map_or(Moment::ZERO, |earlier| earlier.until);
            rare.pauses.over_at().max(earlier)
        });
        Some(self.window.empty_at(self.limits.window).max(over))
    }

    /// Gives back memory that is kept for speed only.
    pub fn shrink(&mut self, now: Moment) {
        self.advance(now);
        self.tidy(now);
    }
}

impl<W> DomainState<W> {
    /// As [`shrink`](Self::shrink), but it moves nobody on and wakes nobody.
    pub(crate) fn tidy(&mut self, now: Moment) {
        self.keys.shrink();
        let limits = *self.limits;
        if let Some(rare) = &mut self.rare {
            rare.pauses.tidy(now);
            rare.earlier = rare.earlier.filter(|earlier| now < earlier.until);
            // A hold that is over is still to be taken off its key.
            let holds = !rare.pauses.holds.is_empty();
            if rare.pauses.over_at() <= now && rare.earlier.is_none() && !holds {
                self.rare = None;
            }
        }
        let (max, window) = self.kept(now);
        self.window.trim(now, max, window);
        if self.window.empty_at(limits.window) <= now && self.rare.is_none() {
            self.window = Window::new(limits.window);
        }
    }

    /// Whether somebody waits or is to be woken.
    #[inline]
    pub(crate) fn has_line(&self) -> bool {
        self.line.is_some()
    }

    /// Ends a request whose end changes nothing for anybody else, so that no clock is needed; gives
    /// the grant back if that is not so.
    #[inline]
    pub(crate) fn settle_quietly(&mut self, grant: Grant, feedback: Feedback) -> Result<(), Grant> {
        let teaches = matches!(feedback, Feedback::RetryAfter(_) | Feedback::Broken);
        if teaches || self.rare.is_some() || self.line.is_some() {
            return Err(grant);
        }
        self.end(&grant, feedback);
        self.keys.forget_if_unused(grant.key);
        Ok(())
    }

    /// What there is to remember of a domain in which nothing goes on: its limits and its window.
    pub(crate) fn park(&mut self) -> Option<(Arc<Limits>, Window)> {
        let is_still = self.alive == 0 && self.line.is_none() && self.rare.is_none();
        is_still.then(|| (self.limits.clone(), std::mem::take(&mut self.window)))
    }

    /// The opposite of [`park`](Self::park). Grants are counted anew: none is alive.
    pub(crate) fn unpark(limits: Arc<Limits>, window: Window) -> Self {
        Self { window, ..Self::new(limits) }
    }

    /// Stamps a start. All checks were made.
    #[inline]
    fn start(&mut self, now: Moment, key: KeyId, probe: bool) -> Grant {
        let (max, window) = self.kept(now);
        self.keys[key].alive = true;
        self.alive += 1;
        self.grants += 1;
        Grant { key, number: self.grants, start: self.window.push(now, max, window), probe }
    }

    /// A permit is no longer alive.
    #[inline]
    fn end(&mut self, grant: &Grant, feedback: Feedback) {
        self.alive -= 1;
        self.keys[grant.key].alive = false;
        if feedback == Feedback::Unused {
            self.window.remove(grant.start);
        }
    }

    #[inline]
    fn end_holds(&mut self, now: Moment) {
        while let Some(rare) = &mut self.rare
            && let Some(&(until, id)) = rare.pauses.holds.first()
            && until <= now
        {
            rare.pauses.holds.pop_first();
            self.keys[id].held_until = None;
            self.free_key(id);
        }
    }

    /// A key may have become free: those who wait for it can go on, or it is forgotten.
    fn free_key(&mut self, id: KeyId) {
        let key = &self.keys[id];
        if let Some(line) = &mut self.line
            && key.is_free()
            && key.waiters > 0
        {
            line.queue.attach(id, key.turn);
        }
        self.keys.forget_if_unused(id);
    }

    /// When the window has room for one more beside those that are set aside.
    #[inline]
    fn room_at(&self, reserved: usize) -> Moment {
        let max = as_count(self.limits.max_per_window.get()).saturating_sub(reserved);
        self.window.room_at(max, self.limits.window)
    }

    #[inline]
    fn reserved(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.queue.reserved())
    }

    /// How many starts are remembered, and for how long.
    #[inline]
    fn kept(&self, now: Moment) -> (usize, Duration) {
        let own = (as_count(self.limits.max_per_window.get()), self.limits.window);
        let earlier =
            self.rare.as_ref().and_then(|rare| rare.earlier).filter(|earlier| now < earlier.until);
        earlier
            .map_or(own, |earlier| (own.0.max(earlier.max_per_window), own.1.max(earlier.window)))
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

impl<W> Line<W> {
    fn boxed() -> Box<Self> {
        Box::new(Self { queue: FairQueue::new(), woken: VecDeque::new() })
    }
}

#[inline]
fn as_count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
