use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    Endpoint,
    keys::KeyId,
    lanes::{LaneId, Lanes, Turn},
    moment::Moment,
};

/// One who waits in the line of a domain. Numbers are given in order of arrival and never again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaiterId(u64);

/// Those who wait for one domain, after the rule L7: round-robin over keys, in order within a key.
///
/// Waiters that name the same endpoints share a lane, so that a pause of an endpoint shuts or opens
/// a lane and touches no waiter.
#[derive(Debug)]
pub(crate) struct FairQueue<W> {
    waiters: BTreeMap<WaiterId, Waiter<W>>,
    /// Those who would take a permit, by key and lane.
    willing: BTreeSet<(KeyId, LaneId, WaiterId)>,
    lanes: Lanes,
    /// Permits set aside, by the moment at which they go to the next in line.
    reserved: BTreeSet<(Moment, WaiterId)>,
    next_waiter: u64,
    next_turn: Turn,
}

#[derive(Debug)]
pub(crate) struct Waiter<W> {
    pub(crate) key: KeyId,
    lane: LaneId,
    /// What wakes it; taken when it is woken.
    wake: Option<W>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Willing,
    Reserved(Reservation),
    /// It did not come for the permit that was set aside for it, and is passed over until it does.
    Late,
}

/// A permit that is set aside for a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) until: Moment,
    /// Which of the waiter's endpoints it is for.
    pub(crate) endpoint: usize,
    pub(crate) probe: bool,
}

/// Whom [`FairQueue::first`] found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) waiter: WaiterId,
    pub(crate) key: KeyId,
}

impl<W> FairQueue<W> {
    pub(crate) fn new() -> Self {
        Self {
            waiters: BTreeMap::new(),
            willing: BTreeSet::new(),
            lanes: Lanes::default(),
            reserved: BTreeSet::new(),
            next_waiter: 0,
            next_turn: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) fn reserved(&self) -> usize {
        self.reserved.len()
    }

    /// The next permit that was set aside and not taken, and when that is given up.
    pub(crate) fn first_reserved(&self) -> Option<(Moment, WaiterId)> {
        self.reserved.first().copied()
    }

    pub(crate) fn all_reserved(&self) -> Vec<WaiterId> {
        self.reserved.iter().map(|&(_, waiter)| waiter).collect()
    }

    /// A place at the end of the rotation.
    pub(crate) fn new_turn(&mut self) -> Turn {
        self.next_turn += 1;
        self.next_turn
    }

    /// Adds a waiter at the end of its key's line. `turn` is the key's place if the key is free.
    pub(crate) fn join(
        &mut self,
        key: KeyId,
        turn: Option<Turn>,
        endpoints: &[Endpoint],
        wake: W,
    ) -> WaiterId {
        let id = WaiterId(self.next_waiter);
        self.next_waiter += 1;
        let lane = self.lanes.enter(endpoints);
        self.waiters.insert(id, Waiter { key, lane, wake: Some(wake), place: Place::Willing });
        self.add_willing(id, key, lane, turn);
        id
    }

    /// Takes a waiter out. A permit that is set aside for it must be given up first.
    pub(crate) fn remove(&mut self, id: WaiterId, turn: Turn) -> Option<Waiter<W>> {
        let waiter = self.waiters.remove(&id)?;
        self.remove_willing(id, waiter.key, waiter.lane, turn);
        self.lanes.leave(waiter.lane);
        Some(waiter)
    }

    pub(crate) fn key_of(&self, id: WaiterId) -> Option<KeyId> {
        self.waiters.get(&id).map(|waiter| waiter.key)
    }

    pub(crate) fn endpoints_of(&self, id: WaiterId) -> Arc<[Endpoint]> {
        self.lanes[self.waiters[&id].lane].endpoints().clone()
    }

    pub(crate) fn is_late(&self, id: WaiterId) -> bool {
        self.waiters.get(&id).is_some_and(|waiter| waiter.place == Place::Late)
    }

    pub(crate) fn reservation(&self, id: WaiterId) -> Option<Reservation> {
        match self.waiters.get(&id)?.place {
            Place::Reserved(reservation) => Some(reservation),
            _ => None,
        }
    }

    /// Changes what wakes a waiter; returns what did so far.
    pub(crate) fn replace_wake(&mut self, id: WaiterId, wake: W) -> Option<W> {
        match self.waiters.get_mut(&id) {
            Some(waiter) => waiter.wake.replace(wake),
            None => Some(wake),
        }
    }

    pub(crate) fn wake_of(&self, id: WaiterId) -> Option<&W> {
        self.waiters.get(&id)?.wake.as_ref()
    }

    pub(crate) fn take_wake(&mut self, id: WaiterId) -> Option<W> {
        self.waiters.get_mut(&id)?.wake.take()
    }

    /// Everything that wakes somebody, for a domain that is being closed.
    pub(crate) fn take_all_wakes(&mut self) -> Vec<W> {
        self.waiters.values_mut().filter_map(|waiter| waiter.wake.take()).collect()
    }

    /// The next in line among those for whom one of the endpoints is open.
    pub(crate) fn first(&self, is_open: impl Fn(&[Endpoint]) -> bool) -> Option<Head> {
        let open = self.lanes.iter().filter(|lane| is_open(lane.endpoints()));
        let (_, key) = open.filter_map(|lane| lane.order.first().copied()).min()?;
        let open = |&(lane, _): &(LaneId, WaiterId)| is_open(self.lanes[lane].endpoints());
        let firsts = self.lanes_of(key).filter(open);
        let waiter = firsts.map(|(_, first)| first).min()?;
        Some(Head { waiter, key })
    }

    /// Whether a free key waits in any lane, open or not.
    pub(crate) fn has_free_key(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.order.is_empty())
    }

    /// Whether anybody waits for this endpoint.
    pub(crate) fn waits_for(&self, at: &Endpoint) -> bool {
        self.lanes.iter().any(|lane| lane.endpoints().contains(at))
    }

    /// Sets a permit aside. The key must be off the rotation. Returns what wakes the waiter.
    pub(crate) fn reserve(
        &mut self,
        id: WaiterId,
        reservation: Reservation,
        turn: Turn,
    ) -> Option<W> {
        let waiter = self.waiters.get_mut(&id)?;
        waiter.place = Place::Reserved(reservation);
        let (key, lane, wake) = (waiter.key, waiter.lane, waiter.wake.take());
        self.remove_willing(id, key, lane, turn);
        self.reserved.insert((reservation.until, id));
        wake
    }

    /// Takes a reservation off a waiter, who is late then, or else stands in its place again.
    pub(crate) fn unreserve(&mut self, id: WaiterId, late: bool) -> Option<(KeyId, Reservation)> {
        let reservation = self.reservation(id)?;
        self.reserved.remove(&(reservation.until, id));
        let waiter = self.waiters.get_mut(&id)?;
        let (key, lane) = (waiter.key, waiter.lane);
        waiter.place = if late { Place::Late } else { Place::Willing };
        if !late {
            self.add_willing(id, key, lane, None);
        }
        Some((key, reservation))
    }

    /// A late waiter stands in its place again. `turn` is its key's if the key is free.
    pub(crate) fn forgive(&mut self, id: WaiterId, turn: Option<Turn>) {
        if let Some(waiter) = self.waiters.get_mut(&id)
            && waiter.place == Place::Late
        {
            waiter.place = Place::Willing;
            let (key, lane) = (waiter.key, waiter.lane);
            self.add_willing(id, key, lane, turn);
        }
    }

    /// Puts a key that became free on the rotation.
    pub(crate) fn attach(&mut self, key: KeyId, turn: Turn) {
        for lane in self.lane_ids_of(key) {
            self.lanes[lane].order.insert((turn, key));
        }
    }

    /// Takes a key that is no longer free off the rotation.
    pub(crate) fn detach(&mut self, key: KeyId, turn: Turn) {
        for lane in self.lane_ids_of(key) {
            self.lanes[lane].order.remove(&(turn, key));
        }
    }

    fn add_willing(&mut self, id: WaiterId, key: KeyId, lane: LaneId, turn: Option<Turn>) {
        self.willing.insert((key, lane, id));
        if let Some(turn) = turn {
            self.lanes[lane].order.insert((turn, key));
        }
    }

    fn remove_willing(&mut self, id: WaiterId, key: KeyId, lane: LaneId, turn: Turn) {
        if self.willing.remove(&(key, lane, id)) && self.first_in(key, lane).is_none() {
            self.lanes[lane].order.remove(&(turn, key));
        }
    }

    /// The lanes in which somebody of this key is willing, with the first of each.
    fn lanes_of(&self, key: KeyId) -> impl Iterator<Item = (LaneId, WaiterId)> {
        let mut from = Some(0);
        std::iter::from_fn(move || {
            let &(of, lane, first) = self.willing.range((key, from?, WaiterId(0))..).next()?;
            from = lane.checked_add(1);
            (of == key).then_some((lane, first))
        })
    }

    fn lane_ids_of(&self, key: KeyId) -> Vec<LaneId> {
        self.lanes_of(key).map(|(lane, _)| lane).collect()
    }

    fn first_in(&self, key: KeyId, lane: LaneId) -> Option<WaiterId> {
        let &(of, found, first) = self.willing.range((key, lane, WaiterId(0))..).next()?;
        (of == key && found == lane).then_some(first)
    }
}

impl<W> Waiter<W> {
    pub(crate) fn into_wake(self) -> Option<W> {
        self.wake
    }
}
