use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use nostr::event::EventId;
use purgatory_sync::Identifier;

use super::{
    admission::Full,
    config::StoreConfig,
    held::{Held, Slot},
};

/// Everything that is held, found by identifier, by id and by deadline. It reads no clock and does no I/O.
#[derive(Default)]
pub(super) struct Purgatory {
    repositories: HashMap<Identifier, Repository>,
    places: HashMap<EventId, (Identifier, Slot)>,
    deadlines: BTreeSet<(u64, EventId)>,
    /// The bytes of all events as JSON.
    bytes: usize,
}

/// What is held of one identifier, sorted by slot: announcements, then states, then pull requests.
///
/// A sorted vector and no map: most identifiers hold two or three events, and there are many.
#[derive(Default)]
struct Repository {
    entries: Vec<Entry>,
    /// How many of the entries are states or pull requests.
    counted: usize,
}

/// A held event and what happened to it here.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) held: Arc<Held>,
    /// When it goes, in seconds since 1970. `u64::MAX` is never.
    pub(super) deadline: u64,
    /// Whether a fetch for its repository ended while it was held.
    pub(super) hunted: bool,
    /// Why it stayed although its objects were here.
    pub(super) trouble: Option<Box<str>>,
}

impl Entry {
    pub(super) fn new(held: Arc<Held>, deadline: u64) -> Self {
        Self { held, deadline, hunted: false, trouble: None }
    }
}

/// What became of an event that was to be held.
#[derive(Debug)]
pub(super) enum Inserted {
    /// It is held; this one of the same author is not any more.
    New { replaced: Option<Entry> },
    /// It was held already.
    Duplicate,
    /// A newer one of the same author is held.
    Superseded,
    /// There is no room.
    Full(Full, usize),
}

impl Purgatory {
    pub(super) fn insert(&mut self, entry: Entry, config: &StoreConfig) -> Inserted {
        let held = &entry.held;
        if self.places.contains_key(&held.id) {
            return Inserted::Duplicate;
        }
        let slot = held.slot();
        let replaced = match self.entry(&held.identifier, &slot) {
            Some(other) if other.held.version() > held.version() => return Inserted::Superseded,
            Some(other) => Some(other.held.id),
            None => None,
        };
        if replaced.is_none()
            && let Some((what, how_many)) = self.full(&held.identifier, &slot, config)
        {
            return Inserted::Full(what, how_many);
        }
        let replaced = replaced.and_then(|id| self.remove(&id));
        self.put(entry);
        Inserted::New { replaced }
    }

    fn put(&mut self, entry: Entry) {
        let (id, slot) = (entry.held.id, entry.held.slot());
        let identifier = entry.held.identifier.clone();
        self.places.insert(id, (identifier.clone(), slot));
        self.deadlines.insert((entry.deadline, id));
        self.bytes += entry.held.json.len();
        let repository = self.repositories.entry(identifier).or_default();
        repository.counted += usize::from(entry.held.counts());
        let at = repository.position(&slot).unwrap_or_else(|at| at);
        repository.entries.insert(at, entry);
    }

    fn full(&self, id: &Identifier, slot: &Slot, config: &StoreConfig) -> Option<(Full, usize)> {
        if self.places.len() >= config.max_held {
            return Some((Full::Events, self.places.len()));
        }
        let repository = self.repositories.get(id)?;
        let announcements = repository.announcements();
        let states = repository.states();
        let pull_requests = repository.entries.len() - announcements - states;
        let (what, how_many, most) = match slot {
            Slot::Announcement(_) => (Full::Announcements, announcements, config.max_announcements),
            Slot::State(_) => (Full::States, states, config.max_states),
            Slot::Proposal(_) => (Full::PullRequests, pull_requests, config.max_pull_requests),
        };
        (how_many >= most).then_some((what, how_many))
    }

    /// Lets an event go.
    pub(super) fn remove(&mut self, id: &EventId) -> Option<Entry> {
        let (identifier, slot) = self.places.remove(id)?;
        let repository = self.repositories.get_mut(&identifier)?;
        let at = repository.position(&slot).ok()?;
        let entry = repository.entries.remove(at);
        repository.counted -= usize::from(entry.held.counts());
        if repository.entries.is_empty() {
            self.repositories.remove(&identifier);
        } else if repository.entries.capacity() > 4 * repository.entries.len().max(4) {
            repository.entries.shrink_to_fit();
        }
        self.deadlines.remove(&(entry.deadline, *id));
        self.bytes -= entry.held.json.len();
        Some(entry)
    }

    pub(super) fn contains(&self, id: &EventId) -> bool {
        self.places.contains_key(id)
    }

    pub(super) fn find(&self, id: &EventId) -> Option<&Entry> {
        let (identifier, slot) = self.places.get(id)?;
        self.entry(identifier, slot)
    }

    fn entry(&self, identifier: &Identifier, slot: &Slot) -> Option<&Entry> {
        let repository = self.repositories.get(identifier)?;
        repository.position(slot).ok().map(|at| &repository.entries[at])
    }

    /// The event of this slot, if one is held.
    pub(super) fn in_slot(&self, identifier: &Identifier, slot: &Slot) -> Option<&Arc<Held>> {
        self.entry(identifier, slot).map(|entry| &entry.held)
    }

    /// What is held of an identifier.
    pub(super) fn entries(&self, identifier: &Identifier) -> &[Entry] {
        self.repositories.get(identifier).map_or(&[], |repository| &repository.entries)
    }

    /// How many states and pull requests of an identifier are held.
    pub(super) fn counted(&self, identifier: &Identifier) -> usize {
        self.repositories.get(identifier).map_or(0, |repository| repository.counted)
    }

    /// The identifiers of which a state or a pull request is held.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Identifier> {
        self.repositories.iter().filter(|(_, it)| it.counted > 0).map(|(identifier, _)| identifier)
    }

    /// The identifiers of which an announcement is held.
    pub(super) fn announced(&self) -> impl Iterator<Item = &Identifier> {
        let announced = self.repositories.iter().filter(|(_, it)| it.counted < it.entries.len());
        announced.map(|(identifier, _)| identifier)
    }

    /// Everything.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.repositories.values().flat_map(|repository| &repository.entries)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Remembers why an event stayed.
    pub(super) fn set_trouble(&mut self, id: &EventId, trouble: Option<Box<str>>) {
        if let Some(entry) = self.find_mut(id) {
            entry.trouble = trouble;
        }
    }

    fn find_mut(&mut self, id: &EventId) -> Option<&mut Entry> {
        let (identifier, slot) = self.places.get(id)?;
        let repository = self.repositories.get_mut(identifier)?;
        let at = repository.position(slot).ok()?;
        Some(&mut repository.entries[at])
    }

    /// The next event whose time is over.
    pub(super) fn next_expired(&self, now: u64) -> Option<&Entry> {
        let (deadline, id) = self.deadlines.first()?;
        if *deadline > now { None } else { self.find(id) }
    }

    /// When the next event goes, if any does.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline).filter(|at| *at != u64::MAX)
    }

    /// Gives an event more time, never less. Says whether that changed anything.
    pub(super) fn extend(&mut self, id: &EventId, deadline: u64) -> bool {
        let Some(entry) = self.find_mut(id) else { return false };
        if entry.deadline >= deadline {
            return false;
        }
        let before = std::mem::replace(&mut entry.deadline, deadline);
        self.deadlines.remove(&(before, *id));
        self.deadlines.insert((deadline, *id));
        true
    }

    /// Notes that a fetch for a repository ended: what is held of it was looked for. Says whether that
    /// was not known of all of it.
    pub(super) fn mark_hunted(&mut self, identifier: &Identifier) -> bool {
        let Some(repository) = self.repositories.get_mut(identifier) else { return false };
        let mut fresh = false;
        for entry in &mut repository.entries {
            fresh |= !std::mem::replace(&mut entry.hunted, true);
        }
        fresh
    }

    /// Gives a deadline to everything that has none.
    pub(super) fn give_deadlines(&mut self, deadline: u64) {
        let endless = self.deadlines.split_off(&(u64::MAX, EventId::from_byte_array([0; 32])));
        for (_, id) in endless {
            if let Some(entry) = self.find_mut(&id) {
                entry.deadline = deadline;
            }
            self.deadlines.insert((deadline, id));
        }
    }
}

impl Repository {
    fn position(&self, slot: &Slot) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.held.slot().cmp(slot))
    }

    fn announcements(&self) -> usize {
        self.entries.partition_point(|entry| matches!(entry.held.slot(), Slot::Announcement(_)))
    }

    fn states(&self) -> usize {
        self.entries.partition_point(|entry| !matches!(entry.held.slot(), Slot::Proposal(_)))
            - self.announcements()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        hint::black_box,
        time::{Duration, Instant},
    };

    use nostr::{
        event::{Event, Kind, Signature, Tag},
        key::PublicKey,
        types::Timestamp,
    };

    use super::*;
    use crate::nip34::GitEvent;

    /// A state that nobody has signed: what is looked up does not depend on it.
    fn state(number: u32, identifier: &str, created_at: u64) -> Entry {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        let tags = [
            vec!["d".to_owned(), identifier.to_owned()],
            vec!["refs/heads/main".to_owned(), format!("{number:040x}")],
        ];
        let event = Event::new(
            EventId::from_byte_array(bytes),
            PublicKey::from_byte_array(bytes),
            Timestamp::from_secs(created_at),
            Kind::RepoState,
            tags.map(|tag| Tag::parse(tag).expect("a tag with a name")),
            "",
            Signature::from_slice(&[1; 64]).expect("64 bytes"),
        );
        let read = GitEvent::read(&event).expect("a state");
        let held = Held::new(&event, read).expect("states are held");
        Entry::new(Arc::new(held), created_at)
    }

    /// `events` states of `identifiers` repositories.
    fn filled(events: u32, identifiers: u32) -> Purgatory {
        let mut purgatory = Purgatory::default();
        for number in 0..events {
            let identifier = format!("r{}", number % identifiers);
            let entry = state(number, &identifier, u64::from(number));
            purgatory.insert(entry, &StoreConfig::default());
        }
        purgatory
    }

    /// The time of the fastest of many rounds of what a look, an arrival and an expiry do.
    #[expect(clippy::disallowed_methods, reason = "a test of cost measures real time")]
    fn cost(purgatory: &mut Purgatory) -> Duration {
        const ROUND: u32 = 200;
        let extra: Vec<_> = (0..ROUND).map(|it| state(u32::MAX - it, "r5", 1 << 40)).collect();
        let identifier = Identifier::from("r5");
        let one = || {
            let started = Instant::now();
            for entry in &extra {
                let id = entry.held.id;
                black_box(purgatory.entries(&identifier).len());
                black_box(purgatory.next_expired(0).is_some());
                purgatory.insert(entry.clone(), &StoreConfig::default());
                black_box(purgatory.find(&id).is_some());
                purgatory.extend(&id, 1 << 41);
                purgatory.remove(&id);
            }
            started.elapsed()
        };
        std::iter::repeat_with(one).take(50).min().unwrap_or_default()
    }

    /// No look-up scans what is held: with 1,000 times as many events it costs about the same. A scan
    /// would cost 1,000 times as much; caches and the depth of trees are allowed 30 times.
    #[test]
    fn a_look_up_costs_the_same_with_100_000_held_as_with_100() {
        let few = cost(&mut filled(100, 10));
        let many = cost(&mut filled(100_000, 10_000));
        assert!(many < few * 30, "{few:?} with 100, {many:?} with 100,000");
    }

    /// What a naive list says, after any insertions and removals.
    #[test]
    fn indexes_agree_with_a_plain_list() {
        let config = StoreConfig { max_held: 40, max_states: 5, ..StoreConfig::default() };
        let mut purgatory = Purgatory::default();
        let mut list: Vec<Entry> = Vec::new();
        let mut random = 12345_u32;
        for _ in 0..5_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (number, at) = (random >> 8 & 63, u64::from(random >> 16 & 7));
            let identifier = format!("r{}", number % 12);
            let entry = state(number, &identifier, at);
            let known = list.iter().position(|it| it.held.id == entry.held.id);
            if random >> 30 == 0 {
                let removed = purgatory.remove(&entry.held.id);
                assert_eq!(removed.is_some(), known.is_some());
                known.map(|at| list.remove(at));
            } else {
                let siblings = list.iter().filter(|it| it.held.identifier == entry.held.identifier);
                let room = list.len() < 40 && siblings.count() < 5;
                match purgatory.insert(entry.clone(), &config) {
                    Inserted::Duplicate => assert!(known.is_some()),
                    Inserted::Full(..) => assert!(known.is_none() && !room),
                    Inserted::New { replaced: None } => {
                        assert!(known.is_none() && room);
                        list.push(entry);
                    }
                    other => panic!("each number is an author of its own: {other:?}"),
                }
            }
            assert_eq!(purgatory.len(), list.len());
            assert_eq!(purgatory.bytes(), list.iter().map(|it| it.held.json.len()).sum::<usize>());
            assert_eq!(purgatory.next_deadline(), list.iter().map(|it| it.deadline).min());
            let waiting = list.iter().map(|it| it.held.identifier.clone());
            let waiting: BTreeSet<_> = waiting.collect();
            assert_eq!(purgatory.waiting().cloned().collect::<BTreeSet<_>>(), waiting);
        }
        assert!(list.iter().all(|it| purgatory.find(&it.held.id).is_some()));
    }
}
