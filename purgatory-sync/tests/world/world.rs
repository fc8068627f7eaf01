//! What is true: which objects are where, which events are held, how each host feels. The ports of the engine
//! lead here.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use purgatory_sync::{CloneUrl, Identifier, Needs, Oid, Origin, Target, Want, testing};
use tokio::{sync::Notify, time::Instant};

use crate::{
    faults::Fault,
    ledger::Ledger,
    story::{Call, Event, Mood, Place, Story, Trouble, host_name, repo_name},
};

/// The name of our own service.
pub(crate) const OURS: &str = "git.ours.example";

pub(crate) struct World {
    state: Mutex<State>,
    /// Something happened: this instant is to be checked when it is over.
    pub(crate) stirred: Notify,
    /// The service dies here and now.
    pub(crate) dying: Notify,
    /// What is wrong on purpose.
    pub(crate) fault: Option<Fault>,
    /// For a store that does not let go of its lock.
    pub(crate) lock: tokio::sync::Mutex<usize>,
}

pub(crate) struct State {
    pub(crate) ledger: Ledger,
    hosts: Vec<crate::story::Host>,
    announced: BTreeMap<usize, Vec<Vec<Place>>>,
    names: HashMap<String, usize>,
    urls: HashMap<(Place, usize), CloneUrl>,
    places: HashMap<String, Place>,
    held: BTreeMap<usize, Vec<Held>>,
    saved: BTreeSet<u64>,
    next_event: u64,
    /// What is here, and since when.
    here: HashMap<Oid, u64>,
    /// What is here without what it reaches.
    shallow: HashSet<Oid>,
    /// In whose pass a port has panicked.
    panicked: HashSet<usize>,
    troubles: Vec<(Call, Trouble)>,
    crash_in: Option<u32>,
    life: Option<(Instant, u64)>,
    /// How long an event may wait while its data can be had.
    patience: u64,
    /// By event: since when all of it can be had without a break.
    reachable: HashMap<u64, u64>,
    pub(crate) longest_wait: u64,
}

/// An event that is held.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) number: u64,
    owner: usize,
    oids: Vec<Oid>,
    own: Option<Vec<Place>>,
}

/// What a host does with a request.
pub(crate) struct Manner {
    pub(crate) mood: Mood,
    pub(crate) latency: Duration,
    pub(crate) place: Place,
    pub(crate) repo: usize,
    pub(crate) began: u64,
}

impl World {
    pub(crate) fn new(story: &Story, patience: u64, fault: Option<Fault>) -> Arc<Self> {
        let ledger = Ledger::new(story.rules.clone(), story.hosts.len());
        let mut state = State {
            ledger,
            hosts: story.hosts.clone(),
            announced: BTreeMap::new(),
            names: HashMap::new(),
            urls: HashMap::new(),
            places: HashMap::new(),
            held: BTreeMap::new(),
            saved: BTreeSet::new(),
            next_event: 0,
            here: HashMap::new(),
            shallow: HashSet::new(),
            panicked: HashSet::new(),
            troubles: Vec::new(),
            crash_in: None,
            life: None,
            patience,
            reachable: HashMap::new(),
            longest_wait: 0,
        };
        for (number, repo) in story.repos.iter().enumerate() {
            state.add_repo(number, repo.owners.clone());
        }
        let (state, lock) = (Mutex::new(state), tokio::sync::Mutex::new(0));
        Arc::new(Self { state, stirred: Notify::new(), dying: Notify::new(), fault, lock })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.read_clock();
        state
    }

    /// As [`state`](Self::state), where no clock may be read: while a runtime is taken down.
    pub(crate) fn state_as_it_was(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened: says so to whoever checks.
    pub(crate) fn stir(&self) {
        self.stirred.notify_one();
    }

    /// One step of the service, at which it may die.
    pub(crate) async fn step(&self) {
        let dies = {
            let mut state = self.state();
            let dies = state.crash_in == Some(0);
            state.crash_in = state.crash_in.and_then(|steps| steps.checked_sub(1));
            dies
        };
        if dies {
            self.dying.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

impl State {
    fn read_clock(&mut self) {
        if let Some((began, before)) = self.life {
            let since = Instant::now().saturating_duration_since(began);
            self.ledger.now = before + u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.ledger.now
    }

    /// A service begins to live, on a clock that goes on where the last one stopped.
    pub(crate) fn life_begins(&mut self) {
        self.life = Some((Instant::now(), self.ledger.now));
    }

    pub(crate) fn life_is_over(&mut self) {
        self.life = None;
        self.crash_in = None;
        self.ledger.life_over(false);
    }

    // What happens in the world.

    pub(crate) fn add_repo(&mut self, number: usize, owners: Vec<Vec<Place>>) {
        self.names.insert(repo_name(number), number);
        for place in owners.iter().flatten() {
            self.url(*place, number);
        }
        self.announced.insert(number, owners);
    }

    pub(crate) fn hold(&mut self, event: &Event) {
        for place in event.own.iter().flatten() {
            self.url(*place, event.repo);
        }
        let number = self.next_event;
        self.next_event += 1;
        let oids = event.oids.iter().map(|oid| object(event.repo, *oid)).collect();
        let held = Held { number, owner: event.owner, oids, own: event.own.clone() };
        self.held.entry(event.repo).or_default().push(held);
    }

    pub(crate) fn push(&mut self, repo: usize, oids: &[u8]) {
        self.bring(oids.iter().map(|oid| object(repo, *oid)));
    }

    pub(crate) fn bring(&mut self, oids: impl IntoIterator<Item = Oid>) {
        self.ledger.seq += 1;
        let seq = self.ledger.seq;
        for oid in oids {
            self.here.entry(oid).or_insert(seq);
        }
    }

    pub(crate) fn announce(&mut self, repo: usize, owner: usize, places: Vec<Place>) {
        for place in &places {
            self.url(*place, repo);
        }
        self.announced.entry(repo).or_default()[owner] = places;
    }

    pub(crate) fn expire(&mut self, repo: usize) -> bool {
        let Some(events) = self.held.get_mut(&repo).filter(|events| !events.is_empty()) else {
            return false;
        };
        let gone = events.remove(0);
        if events.is_empty() {
            self.held.remove(&repo);
        }
        self.reachable.remove(&gone.number);
        true
    }

    pub(crate) fn upload(&mut self, host: usize, copy: usize, oid: u8) {
        self.hosts[host].has[copy] |= 1 << oid;
    }

    pub(crate) fn trouble(&mut self, call: Call, trouble: Trouble) {
        self.troubles.push((call, trouble));
    }

    pub(crate) fn crash_in(&mut self, steps: u32) {
        self.crash_in = Some(steps);
    }

    /// Nothing goes wrong any more.
    pub(crate) fn calm_down(&mut self) {
        self.troubles.clear();
        self.crash_in = None;
    }

    // What the ports ask.

    pub(crate) fn repo(&self, id: &Identifier) -> usize {
        self.names.get(id.as_str()).copied().unwrap_or(usize::MAX)
    }

    pub(crate) fn repos_held(&self) -> Vec<usize> {
        self.held.keys().copied().collect()
    }

    pub(crate) fn next_trouble(&mut self, call: Call) -> Option<Trouble> {
        let at = self.troubles.iter().position(|(of, _)| *of == call)?;
        Some(self.troubles.remove(at).1)
    }

    pub(crate) fn needs(&mut self, repo: usize) -> Needs {
        let events = self.held.get(&repo).cloned().unwrap_or_default();
        let mut states: BTreeMap<usize, Vec<Oid>> = BTreeMap::new();
        let mut wants = Vec::new();
        for event in &events {
            match &event.own {
                None => states.entry(event.owner).or_default().extend(&event.oids),
                Some(own) => {
                    wants.push(self.want(repo, event.owner, event.oids.clone(), Some(own)));
                }
            }
        }
        for (owner, oids) in states {
            wants.push(self.want(repo, owner, oids, None));
        }
        let seen = wants.iter().map(|want| {
            let urls = want.urls.iter().chain(&want.own_urls);
            (want.oids.clone(), urls.map(|url| self.place(url)).collect())
        });
        let seen = seen.collect();
        self.ledger.looked(repo, events.len(), seen, &self.here);
        Needs { held: events.len(), wants }
    }

    fn want(
        &mut self,
        repo: usize,
        owner: usize,
        oids: Vec<Oid>,
        own: Option<&Vec<Place>>,
    ) -> Want {
        let announced = self.announced.get(&repo).and_then(|owners| owners.get(owner));
        let places = announced.cloned().unwrap_or_default();
        let mut url = |place: &Place| self.url(*place, repo);
        Want {
            oids,
            urls: places.iter().map(&mut url).collect(),
            own_urls: own.into_iter().flatten().map(&mut url).collect(),
            origin: if own.is_some() { Origin::Contributor } else { Origin::Owner },
            target: Target::new(format!("owner {owner}")),
        }
    }

    pub(crate) fn missing(&self, oids: &[Oid]) -> Vec<Oid> {
        let here = |oid: &&Oid| self.here.contains_key(oid) || self.shallow.contains(oid);
        oids.iter().filter(|oid| !here(oid)).copied().collect()
    }

    /// Only the tips came.
    pub(crate) fn take_shallow(&mut self, oids: &[Oid]) {
        self.shallow.extend(oids);
    }

    pub(crate) fn panics(&mut self, repo: usize) {
        self.panicked.insert(repo);
    }

    /// Whether a port has panicked in the pass that ends now.
    pub(crate) fn took_panic(&mut self, id: &Identifier) -> bool {
        let repo = self.repo(id);
        self.panicked.remove(&repo)
    }

    /// Which held events are complete, of those for which all objects are said to be here.
    pub(crate) fn complete(&mut self, repo: usize, here: &[Oid], answers: bool) -> Vec<u64> {
        let events = self.held.get(&repo).cloned().unwrap_or_default();
        let (going, staying): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| event.oids.iter().all(|oid| here.contains(oid)));
        let brings_nothing = answers && going.is_empty();
        let stays = brings_nothing.then(|| staying.iter().map(|event| event.number).collect());
        self.ledger.releases(repo, here, &self.here, stays);
        going.into_iter().map(|event| event.number).collect()
    }

    pub(crate) fn save(&mut self, event: u64) {
        self.saved.insert(event);
    }

    /// The event leaves the store. It must have been saved.
    pub(crate) fn let_go(&mut self, repo: usize, event: u64) {
        self.reachable.remove(&event);
        let Some(events) = self.held.get_mut(&repo) else { return };
        events.retain(|other| other.number != event);
        if events.is_empty() {
            self.held.remove(&repo);
        }
        if !self.saved.contains(&event) {
            self.ledger.wrong(|| format!("P8: event {event} goes and was not saved"));
        }
    }

    pub(crate) fn held_of(&self, repo: usize) -> usize {
        self.held.get(&repo).map_or(0, Vec::len)
    }

    /// A request arrives at a host.
    pub(crate) fn fetch_begins(&mut self, id: &Identifier, url: &CloneUrl, oids: &[Oid]) -> Manner {
        let (repo, place) = (self.repo(id), self.place(url));
        self.ledger.seq += 1;
        self.ledger.fetch_began(repo, place, oids, &self.here);
        let now = self.now();
        let (mood, latency_ms) = match place {
            Place::At { host, .. } => (self.hosts[host].mood_at(now), self.hosts[host].latency_ms),
            Place::Ours => (Mood::Gone, 0),
        };
        Manner { mood, latency: Duration::from_millis(latency_ms), place, repo, began: now }
    }

    /// Those of the objects that this place has.
    pub(crate) fn has(&self, place: Place, repo: usize, oids: &[Oid]) -> Vec<Oid> {
        let Place::At { host, copy } = place else { return Vec::new() };
        let bits = self.hosts[host].has[copy];
        let has = |oid: &Oid| {
            (0..crate::story::OBJECTS).any(|bit| bits >> bit & 1 == 1 && object(repo, bit) == *oid)
        };
        oids.iter().filter(|oid| has(oid)).copied().collect()
    }

    // What is checked when an instant is over.

    /// P8: what can be had is had in bounded time; and all that the ledger checks.
    pub(crate) fn check(&mut self, queued: usize) {
        self.ledger.check();
        let (least, most) = self.ledger.queued();
        if !(least..=most).contains(&queued) {
            self.ledger.wrong(|| {
                format!("P12: {queued} are said to be queued, and {least} to {most} are")
            });
        }
        let now = self.now();
        for repo in self.repos_held() {
            // Whoever is not in the queue while it is full is waited for by nobody: the bound is the bound.
            let shut_out = !self.ledger.is_queued(repo) && queued >= self.ledger.capacity();
            for event in self.held.get(&repo).cloned().unwrap_or_default() {
                if shut_out || !self.is_reachable(repo, &event, now) {
                    self.reachable.remove(&event.number);
                    continue;
                }
                let since = *self.reachable.entry(event.number).or_insert(now);
                self.longest_wait = self.longest_wait.max(now - since);
                if now - since > self.patience {
                    let (name, number) = (repo_name(repo), event.number);
                    self.ledger.wrong(|| {
                        format!("P8: event {number} of {name:?} is held, and for long it could have been released")
                    });
                }
            }
        }
    }

    /// Whether nothing that is held can be had.
    pub(crate) fn nothing_more_goes(&self) -> bool {
        self.reachable.is_empty()
    }

    fn is_reachable(&self, repo: usize, event: &Held, now: u64) -> bool {
        let announced = self.announced.get(&repo).and_then(|owners| owners.get(event.owner));
        let places = || announced.into_iter().flatten().chain(event.own.iter().flatten());
        event.oids.iter().all(|oid| {
            self.here.contains_key(oid)
                || places().any(|place| match place {
                    Place::At { host, .. } => {
                        let serves = self.hosts[*host].mood_at(now).serves();
                        serves && !self.has(*place, repo, std::slice::from_ref(oid)).is_empty()
                    }
                    Place::Ours => false,
                })
        })
    }

    // Names.

    fn url(&mut self, place: Place, repo: usize) -> CloneUrl {
        if let Some(url) = self.urls.get(&(place, repo)) {
            return url.clone();
        }
        let text = match place {
            Place::At { host, copy: 0 } => format!("https://{}/{repo}/0.git", host_name(host)),
            Place::At { host, copy } => format!("http://{}/{repo}/{copy}.git", host_name(host)),
            Place::Ours => format!("https://{OURS}/{repo}.git"),
        };
        let url = testing::url(&text);
        self.urls.insert((place, repo), url.clone());
        self.places.insert(url.as_str().to_owned(), place);
        url
    }

    /// Where a URL leads, in whatever spelling: more slashes do not make another place.
    fn place(&self, url: &CloneUrl) -> Place {
        if let Some(place) = self.places.get(url.as_str()) {
            return *place;
        }
        let (scheme, rest) = url.as_str().split_once("//").expect("a clone URL is absolute");
        let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
        let place = self.places.get(&format!("{scheme}//{}", parts.join("/")));
        *place.expect("only announced URLs are known")
    }
}

impl crate::story::Host {
    fn mood_at(&self, now: u64) -> Mood {
        let past = self.moods.iter().rev().find(|(at, _)| *at <= now);
        past.map_or(Mood::Fine, |(_, mood)| *mood)
    }
}

impl Mood {
    /// Whether a host in this mood gives what it has, sooner or later.
    fn serves(self) -> bool {
        matches!(self, Self::Fine | Self::Slow(_) | Self::Piecemeal)
    }
}

/// The object of this number in a repository.
pub(crate) fn object(repo: usize, number: u8) -> Oid {
    testing::oid(repo as u64 * 16 + u64::from(number) + 1)
}
