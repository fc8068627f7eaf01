use std::time::Duration;

use super::{DomainState, as_count};
use crate::{
    Endpoint, Grant,
    fair_queue::{Reservation, WaiterId},
    health::Standing,
    moment::Moment,
};

/// A waiter that does not come for its permit within this time is passed over.
pub const PICK_UP: Duration = Duration::from_secs(1);

impl<W> DomainState<W> {
    /// Sets permits aside for the head of the line, as long as there are some.
    pub(super) fn pump(&mut self, now: Moment) {
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

    /// As [`claim`](Self::claim), with what would have woken the waiter if it was not woken, for a
    /// caller that must not drop it yet.
    pub(crate) fn claim_with_wake(
        &mut self,
        now: Moment,
        waiter: WaiterId,
    ) -> Option<(usize, Grant, Option<W>)> {
        // Out of the queue, for who comes by itself need not be woken.
        let wake = self.line.as_mut().and_then(|line| line.queue.take_wake(waiter));
        self.advance(now);
        self.forgive(now, waiter);
        let line = self.line.as_mut()?;
        let Some((id, reservation)) = line.queue.unreserve(waiter, true) else {
            if let Some(wake) = wake {
                line.queue.replace_wake(waiter, wake);
            }
            return None;
        };
        let key = &mut self.keys[id];
        line.queue.remove(waiter, key.turn);
        key.waiters -= 1;
        key.reserved = false;
        let grant = self.start(now, id, reservation.probe);
        self.drop_empty_line();
        Some((reservation.endpoint, grant, wake))
    }

    /// A waiter who was passed over is here, so it stands in its place again.
    fn forgive(&mut self, now: Moment, waiter: WaiterId) {
        if let Some(line) = &mut self.line
            && line.queue.is_late(waiter)
            && let Some(key) = line.queue.key_of(waiter)
        {
            let key = &self.keys[key];
            line.queue.forgive(waiter, key.is_free().then_some(key.turn));
            self.pump(now);
        }
    }

    /// A permit that was set aside is free again, and the key goes back to its place.
    pub(super) fn give_up_reservation(&mut self, waiter: WaiterId, late: bool) {
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
    pub(super) fn give_up_reservations(&mut self, concerned: impl Fn(&Endpoint) -> bool) {
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

    pub(super) fn room_for_line_now(&self, now: Moment) -> bool {
        self.room_for_line_at().is_some_and(|at| at <= now)
    }

    /// When the line moves on, if it moves by time alone and somebody could go.
    pub(super) fn room_for_line(&self, now: Moment) -> Option<Moment> {
        let somebody = self.line.as_ref().is_some_and(|line| line.queue.has_free_key());
        self.room_for_line_at().filter(|&at| somebody && at > now)
    }

    pub(super) fn room_for_line_at(&self) -> Option<Moment> {
        let reserved = self.reserved();
        if as_count(self.alive) + reserved >= as_count(self.limits.max_concurrent.get()) {
            return None;
        }
        let pause = self.rare.as_ref().map_or(Moment::ZERO, |rare| rare.pauses.domain_until());
        Some(self.room_at(reserved).max(pause)).filter(|&at| at < Moment::MAX)
    }

    pub(super) fn drop_empty_line(&mut self) {
        if self.line.as_ref().is_some_and(|line| line.queue.is_empty() && line.woken.is_empty()) {
            self.line = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Feedback, Limits, WaiterId};

    const MINUTE: Moment = Moment::from_nanos(60_000_000_000);

    /// A domain whose window of a minute is full, and two who wait for it to open.
    fn two_in_line() -> (DomainState<&'static str>, [WaiterId; 2]) {
        let at: Endpoint = "https://h.example".parse().expect("a URL");
        let mut core = DomainState::new(Limits {
            max_per_window: 2.try_into().expect("two"),
            ..Limits::default()
        });
        for key in ["x", "y"] {
            let grant = core.try_take(Moment::ZERO, &at, key).expect("open");
            core.settle(Moment::ZERO, grant, &at, Feedback::Ok);
        }
        let waiters =
            ["a", "b"].map(|key| core.join(Moment::ZERO, std::slice::from_ref(&at), key, key));
        assert_eq!(core.pop_woken(), None);
        (core, waiters)
    }

    /// L6, L12: who comes before it was woken is not woken afterwards, others are; and the line goes
    /// with the last who leaves it.
    #[test]
    fn who_comes_unasked_is_not_woken() {
        let (mut core, [a, b]) = two_in_line();
        let _a = core.claim(MINUTE, a).expect("the window is open");
        assert_eq!((core.pop_woken(), core.pop_woken()), (Some("b"), None));
        let _b = core.claim(MINUTE, b).expect("set aside");
        assert!(core.line.is_none());
        assert_eq!(core.pop_woken(), None);
    }

    /// L6: who comes and finds nothing is woken when there is something.
    #[test]
    fn who_comes_too_early_is_woken_in_time() {
        let (mut core, [a, _]) = two_in_line();
        assert!(core.claim(Moment::ZERO, a).is_none());
        assert_eq!(core.wake_of(a), Some(&"a"));
        core.advance(MINUTE);
        assert_eq!((core.pop_woken(), core.pop_woken()), (Some("a"), Some("b")));
    }

    /// L12: a line that was empty before its last wake was taken goes with that.
    #[test]
    fn an_empty_line_goes_with_its_last_wake() {
        let (mut core, waiters) = two_in_line();
        core.advance(MINUTE);
        let _grants = waiters.map(|waiter| core.claim(MINUTE, waiter).expect("set aside"));
        assert!(core.line.is_some(), "two are to be woken");
        assert_eq!(
            (core.pop_woken(), core.pop_woken(), core.pop_woken()),
            (Some("a"), Some("b"), None)
        );
        assert!(core.line.is_none());
    }
}
