//! The rules as a naive model: lists that are searched from end to end, no structure to believe in.

use std::{collections::BTreeMap, time::Duration};

use domain_throttle::{Feedback, Limits};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

pub(crate) type Key = u8;
pub(crate) type Place = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum No {
    KeyBusy,
    Concurrency,
    Window(u64),
    Paused(u64),
    Queued,
}

#[derive(Clone, Debug)]
struct Alive {
    id: u32,
    key: Key,
    place: Place,
    number: u64,
    start: u64,
    probe: bool,
}

#[derive(Clone, Debug)]
struct Waiter {
    id: u32,
    key: Key,
    places: Vec<Place>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InLine,
    SetAside { until: u64, place: Place, probe: bool },
    Late,
}

/// How often an endpoint was reported broken, and its last pause.
#[derive(Clone, Debug, Default)]
struct Broken {
    reports: u32,
    length: u64,
    until: u64,
    after_grant: u64,
    forget_at: u64,
    probe_out: bool,
}

#[derive(Clone, Debug)]
struct Evidence {
    key: Key,
    two_keys: bool,
    after_grant: u64,
    forget_at: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) now: u64,
    pub(crate) limits: Limits,
    pub(crate) starts: Vec<u64>,
    alive: Vec<Alive>,
    line: Vec<Waiter>,
    turns: BTreeMap<Key, (u64, u64)>,
    last_turn: u64,
    holds: BTreeMap<Key, u64>,
    domain_until: u64,
    evidence: Option<Evidence>,
    broken: BTreeMap<Place, Broken>,
    grants: u64,
    /// Who was told to come, and when.
    pub(crate) called: Vec<(u64, u32)>,
}

impl Model {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            now: 0,
            limits,
            starts: Vec::new(),
            alive: Vec::new(),
            line: Vec::new(),
            turns: BTreeMap::new(),
            last_turn: 0,
            holds: BTreeMap::new(),
            domain_until: 0,
            evidence: None,
            broken: BTreeMap::new(),
            grants: 0,
            called: Vec::new(),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.alive.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.line.len()
    }

    fn window(&self) -> u64 {
        u64::try_from(self.limits.window.as_nanos()).expect("a short window")
    }

    /// L1, by counting: how many starts lie in the window that ends now.
    fn in_window(&self) -> usize {
        self.starts.iter().filter(|&&start| start + self.window() > self.now).count()
    }

    fn max(&self) -> usize {
        self.limits.max_per_window.get() as usize
    }

    fn set_aside(&self) -> usize {
        self.line.iter().filter(|w| matches!(w.state, State::SetAside { .. })).count()
    }

    fn has_permit(&self, key: Key) -> bool {
        self.alive.iter().any(|alive| alive.key == key)
    }

    fn is_called(&self, key: Key) -> bool {
        self.line.iter().any(|w| w.key == key && matches!(w.state, State::SetAside { .. }))
    }

    /// When the endpoint's pause is over; `None` while its probe is out.
    fn place_open_at(&self, place: Place) -> Option<u64> {
        match self.broken.get(&place) {
            Some(broken) if broken.probe_out => None,
            Some(broken) => Some(broken.until),
            None => Some(0),
        }
    }

    /// L5, in its order.
    pub(crate) fn verdict(&self, key: Key, place: Place) -> Result<(), No> {
        if self.has_permit(key) {
            return Err(No::KeyBusy);
        }
        if self.alive.len() >= self.limits.max_concurrent.get() as usize {
            return Err(No::Concurrency);
        }
        let hold = self.holds.get(&key).copied().unwrap_or(0);
        let pause = hold.max(self.domain_until);
        let Some(place_open_at) = self.place_open_at(place) else {
            return Err(No::Paused(pause.max(self.now + SECOND)));
        };
        let pause = pause.max(place_open_at);
        // The first instant at which one start less lies in the window, tried start by start.
        let has_room = |at: u64| {
            self.starts.iter().filter(|&&start| start + self.window() > at).count() < self.max()
        };
        let room = match has_room(self.now) {
            true => 0,
            false => {
                let leaves = self.starts.iter().map(|&start| start + self.window());
                leaves.filter(|&at| has_room(at)).min().expect("windows empty")
            }
        };
        if room > pause && room > self.now {
            return Err(No::Window(room));
        }
        if pause > self.now {
            return Err(No::Paused(pause));
        }
        if self.is_called(key) || !self.has_room_beside_those_set_aside() {
            return Err(No::Queued);
        }
        Ok(())
    }

    fn has_room_beside_those_set_aside(&self) -> bool {
        self.alive.len() + self.set_aside() < self.limits.max_concurrent.get() as usize
            && (self.window() == 0 || self.in_window() + self.set_aside() < self.max())
    }

    pub(crate) fn try_take(&mut self, id: u32, key: Key, place: Place) -> Result<(), No> {
        self.verdict(key, place)?;
        let probe = self.goes_as_probe(place);
        self.start(id, key, place, probe);
        Ok(())
    }

    fn start(&mut self, id: u32, key: Key, place: Place, probe: bool) {
        self.grants += 1;
        self.starts.push(self.now);
        self.alive.push(Alive { id, key, place, number: self.grants, start: self.now, probe });
    }

    fn goes_as_probe(&mut self, place: Place) -> bool {
        match self.broken.get_mut(&place) {
            Some(broken) if broken.length > 0 => {
                broken.probe_out = true;
                true
            }
            _ => false,
        }
    }

    fn new_turn(&mut self) -> u64 {
        self.last_turn += 1;
        self.last_turn
    }

    pub(crate) fn join(&mut self, id: u32, key: Key, places: &[Place]) {
        if !self.line.iter().any(|waiter| waiter.key == key) {
            let turn = self.new_turn();
            self.turns.insert(key, (turn, turn));
        }
        self.line.push(Waiter { id, key, places: places.to_vec(), state: State::InLine });
        self.pump();
    }

    pub(crate) fn claim(&mut self, id: u32) -> bool {
        let Some(at) = self.line.iter().position(|waiter| waiter.id == id) else { return false };
        if self.line[at].state == State::Late {
            self.line[at].state = State::InLine;
            self.pump();
        }
        let State::SetAside { place, probe, .. } = self.line[at].state else { return false };
        let waiter = self.line.remove(at);
        self.start(id, waiter.key, place, probe);
        true
    }

    pub(crate) fn leave(&mut self, id: u32) {
        let Some(at) = self.line.iter().position(|waiter| waiter.id == id) else { return };
        self.give_up(at, State::InLine);
        self.line.remove(at);
        self.pump();
    }

    fn give_up(&mut self, at: usize, then: State) {
        let State::SetAside { place, probe, .. } = self.line[at].state else { return };
        self.line[at].state = then;
        let turn = self.turns.get_mut(&self.line[at].key).expect("a waiter's key has a turn");
        turn.0 = turn.1;
        if probe && let Some(broken) = self.broken.get_mut(&place) {
            broken.probe_out = false;
        }
    }

    pub(crate) fn settle(&mut self, id: u32, feedback: Feedback) {
        let at = self.alive.iter().position(|alive| alive.id == id).expect("it is alive");
        let ended = self.alive.remove(at);
        match feedback {
            Feedback::Unused => {
                let start = self.starts.iter().position(|&start| start == ended.start);
                self.starts.remove(start.expect("it has started"));
                if ended.probe
                    && let Some(broken) = self.broken.get_mut(&ended.place)
                {
                    broken.probe_out = false;
                }
            }
            Feedback::Broken => self.is_broken(&ended),
            Feedback::Ok | Feedback::Failed | Feedback::RetryAfter(_) => self.is_not_broken(&ended),
        }
        if let Feedback::RetryAfter(delay) = feedback
            && delay > Duration::ZERO
        {
            self.retry_after(ended.key, delay);
        }
        if feedback == Feedback::Ok
            && self.evidence.as_ref().is_some_and(|seen| seen.after_grant < ended.number)
        {
            self.evidence = None;
        }
        self.pump();
    }

    fn is_broken(&mut self, ended: &Alive) {
        let broken = self.broken.entry(ended.place).or_default();
        let was_paused = broken.length > 0;
        if was_paused && !ended.probe && ended.number <= broken.after_grant {
            return;
        }
        if !ended.probe {
            broken.reports += 1;
            if broken.reports < 4 {
                broken.forget_at = self.now + 2 * MINUTE;
                return;
            }
        }
        broken.length = if ended.probe { (2 * broken.length).min(12 * HOUR) } else { MINUTE };
        broken.until = self.now + broken.length;
        broken.forget_at = broken.until + 2 * broken.length;
        broken.after_grant = self.grants;
        broken.probe_out = false;
        self.recall(|place| place == ended.place);
    }

    fn is_not_broken(&mut self, ended: &Alive) {
        let clears = |broken: &Broken| {
            ended.probe || broken.length == 0 || broken.after_grant < ended.number
        };
        if self.broken.get(&ended.place).is_some_and(clears) {
            self.broken.remove(&ended.place);
        }
    }

    fn retry_after(&mut self, key: Key, delay: Duration) {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX).min(24 * HOUR);
        self.holds.insert(key, self.now + delay);
        let seen = self.evidence.clone();
        let two_keys = seen.as_ref().is_some_and(|seen| seen.two_keys || seen.key != key);
        let pause = if two_keys { delay } else { delay.min(self.window()) };
        let forget_at = self.now + 3 * pause;
        let forget_at = seen.map_or(forget_at, |seen| seen.forget_at.max(forget_at));
        self.evidence = Some(Evidence { key, two_keys, after_grant: self.grants, forget_at });
        if self.now + pause > self.domain_until {
            self.domain_until = self.now + pause;
            self.recall(|_| true);
        }
    }

    /// Permits that were set aside go back; those who would have had them keep their places.
    fn recall(&mut self, concerned: impl Fn(Place) -> bool) {
        for at in 0..self.line.len() {
            if let State::SetAside { place, .. } = self.line[at].state
                && concerned(place)
            {
                self.give_up(at, State::InLine);
            }
        }
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) {
        if self.limits != limits {
            self.limits = limits;
            self.recall(|_| true);
            self.pump();
        }
    }

    /// Lives through every instant up to `to` at which anything could change by time alone.
    pub(crate) fn pass(&mut self, to: u64) {
        while let Some(next) = self.next_instant().filter(|&next| next <= to) {
            self.now = next;
            self.pump();
        }
        self.now = to;
        self.pump();
    }

    fn next_instant(&self) -> Option<u64> {
        let starts = self.starts.iter().map(|&start| start + self.window());
        let aside = self.line.iter().filter_map(|waiter| match waiter.state {
            State::SetAside { until, .. } => Some(until),
            _ => None,
        });
        let broken = self.broken.values().flat_map(|broken| [broken.until, broken.forget_at]);
        let evidence = self.evidence.iter().map(|seen| seen.forget_at);
        let all =
            starts.chain(aside).chain(broken).chain(evidence).chain(self.holds.values().copied());
        all.chain([self.domain_until]).filter(|&at| at > self.now).min()
    }

    /// L6 and L7: as long as there is something to give, the head of the line gets it.
    fn pump(&mut self) {
        let now = self.now;
        self.holds.retain(|_, until| *until > now);
        self.evidence = self.evidence.take().filter(|seen| seen.forget_at > now);
        self.broken.retain(|_, broken| broken.probe_out || broken.forget_at > now);
        for at in 0..self.line.len() {
            if let State::SetAside { until, .. } = self.line[at].state
                && until <= now
            {
                self.give_up(at, State::Late);
            }
        }
        while self.has_room_beside_those_set_aside() && self.domain_until <= now {
            let Some((at, place)) = self.head() else { return };
            let probe = self.goes_as_probe(place);
            self.line[at].state = State::SetAside { until: now + SECOND, place, probe };
            let (key, id) = (self.line[at].key, self.line[at].id);
            let new = self.new_turn();
            let turn = self.turns.get_mut(&key).expect("a waiter's key has a turn");
            *turn = (new, turn.0);
            self.called.push((now, id));
        }
    }

    /// Of those who may go the one whose key's turn is first, and of that key who came first.
    fn head(&self) -> Option<(usize, Place)> {
        let may_go = |waiter: &Waiter| {
            let open =
                |place: &&Place| self.place_open_at(**place).is_some_and(|at| at <= self.now);
            let key = waiter.key;
            let free =
                !self.has_permit(key) && !self.is_called(key) && !self.holds.contains_key(&key);
            waiter
                .places
                .iter()
                .find(open)
                .copied()
                .filter(|_| free && waiter.state == State::InLine)
        };
        let each = self.line.iter().enumerate();
        let able = each.filter_map(|(at, w)| Some((self.turns[&w.key].0, w.id, at, may_go(w)?)));
        able.min().map(|(_, _, at, place)| (at, place))
    }
}
