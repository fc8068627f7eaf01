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
    shares::Shares,
};

/// Everything that is held, found by identifier, by id and by deadline. It reads no clock and does no I/O.
#[derive(Default)]
pub(super) struct Purgatory {
    repositories: HashMap<Identifier, Repository>,
    places: HashMap<EventId, Place>,
    /// The ids of all, in no order: to draw some by chance.
    ids: Vec<EventId>,
    deadlines: BTreeSet<(u64, EventId)>,
    shares: Shares,
    /// The bytes of all events as JSON.
    bytes: usize,
}

/// Where a held event is found.
struct Place {
    identifier: Identifier,
    slot: Slot,
    /// In the list of all ids.
    at: usize,
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
        let place = Place { identifier: identifier.clone(), slot, at: self.ids.len() };
        self.places.insert(id, place);
        self.ids.push(id);
        self.deadlines.insert((entry.deadline, id));
        self.bytes += entry.held.json.len();
        self.shares.add(entry.held.author, id);
        let repository = self.repositories.entry(identifier).or_default();
        repository.counted += usize::from(entry.held.counts());
        let slot = entry.held.slot();
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
        let Place { identifier, slot, at } = self.places.remove(id)?;
        self.ids.swap_remove(at);
        if let Some(moved) = self.ids.get(at).and_then(|id| self.places.get_mut(id)) {
            moved.at = at;
        }
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
        self.shares.remove(entry.held.author, *id);
        Some(entry)
    }

    pub(super) fn contains(&self, id: &EventId) -> bool {
        self.places.contains_key(id)
    }

    pub(super) fn find(&self, id: &EventId) -> Option<&Entry> {
        let place = self.places.get(id)?;
        self.entry(&place.identifier, &place.slot)
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

    /// Who holds how much of it.
    pub(super) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// One of all: each is drawn by as many of the numbers as any other.
    pub(super) fn drawn(&self, number: u64) -> Option<&Entry> {
        let all = u64::try_from(self.ids.len()).ok()?;
        let at = usize::try_from(number.checked_rem(all)?).ok()?;
        self.find(&self.ids[at])
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
        let place = self.places.get(id)?;
        let repository = self.repositories.get_mut(&place.identifier)?;
        let at = repository.position(&place.slot).ok()?;
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
mod tests;
