use std::time::Duration;

use super::{DomainState, as_count};
use crate::{
    Endpoint,
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
