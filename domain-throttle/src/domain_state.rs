use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{
    Endpoint, Feedback, Limits,
    fair_queue::{FairQueue, Reservation, WaiterId},
    health::Standing,
    keys::{KeyId, Keys},
    moment::Moment,
    pause::{LONGEST_RETRY_AFTER, Pauses},
    window::Window,
};

/// A waiter that does not come for its permit within this time is passed over.
pub const PICK_UP: Duration = Duration::from_secs(1);

/// While a probe is out nobody knows when the pause ends; this is when to look again.
const PROBE_GUESS: Duration = Duration::from_secs(1);

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

/// A start that was granted. Give it back with [`DomainState::settle`], once.
#[derive(Debug)]
#[must_use = "a grant holds a slot until it is settled"]
pub struct Grant {
    key: KeyId,
    number: u64,
    start: Moment,
    probe: bool,
}

/// Why [`DomainState`] granted nothing: [`Denied`](crate::Denied) with moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The key has a permit already.
    KeyBusy,
    /// As many permits are alive as may be.
    Concurrency,
    /// The window is full until then.
    Window {
        /// When a start leaves it.
        until: Moment,
    },
    /// The endpoint, the domain or the key is paused until then.
    Paused {
        /// When that is over; a guess while a probe is out.
        until: Moment,
    },
    /// What there is belongs to those in line.
    Queued,
}

/// What a feedback brought about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// The domain is paused until then, longer than before.
    pub domain_paused: Option<Moment>,
    /// A pause of the endpoint began, until then.
    pub endpoint_paused: Option<Moment>,
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
    pub fn check(&mut self, now: Moment, at: &Endpoint, key: &str) -> Result<(), Refusal> {
        self.advance(now);
        self.verdict(now, at, key)
    }

    /// Takes a permit if there is one now.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub fn try_take(&mut self, now: Moment, at: &Endpoint, key: &str) -> Result<Grant, Refusal> {
        self.check(now, at, key)?;
        let key = self.keys.find_or_insert(key);
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
        self.advance(now);
        let line = self.line.as_mut()?;
        if line.queue.is_late(waiter) {
            let key = &self.keys[line.queue.key_of(waiter)?];
            line.queue.forgive(waiter, key.is_free().then_some(key.turn));
            self.pump(now);
        }
        let line = self.line.as_mut()?;
        let (id, reservation) = line.queue.unreserve(waiter, true)?;
        let key = &mut self.keys[id];
        line.queue.remove(waiter, key.turn);
        key.waiters -= 1;
        key.reserved = false;
        let grant = self.start(now, id, reservation.probe);
        self.drop_empty_line();
        Some((reservation.endpoint, grant))
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
        self.alive -= 1;
        self.keys[grant.key].alive = false;
        if feedback == Feedback::Unused {
            self.window.remove(grant.start);
        }
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
        self.line.as_mut()?.woken.pop_front()
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
        self.keys.shrink();
        let limits = *self.limits;
        if let Some(rare) = &mut self.rare {
            rare.pauses.tidy(now);
            rare.earlier = rare.earlier.filter(|earlier| now < earlier.until);
            if rare.pauses.over_at() <= now && rare.earlier.is_none() {
                self.rare = None;
            }
        }
        if self.window.empty_at(limits.window) <= now && self.rare.is_none() {
            self.window = Window::new(limits.window);
        }
    }
}

impl<W> DomainState<W> {
    /// The rule L5: the key, concurrency, the timed cause that ends last, and then the line.
    fn verdict(&self, now: Moment, at: &Endpoint, key: &str) -> Result<(), Refusal> {
        let key = self.keys.find(key).map(|id| &self.keys[id]);
        if key.is_some_and(|key| key.alive) {
            return Err(Refusal::KeyBusy);
        }
        if self.alive >= self.limits.max_concurrent.get() {
            return Err(Refusal::Concurrency);
        }
        let window = self.room_at(0);
        let mut pause = key.and_then(|key| key.held_until).unwrap_or_default();
        if let Some(rare) = &self.rare {
            pause = pause.max(rare.pauses.domain_until());
            match rare.pauses.standing(at, now) {
                Standing::Paused { until } => pause = pause.max(until),
                Standing::Probing => {
                    return Err(Refusal::Paused {
                        until: pause.max(now.saturating_add(PROBE_GUESS)),
                    });
                }
                Standing::Open | Standing::ProbeReady => {}
            }
        }
        if window.max(pause) > now {
            return Err(match window > pause {
                true => Refusal::Window { until: window },
                false => Refusal::Paused { until: pause },
            });
        }
        let reserved = self.reserved();
        let none_left = as_count(self.alive) + reserved
            >= as_count(self.limits.max_concurrent.get())
            || self.room_at(reserved) > now;
        if none_left || key.is_some_and(|key| key.reserved) {
            return Err(Refusal::Queued);
        }
        Ok(())
    }

    /// Stamps a start. All checks were made.
    fn start(&mut self, now: Moment, key: KeyId, probe: bool) -> Grant {
        let (max, window) = self.kept(now);
        self.keys[key].alive = true;
        self.alive += 1;
        self.grants += 1;
        Grant { key, number: self.grants, start: self.window.push(now, max, window), probe }
    }

    /// Sets permits aside for the head of the line, as long as there are some.
    fn pump(&mut self, now: Moment) {
        while self.room_for_line_now(now) {
            let Some(line) = &mut self.line else { return };
            let mut pauses = self.rare.as_mut().map(|rare| &mut rare.pauses);
            let standing =
                |at: &Endpoint| pauses.as_ref().map_or(Standing::Open, |p| p.standing(at, now));
            let Some(head) = line.queue.first(|at| at.iter().any(|at| standing(at).is_open()))
            else {
                return;
            };
            let endpoints = line.queue.endpoints_of(head.waiter);
            let endpoint =
                endpoints.iter().position(|at| standing(at).is_open()).unwrap_or_default();
            let probe =
                pauses.as_mut().is_some_and(|pauses| pauses.granted(&endpoints[endpoint], now));
            let key = &mut self.keys[head.key];
            line.queue.detach(head.key, key.turn);
            let until = now.saturating_add(PICK_UP);
            let wake =
                line.queue.reserve(head.waiter, Reservation { until, endpoint, probe }, key.turn);
            line.woken.extend(wake);
            key.reserved = true;
            key.turn_before = key.turn;
            key.turn = line.queue.new_turn();
        }
    }

    /// A permit that was set aside is free again, and the key goes back to its place.
    fn give_up_reservation(&mut self, waiter: WaiterId, late: bool) {
        let Some(line) = &mut self.line else { return };
        let endpoints = line.queue.reservation(waiter).map(|_| line.queue.endpoints_of(waiter));
        let Some((id, reservation)) = line.queue.unreserve(waiter, late) else { return };
        if let (true, Some(rare), Some(endpoints)) = (reservation.probe, &mut self.rare, endpoints)
        {
            rare.pauses.probe_unused(&endpoints[reservation.endpoint]);
        }
        let key = &mut self.keys[id];
        key.reserved = false;
        key.turn = key.turn_before;
        if key.is_free() {
            line.queue.attach(id, key.turn);
        }
    }

    /// Permits that are set aside for endpoints that may no longer be asked. Their waiters keep
    /// their places; they have been woken and will look.
    fn give_up_reservations(&mut self, concerned: impl Fn(&Endpoint) -> bool) {
        let Some(line) = &self.line else { return };
        let reserved = line.queue.all_reserved();
        let of_concern = |&id: &WaiterId| {
            let line = self.line.as_ref().map(|line| &line.queue);
            let reservation =
                line.and_then(|queue| Some((queue.reservation(id)?, queue.endpoints_of(id))));
            reservation.is_some_and(|(at, endpoints)| concerned(&endpoints[at.endpoint]))
        };
        let reserved: Vec<WaiterId> = reserved.into_iter().filter(of_concern).collect();
        for waiter in reserved {
            self.give_up_reservation(waiter, false);
        }
    }

    /// Takes a feedback to heart: the rule L10.
    fn learn(&mut self, now: Moment, grant: &Grant, at: &Endpoint, feedback: Feedback) -> Settled {
        if self.rare.is_none()
            && matches!(feedback, Feedback::Ok | Feedback::Failed | Feedback::Unused)
        {
            return Settled::default();
        }
        let next_grant = self.grants + 1;
        let window = self.limits.window;
        let pauses = &mut self.rare.get_or_insert_default().pauses;
        let endpoint_paused =
            pauses.report(now, at, feedback, grant.number, grant.probe, next_grant);
        let domain_paused = match feedback {
            Feedback::RetryAfter(delay) if !delay.is_zero() => {
                let delay = delay.min(LONGEST_RETRY_AFTER);
                let key = &mut self.keys[grant.key];
                let until = now.saturating_add(delay);
                key.held_until = Some(until);
                pauses.holds.insert((until, grant.key));
                pauses.retry_after(now, &key.name, delay, window, next_grant)
            }
            _ => None,
        };
        Settled { domain_paused, endpoint_paused }
    }

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

    fn room_for_line_now(&self, now: Moment) -> bool {
        self.room_for_line_at().is_some_and(|at| at <= now)
    }

    /// When the line moves on, if it moves by time alone and somebody could go.
    fn room_for_line(&self, now: Moment) -> Option<Moment> {
        let somebody = self.line.as_ref().is_some_and(|line| line.queue.has_free_key());
        self.room_for_line_at().filter(|&at| somebody && at > now)
    }

    fn room_for_line_at(&self) -> Option<Moment> {
        let reserved = self.reserved();
        if as_count(self.alive) + reserved >= as_count(self.limits.max_concurrent.get()) {
            return None;
        }
        let pause = self.rare.as_ref().map_or(Moment::ZERO, |rare| rare.pauses.domain_until());
        Some(self.room_at(reserved).max(pause)).filter(|&at| at < Moment::MAX)
    }

    /// When the window has room for one more beside those that are set aside.
    fn room_at(&self, reserved: usize) -> Moment {
        let max = as_count(self.limits.max_per_window.get()).saturating_sub(reserved);
        self.window.room_at(max, self.limits.window)
    }

    fn reserved(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.queue.reserved())
    }

    /// How many starts are remembered, and for how long.
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

    fn drop_empty_line(&mut self) {
        if self.line.as_ref().is_some_and(|line| line.queue.is_empty() && line.woken.is_empty()) {
            self.line = None;
        }
    }
}

impl<W> Line<W> {
    fn boxed() -> Box<Self> {
        Box::new(Self { queue: FairQueue::new(), woken: VecDeque::new() })
    }
}

fn as_count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
