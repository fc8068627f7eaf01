use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{
    Endpoint, Moment, Permit, ThrottleError, WaiterId,
    permit_hook::{Granted, permit},
    shared::{Seat, Shared},
    slot::SlotId,
    store::Full,
    telemetry,
};

/// The wait of one caller in the lines of several domains. The first permit wins.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub(crate) struct Acquire<'a> {
    shared: Arc<Shared>,
    at: &'a [Endpoint],
    key: &'a str,
    /// `None` before the first poll.
    places: Option<Vec<Place>>,
}

/// A place in the line of one domain. It is left when this is dropped.
#[derive(Debug)]
struct Place {
    shared: Arc<Shared>,
    slot: SlotId,
    /// `None` once the permit was taken.
    waiter: Option<WaiterId>,
    endpoints: Vec<Endpoint>,
    since: Moment,
}

enum Entered {
    Granted(usize, Granted),
    Waiting(SlotId, WaiterId),
}

impl<'a> Acquire<'a> {
    pub(crate) fn new(shared: Arc<Shared>, at: &'a [Endpoint], key: &'a str) -> Self {
        Self { shared, at, key, places: None }
    }

    /// Takes what is there, or else stands in all lines.
    fn enter(&mut self, waker: &Waker) -> Result<Option<Permit>, ThrottleError> {
        let groups = by_domain(self.at);
        if groups.is_empty() {
            return Err(ThrottleError::NoEndpoint);
        }
        if groups.len() > 1 {
            for endpoints in &groups {
                if let Some(permit) = self.take_now(endpoints)? {
                    return Ok(Some(permit));
                }
            }
        }
        let mut places = Vec::with_capacity(groups.len());
        for endpoints in groups {
            match self.take_or_join(endpoints, waker)? {
                Ok(permit) => return Ok(Some(permit)),
                Err(place) => places.push(place),
            }
        }
        self.places = Some(places);
        Ok(None)
    }

    fn take_now(&self, endpoints: &[Endpoint]) -> Result<Option<Permit>, ThrottleError> {
        let granted =
            self.shared.enter(endpoints[0].domain(), |seat| self.first(endpoints, seat).ok())?;
        Ok(granted.map(|(at, granted)| permit(&self.shared, &endpoints[at], granted, None)))
    }

    /// Takes a permit for the first of these endpoints that has one. Gives the seat back if none has.
    fn first<'s>(
        &self,
        endpoints: &[Endpoint],
        seat: Seat<'s>,
    ) -> Result<(usize, Granted), Seat<'s>> {
        for (at, endpoint) in endpoints.iter().enumerate() {
            if let Ok(grant) = seat.core.try_take(seat.now, endpoint, self.key) {
                return Ok((at, self.shared.granted(&seat, grant)));
            }
        }
        Err(seat)
    }

    fn take_or_join(
        &self,
        endpoints: Vec<Endpoint>,
        waker: &Waker,
    ) -> Result<Result<Permit, Place>, ThrottleError> {
        if !self.shared.add_waiter() {
            // A permit that is there needs no place.
            return self.take_now(&endpoints)?.map(Ok).ok_or(ThrottleError::TooManyWaiters);
        }
        let waker = waker.clone();
        let entered =
            self.shared.enter(endpoints[0].domain(), |seat| match self.first(&endpoints, seat) {
                Ok((at, granted)) => (Entered::Granted(at, granted), Some(waker)),
                Err(Seat { core, now, id, .. }) => {
                    (Entered::Waiting(id, core.join(now, &endpoints, self.key, waker)), None)
                }
            });
        // A waker that nobody needed is dropped here, without the lock.
        match entered.map(|(entered, _waker)| entered) {
            Ok(Entered::Waiting(slot, waiter)) => {
                let shared = self.shared.clone();
                let since = shared.clock.now();
                let place = Place { shared, slot, waiter: Some(waiter), endpoints, since };
                telemetry::joined();
                Ok(Err(place))
            }
            Ok(Entered::Granted(at, granted)) => {
                self.shared.remove_waiter();
                Ok(Ok(permit(&self.shared, &endpoints[at], granted, None)))
            }
            Err(full) => {
                self.shared.remove_waiter();
                Err(full.into())
            }
        }
    }
}

impl Future for Acquire<'_> {
    type Output = Result<Permit, ThrottleError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.shared.is_closed() {
            self.places = None;
            return Poll::Ready(Err(ThrottleError::Closed));
        }
        let found = match &mut self.places {
            None => self.enter(context.waker()),
            Some(places) => Ok(places.iter_mut().find_map(|place| place.claim(context.waker()))),
        };
        match found {
            Ok(None) => {}
            Ok(Some(permit)) => {
                self.places = Some(Vec::new());
                return Poll::Ready(Ok(permit));
            }
            Err(error) => return Poll::Ready(Err(error)),
        }
        // Whoever closed the throttle after the look above may not have seen this waiter.
        if self.shared.is_closed() {
            self.places = None;
            return Poll::Ready(Err(ThrottleError::Closed));
        }
        self.shared.driver.ensure(&self.shared);
        Poll::Pending
    }
}

impl Place {
    /// Takes the permit that is set aside, or sees to it that its waiter is woken for one.
    fn claim(&mut self, waker: &Waker) -> Option<Permit> {
        let waiter = self.waiter?;
        let mut waker = Some(waker.clone());
        let claimed = self.shared.at(self.slot, |seat| {
            if let Some((at, grant, spent)) = seat.core.claim_with_wake(seat.now, waiter) {
                return Some((at, self.shared.granted(&seat, grant), spent));
            }
            let core = seat.core;
            let is_same = |old: &Waker| waker.as_ref().is_some_and(|new| old.will_wake(new));
            if !core.wake_of(waiter).is_some_and(is_same)
                && let Some(new) = waker.take()
            {
                // What is replaced is dropped after the lock is released.
                waker = core.replace_wake(waiter, new);
            }
            None
        });
        // What nobody needs to wake any more is dropped at the end, without the lock.
        let (at, granted, _spent) = claimed.flatten()?;
        self.waiter = None;
        self.shared.remove_waiter();
        let waited = self.shared.clock.now().saturating_since(self.since);
        let permit = permit(&self.shared, &self.endpoints[at], granted, Some(waited));
        telemetry::left();
        Some(permit)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.shared.remove_waiter();
            // The waker comes out so that it is dropped without the lock.
            let _waker = self.shared.at(self.slot, |seat| seat.core.leave(seat.now, waiter));
            telemetry::left();
        }
    }
}

impl From<Full> for ThrottleError {
    fn from(Full: Full) -> Self {
        Self::TooManyDomains
    }
}

/// The endpoints of each domain, in order; domains in the order in which they first appear.
fn by_domain(at: &[Endpoint]) -> Vec<Vec<Endpoint>> {
    if let [one] = at {
        return vec![vec![one.clone()]];
    }
    let mut sorted: Vec<(usize, &Endpoint)> = at.iter().enumerate().collect();
    sorted.sort_by(|(_, a), (_, b)| a.domain().cmp(b.domain()));
    let mut groups: Vec<&[(usize, &Endpoint)]> =
        sorted.chunk_by(|(_, a), (_, b)| a.domain() == b.domain()).collect();
    groups.sort_by_key(|group| group[0].0);
    groups.into_iter().map(|group| group.iter().map(|&(_, at)| at.clone()).collect()).collect()
}
