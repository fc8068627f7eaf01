//! What was seen from outside of the engine, and whether it was allowed. It knows nothing of how the engine works:
//! it counts on the hosts' side, remembers promises, and compares with what is true.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use purgatory_sync::{Oid, PassEnd, PassSummary, keyed_debounce::Outcome};

use crate::{
    pauses::Pauses,
    story::{Place, Rules, Secs, host_name, repo_name},
};

/// Rounds of starting what is due begin this far apart.
const GAP: u64 = 1_000;
/// The quiet time after an engine's start before it queues what is held.
const RESTORE: u64 = 500;
/// How far two identifiers of a restore are apart, at most.
const RESTORE_STEP: u64 = 100;
/// A permit may be in hand for so long while a slow store is looked at.
const LEAVE_GRACE: u64 = 100;
/// How long a pass that waits may take to look after something changed.
const LOOK_GAP: u64 = 100;
/// More calls than this for one identifier in one instant are a pass that spins.
const SPIN: u32 = 2_000;

pub(crate) struct Ledger {
    rules: Rules,
    pub(crate) now: u64,
    pub(crate) seq: u64,
    pub(crate) ids: BTreeMap<usize, IdSeen>,
    hosts: Vec<HostSeen>,
    /// Requests that are on, over all hosts.
    on: usize,
    pub(crate) fetches: u64,
    pub(crate) passes: u64,
    pub(crate) violation: Option<String>,
}

/// One identifier.
#[derive(Default)]
pub(crate) struct IdSeen {
    /// Requests that no pass has answered.
    pub(crate) requests: Vec<Request>,
    /// From then on a pass may begin that nobody can be sure of: for a request of the very instant in which
    /// the last pass began, or because the store was asked what it holds.
    pub(crate) maybe: Option<u64>,
    pub(crate) pass: Option<PassSeen>,
    /// How the last pass ended, and when the next is due for it.
    last: Option<Last>,
    /// Calls of a port that have not returned.
    calls: u32,
    calls_at: (u64, u32),
    /// Words of change, for a release that brought nothing.
    words: u64,
    /// When the last one came that the engine took.
    word_at: u64,
    fruitless: Option<(Vec<u64>, Vec<Oid>, u64)>,
}

pub(crate) struct Request {
    at: u64,
    earliest: u64,
    latest: u64,
}

struct Last {
    ended: u64,
    attempt: u32,
    next: Option<(u64, bool)>,
}

/// A pass that is on.
#[derive(Default)]
pub(crate) struct PassSeen {
    began: u64,
    attempt: u32,
    fetches: usize,
    /// What was asked where, and how often it may be asked again.
    asked: HashSet<(Place, Oid)>,
    again: HashMap<Place, HashSet<Oid>>,
    /// What the store said last: objects and where they may be asked.
    wants: Vec<(Vec<Oid>, Vec<Place>)>,
    held: usize,
    look: (u64, u64),
    /// What was missing then.
    missing: HashSet<Oid>,
    fetching: bool,
    /// Since when the store and the objects are looked at.
    looking: u64,
    /// How many words of change had come by then.
    words: u64,
}

/// What one host sees.
#[derive(Default)]
struct HostSeen {
    starts: VecDeque<u64>,
    on: Vec<usize>,
    pauses: Pauses,
}

impl Ledger {
    pub(crate) fn new(rules: Rules, hosts: usize) -> Self {
        Self {
            rules,
            now: 0,
            seq: 0,
            ids: BTreeMap::new(),
            hosts: (0..hosts).map(|_| HostSeen::default()).collect(),
            on: 0,
            fetches: 0,
            passes: 0,
            violation: None,
        }
    }

    /// The first thing that was not allowed counts.
    pub(crate) fn wrong(&mut self, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(format!("at {}: {}", Secs(self.now), what()));
        }
    }

    /// The engine of this life is gone, and with it all it promised.
    pub(crate) fn life_over(&mut self, keeps_limits: bool) {
        self.ids.clear();
        if self.on > 0 {
            self.wrong(|| "P15: a request goes on after its engine has ended".into());
        }
        if !keeps_limits {
            self.hosts.iter_mut().for_each(|host| *host = HostSeen::default());
        }
    }

    // What the world does.

    /// The engine took a request.
    pub(crate) fn requested(&mut self, repo: usize, quiet: u64, max_wait: u64) {
        let now = self.now;
        let id = self.ids.entry(repo).or_default();
        id.words += 1;
        id.word_at = now;
        let (mut earliest, mut latest) = (now + quiet, now + max_wait);
        if let (None, Some(Last { next: Some((next, _)), .. })) = (&id.pass, &id.last) {
            earliest = earliest.min(*next);
            latest = latest.min(*next);
        }
        id.requests.push(Request { at: now, earliest, latest });
    }

    /// The engine turned a request away because its queue is full. Others may go on and see what is held.
    pub(crate) fn turned_away(&mut self, repo: usize) {
        self.ids.entry(repo).or_default().words += 1;
    }

    /// The store said what it holds.
    pub(crate) fn restored(&mut self, held: &[usize]) {
        let (now, surely) = (self.now, held.len() < self.rules.queue);
        for repo in held {
            let id = self.ids.entry(*repo).or_default();
            let unknown = id.requests.is_empty() && id.pass.is_none() && id.last.is_none();
            let earliest = now + RESTORE;
            if unknown && surely {
                let latest = earliest + RESTORE_STEP * held.len() as u64;
                id.requests.push(Request { at: now, earliest, latest });
            } else {
                id.maybe = Some(id.maybe.map_or(earliest, |maybe| maybe.min(earliest)));
            }
        }
    }

    // What the engine tells.

    pub(crate) fn pass_began(&mut self, repo: usize, attempt: u32) {
        let now = self.now;
        self.passes += 1;
        let id = self.ids.entry(repo).or_default();
        let overlaps = id.pass.is_some();
        let asked_for = id.requests.iter().map(|request| request.earliest);
        let last = id.last.as_ref().and_then(|last| last.next);
        let may = asked_for.chain(id.maybe).chain(last.map(|(next, _)| next)).min();
        let expected = match (&id.last, last) {
            _ if id.maybe.is_some() || id.requests.iter().any(|request| request.at == now) => None,
            _ if !id.requests.is_empty() => Some(1),
            (Some(last), Some((_, failed))) => Some(last.attempt + u32::from(failed)),
            _ => Some(1),
        };
        // Nobody can tell which came first in one instant: the pass, or a request.
        let unsure = id.requests.iter().filter(|request| request.at == now);
        let maybe = unsure.map(|request| request.earliest).min();
        id.requests.clear();
        (id.maybe, id.last) = (maybe, None);
        id.pass = Some(PassSeen { began: now, attempt, ..PassSeen::default() });
        let name = repo_name(repo);
        if overlaps {
            self.wrong(|| format!("P1: two passes of {name:?} at once"));
        }
        if may.is_none_or(|may| now < may) {
            let due = may.map(|may| Secs(may).to_string());
            self.wrong(|| format!("D7: a pass of {name:?} that nothing asks for; due {due:?}"));
        }
        if expected.is_some_and(|expected| expected != attempt) {
            self.wrong(|| {
                format!("D8: the pass of {name:?} is attempt {attempt}, not {expected:?}")
            });
        }
    }

    pub(crate) fn pass_ended(&mut self, repo: usize, outcome: Outcome, summary: &PassSummary) {
        let now = self.now;
        let name = repo_name(repo);
        let Some(id) = self.ids.get_mut(&repo) else { return };
        let Some(pass) = id.pass.take() else {
            return self.wrong(|| format!("P1: a pass of {name:?} ends that is not on"));
        };
        let delay = match outcome {
            Outcome::Done => None,
            Outcome::Retry => Some((backoff(pass.attempt), true)),
            Outcome::RetryAfter(wait) | Outcome::Defer(wait) => Some((millis(wait), false)),
        };
        if let Some((wait, failed)) = delay {
            // D6: what was asked for meanwhile waits no longer than a first failure would.
            let most = now + if failed { backoff(1) } else { wait };
            for request in &mut id.requests {
                request.earliest = request.earliest.min(most);
                request.latest = request.latest.min(most);
            }
            id.maybe = id.maybe.map(|maybe| maybe.min(most));
        }
        let next = delay.filter(|_| id.requests.is_empty());
        let next = next.map(|(wait, failed)| (now + wait, failed));
        id.last = Some(Last { ended: now, attempt: pass.attempt, next });
        let (why, did) = (summary.why, outcome);
        let fits = match why {
            PassEnd::NothingHeld => outcome == Outcome::Done && pass.held == 0,
            PassEnd::Paused { .. } if summary.fetches == 0 => matches!(did, Outcome::Defer(wait) if
                (1_000..=120_000).contains(&millis(wait))),
            PassEnd::Stopped | PassEnd::Lost => true,
            PassEnd::FetchLimit => {
                outcome == Outcome::Retry && pass.fetches == self.rules.fetches_per_pass
            }
            _ => outcome == Outcome::Retry,
        };
        if !fits {
            self.wrong(|| format!("P10: a pass of {name:?} ends with {why:?} in {outcome:?}"));
        }
        if matches!(why, PassEnd::AllAsked | PassEnd::Paused { .. }) {
            self.check_ended(repo, &pass, why);
        }
    }

    /// P5, L10: a pass that ends for want of sources has asked them all, and only what a host's answers have paused is left.
    fn check_ended(&mut self, repo: usize, pass: &PassSeen, why: PassEnd) {
        if pass.wants.len() > self.rules.wants_per_look {
            return;
        }
        let open = pass.open();
        let left = open.iter().find(|place| !self.is_excused(**place, repo, pass.began));
        let name = repo_name(repo);
        if let Some(place) = left {
            let place = describe(*place);
            self.wrong(|| {
                format!("P5: the pass of {name:?} ends with {why:?} and {place} was not asked")
            });
        } else if matches!(why, PassEnd::Paused { .. }) && open.is_empty() {
            self.wrong(|| {
                format!("L10: the pass of {name:?} ends for a pause that no host caused")
            });
        }
    }

    // What comes in at the ports.

    /// A port is called. False: it is called so often that nothing else would ever happen.
    pub(crate) fn call_began(&mut self, repo: usize, is_look: bool) -> bool {
        self.seq += 1;
        let now = self.now;
        let id = self.ids.entry(repo).or_default();
        id.calls += 1;
        id.calls_at = if id.calls_at.0 == now { (now, id.calls_at.1 + 1) } else { (now, 1) };
        let (spins, alone) = (id.calls_at.1 > SPIN, id.pass.is_some());
        if let Some(pass) = &mut id.pass
            && is_look
        {
            (pass.looking, pass.words) = (now, id.words);
        }
        let name = repo_name(repo);
        if spins {
            self.wrong(|| format!("P5: the pass of {name:?} spins"));
        }
        if !alone {
            self.wrong(|| format!("P1: a port is called for {name:?} without a pass"));
        }
        !spins
    }

    pub(crate) fn call_ended(&mut self, repo: usize) {
        if let Some(id) = self.ids.get_mut(&repo) {
            id.calls -= 1;
        }
    }

    /// The store answered a look.
    pub(crate) fn looked(
        &mut self,
        repo: usize,
        held: usize,
        wants: Vec<(Vec<Oid>, Vec<Place>)>,
        here: &HashMap<Oid, u64>,
    ) {
        let look = (self.now, self.seq);
        let Some(pass) = self.ids.get_mut(&repo).and_then(|id| id.pass.as_mut()) else { return };
        let all = wants.iter().flat_map(|(oids, _)| oids);
        pass.missing = all.filter(|oid| !here.contains_key(oid)).copied().collect();
        (pass.held, pass.wants, pass.look) = (held, wants, look);
    }

    /// A release is asked for these objects; `stays` says which events were held, and stay.
    pub(crate) fn releases(
        &mut self,
        repo: usize,
        here: &[Oid],
        really: &HashMap<Oid, u64>,
        stays: Option<Vec<u64>>,
    ) {
        let name = repo_name(repo);
        let early = here.iter().find(|oid| !really.contains_key(oid));
        if let Some(oid) = early {
            self.wrong(|| format!("P9: {name:?} is told that {oid:?} is here, and it is not"));
        }
        let most = self.rules.wants_per_look;
        let Some(id) = self.ids.get_mut(&repo) else { return };
        let words = id.pass.as_ref().map_or(0, |pass| pass.words);
        let attempt = stays.map(|stays| (stays, here.to_vec(), words));
        let again = attempt.is_some() && id.fruitless == attempt;
        id.fruitless = attempt;
        let Some(pass) = &id.pass else { return };
        let all = pass.wants.iter().flat_map(|(oids, _)| oids);
        let mut known = all.filter(|oid| really.get(oid).is_some_and(|seq| *seq < pass.look.1));
        let left_out = known.find(|oid| pass.wants.len() <= most && !here.contains(oid)).copied();
        if let Some(oid) = left_out {
            self.wrong(|| format!("P9: {name:?} is not told that {oid:?} is here"));
        }
        if again {
            self.wrong(|| format!("P9: a release of {name:?} that brought nothing is repeated"));
        }
    }

    /// A request reaches a host. Everything that a host or a repository may complain about is checked here.
    pub(crate) fn fetch_began(
        &mut self,
        repo: usize,
        place: Place,
        oids: &[Oid],
        here: &HashMap<Oid, u64>,
    ) {
        self.fetches += 1;
        let (now, name, at) = (self.now, repo_name(repo), describe(place));
        let Place::At { host, .. } = place else {
            return self.wrong(|| format!("P7: our own service is asked for {name:?}"));
        };
        let (slots, most) = (self.rules.slots, self.rules.fetches_per_pass);
        let Some(pass) = self.ids.get_mut(&repo).and_then(|id| id.pass.as_mut()) else {
            return self.wrong(|| format!("P1: {at} is asked for {name:?} without a pass"));
        };
        pass.fetches += 1;
        let overlaps = std::mem::replace(&mut pass.fetching, true);
        let (too_many, looking) = (pass.fetches > most, pass.looking);
        let again = pass.again.remove(&place).unwrap_or_default();
        let mut wrong = None;
        for (number, oid) in oids.iter().enumerate() {
            let first = pass.asked.insert((place, *oid));
            if oids[..number].contains(oid) {
                wrong = Some(format!("{at} is asked for {oid:?} twice in one request of {name:?}"));
            } else if !first && !again.contains(oid) {
                wrong =
                    Some(format!("P5: {at} is asked for {oid:?} twice in one pass of {name:?}"));
            } else if here.get(oid).is_some_and(|seq| *seq < pass.look.1) {
                wrong = Some(format!("P3: {at} is asked for {oid:?} of {name:?}, which is here"));
            } else if !pass.wants.iter().any(|(all, at)| all.contains(oid) && at.contains(&place)) {
                wrong = Some(format!("P14: {at} may not be asked for {oid:?} of {name:?}"));
            }
        }
        if oids.is_empty() {
            wrong = Some(format!("{at} is asked for nothing of {name:?}"));
        }
        if overlaps || too_many {
            wrong = Some(format!("P13: too many requests in one pass of {name:?}"));
        }
        self.on += 1;
        if self.on > slots {
            wrong = Some(format!("P13: {} requests at once", self.on));
        }
        let stamp = now.saturating_sub(LEAVE_GRACE).max(looking);
        let limits = self.limits(host, repo);
        let seen = &mut self.hosts[host];
        let place = seen.starts.partition_point(|start| *start <= stamp);
        seen.starts.insert(place, stamp);
        seen.on.push(repo);
        if let Some(wrong) = wrong.or(limits) {
            self.wrong(|| wrong);
        }
    }

    /// P11: what the host would see with one more request now.
    fn limits(&mut self, host: usize, repo: usize) -> Option<String> {
        let Rules { concurrent, per_window, window_secs, .. } = self.rules;
        let (now, window) = (self.now, window_secs * 1_000);
        let seen = &mut self.hosts[host];
        seen.forget(now, window);
        let name = host_name(host);
        if seen.on.contains(&repo) {
            return Some(format!("L3: {name} is asked twice at once for {:?}", repo_name(repo)));
        }
        if seen.on.len() >= concurrent as usize {
            return Some(format!("L2: {name} sees {} requests at once", seen.on.len() + 1));
        }
        (seen.starts.len() >= per_window as usize).then(|| {
            format!("L1: {name} sees {} requests in {window_secs} s", seen.starts.len() + 1)
        })
    }

    /// The host answered, and may have asked to be left alone.
    pub(crate) fn answered(
        &mut self,
        repo: usize,
        place: Place,
        began: u64,
        answer: Answer,
        again: &[Oid],
        asked: usize,
    ) {
        let (now, window) = (self.now, self.rules.window_secs * 1_000);
        let Place::At { host, copy } = place else { return };
        if answer == Answer::NothingSent {
            let starts = &mut self.hosts[host].starts;
            if let Some(at) = starts.iter().rposition(|start| *start <= began) {
                starts.remove(at);
            }
        }
        self.hosts[host].pauses.answered(now, window, repo, copy, began, answer);
        if !again.is_empty()
            && again.len() < asked
            && let Some(pass) = self.ids.get_mut(&repo).and_then(|id| id.pass.as_mut())
        {
            pass.again.insert(place, again.iter().copied().collect());
        }
    }

    /// The request is over, also when it was dropped.
    pub(crate) fn fetch_ended(&mut self, repo: usize, place: Place) {
        self.on = self.on.saturating_sub(1);
        if let Some(pass) = self.ids.get_mut(&repo).and_then(|id| id.pass.as_mut()) {
            pass.fetching = false;
        }
        if let Place::At { host, .. } = place {
            let on = &mut self.hosts[host].on;
            if let Some(at) = on.iter().position(|other| *other == repo) {
                on.swap_remove(at);
            }
        }
    }

    // What is checked when an instant is over.

    /// Every promise is kept, and whoever waits has a reason to.
    pub(crate) fn check(&mut self) {
        self.ids.retain(|_, id| !id.is_forgotten());
        let repos: Vec<usize> = self.ids.keys().copied().collect();
        for repo in repos {
            let id = &self.ids[&repo];
            match &id.pass {
                None => self.check_promises(repo),
                Some(pass) if id.calls == 0 && !pass.fetching => self.check_wait(repo),
                Some(_) => {}
            }
        }
    }

    /// D4, D7, P15: what was asked for begins in time.
    fn check_promises(&mut self, repo: usize) {
        let id = &self.ids[&repo];
        let next = id.last.as_ref().and_then(|last| last.next).map(|(next, _)| next);
        let Some(due) = id.requests.iter().map(|request| request.latest).chain(next).min() else {
            return;
        };
        let free = id.last.as_ref().map_or(0, |last| last.ended);
        if self.now > due.max(free) + GAP {
            let name = repo_name(repo);
            self.wrong(|| {
                format!("D4: no pass of {name:?} has begun, and it was due at {}", Secs(due))
            });
        }
    }

    /// P5, L6: a pass that is on, and neither looks nor asks, waits for leave. Somebody has to be in its way.
    fn check_wait(&mut self, repo: usize) {
        let pass = self.ids[&repo].pass.as_ref().expect("the caller looked");
        let name = repo_name(repo);
        let word_at = self.ids[&repo].word_at;
        if word_at > pass.looking && self.now > word_at + LOOK_GAP {
            return self.wrong(|| {
                format!("P2: the pass of {name:?} waits, and does not look at what is new")
            });
        }
        let open = pass.open();
        if open.is_empty() {
            return self
                .wrong(|| format!("P5: the pass of {name:?} goes on, and has nothing to ask"));
        }
        if self.on >= self.rules.slots || pass.wants.len() > self.rules.wants_per_look {
            return;
        }
        let look = pass.look.0;
        let free = open.into_iter().find(|&place| {
            let Place::At { host, .. } = place else { return false };
            self.has_room(host) && !self.is_taken(host) && !self.is_excused(place, repo, look)
        });
        if let Some(place) = free {
            let place = describe(place);
            self.wrong(|| format!("L6: {name:?} waits, and {place} has room"));
        }
    }

    /// Whether somebody may have a permit of the host in hand and looks at what to ask.
    fn is_taken(&self, host: usize) -> bool {
        self.ids.values().any(|id| {
            let looks = |pass: &&PassSeen| id.calls > 0 && self.now <= pass.looking + LEAVE_GRACE;
            let on = |place: Place| matches!(place, Place::At { host: other, .. } if other == host);
            id.pass.as_ref().filter(looks).is_some_and(|pass| pass.open().into_iter().any(on))
        })
    }

    fn has_room(&mut self, host: usize) -> bool {
        let Rules { concurrent, per_window, window_secs, .. } = self.rules;
        let seen = &mut self.hosts[host];
        seen.forget(self.now, window_secs * 1_000);
        seen.on.len() < concurrent as usize && seen.starts.len() < per_window as usize
    }

    /// Whether the host's own answers may have kept `repo` from asking there at some time since then.
    fn is_excused(&self, place: Place, repo: usize, since: u64) -> bool {
        match place {
            Place::At { host, copy } => self.hosts[host].pauses.may_pause(repo, copy, since),
            Place::Ours => true,
        }
    }

    /// Least and most identifiers that the engine may say are queued.
    pub(crate) fn queued(&self) -> (usize, usize) {
        let (mut least, mut most) = (0, 0);
        for id in self.ids.values() {
            let next = id.last.as_ref().is_some_and(|last| last.next.is_some());
            let surely = id.pass.is_some() || next || !id.requests.is_empty();
            least += usize::from(surely);
            most += usize::from(surely || id.maybe.is_some());
        }
        (least, most)
    }

    /// How many identifiers may be queued.
    pub(crate) fn capacity(&self) -> usize {
        self.rules.queue
    }

    pub(crate) fn is_queued(&self, repo: usize) -> bool {
        let next = |last: &Last| last.next.is_some();
        self.ids.get(&repo).is_some_and(|id| {
            id.pass.is_some() || !id.requests.is_empty() || id.last.as_ref().is_some_and(next)
        })
    }
}

impl IdSeen {
    /// Whether nothing is known of it that matters: neither waits nor runs.
    fn is_forgotten(&self) -> bool {
        let next = self.last.as_ref().is_some_and(|last| last.next.is_some());
        let waits = next || self.maybe.is_some() || !self.requests.is_empty();
        !waits && self.pass.is_none() && self.calls == 0
    }
}

impl PassSeen {
    /// The places where something may be asked that was missing at the last look and was not asked there.
    fn open(&self) -> Vec<Place> {
        let mut open = Vec::new();
        for (oids, places) in &self.wants {
            for place in places.iter().filter(|place| **place != Place::Ours) {
                let may = |oid: &&Oid| {
                    let again = self.again.get(place).is_some_and(|again| again.contains(oid));
                    self.missing.contains(oid) && (again || !self.asked.contains(&(*place, **oid)))
                };
                if oids.iter().find(may).is_some() && !open.contains(place) {
                    open.push(*place);
                }
            }
        }
        open
    }
}

impl HostSeen {
    fn forget(&mut self, now: u64, window: u64) {
        while self.starts.front().is_some_and(|start| start + window <= now) {
            self.starts.pop_front();
        }
    }
}

/// How a host answered, as far as it matters for leaving it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// In any way that asks for nothing.
    Well,
    /// Come back in so many milliseconds.
    ComeBack(u64),
    /// There is no such name.
    Nameless,
    NothingSent,
}

/// D7: 20, 40, 80, 120, 120, ... seconds.
fn backoff(attempt: u32) -> u64 {
    match attempt {
        0 | 1 => 20_000,
        2 => 40_000,
        3 => 80_000,
        _ => 120_000,
    }
}

fn millis(wait: std::time::Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

fn describe(place: Place) -> String {
    match place {
        Place::At { host, copy } => format!("{} place {copy}", host_name(host)),
        Place::Ours => "our own service".to_owned(),
    }
}
