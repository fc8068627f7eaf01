use std::sync::Arc;

use nostr::event::EventId;
use purgatory_sync::Identifier;

use super::{
    config::StoreConfig,
    held::Held,
    placeholders::{Placeholder, Placeholders},
    purgatory::{Entry, Inserted, Purgatory},
    record::{Record, Replay},
    remembered::Remembered,
};
use crate::nip34::GitEvent;

/// All that the store keeps in memory, and the changes of it that are not in the journal yet.
///
/// Every change of what has to be durable is made by a method here, which also writes its record:
/// memory and journal cannot differ.
pub(super) struct Shelf {
    purgatory: Purgatory,
    remembered: Remembered,
    placeholders: Placeholders,
    outbox: Option<Outbox>,
}

/// Lines that wait for the journal.
#[derive(Default)]
struct Outbox {
    lines: String,
    /// How many lines there were ever.
    written: u64,
}

/// Everything that has to be in a new journal.
pub(super) struct Snapshot {
    entries: Vec<Entry>,
    remembered: Vec<(EventId, u64)>,
    placeholders: Vec<(EventId, Placeholder)>,
}

impl Shelf {
    /// An empty one. Without a journal nothing is written.
    pub(super) fn new(has_journal: bool) -> Self {
        Self {
            purgatory: Purgatory::default(),
            remembered: Remembered::default(),
            placeholders: Placeholders::default(),
            outbox: has_journal.then(Outbox::default),
        }
    }

    pub(super) fn purgatory(&self) -> &Purgatory {
        &self.purgatory
    }

    pub(super) fn placeholder(&self, event: &EventId) -> Option<&Placeholder> {
        self.placeholders.find(event)
    }

    pub(super) fn placeholders(&self) -> &Placeholders {
        &self.placeholders
    }

    pub(super) fn is_remembered(&self, id: &EventId, now: u64) -> bool {
        self.remembered.contains(id, now)
    }

    /// Holds an event, in the place of an older one of the same author.
    pub(super) fn hold(&mut self, entry: Entry, config: &StoreConfig) -> Inserted {
        let held = Arc::clone(&entry.held);
        let (until, hunted) = (entry.deadline, entry.hunted);
        let inserted = self.purgatory.insert(entry, config);
        if let Inserted::New { replaced } = &inserted {
            // In this order: a kill between the two lines must not cost both events.
            self.note(&Record::Held { until, hunted, json: &held.json });
            if let Some(replaced) = replaced {
                self.note(&Record::Gone(replaced.held.id));
            }
        }
        inserted
    }

    pub(super) fn let_go(&mut self, id: &EventId) -> Option<Entry> {
        let entry = self.purgatory.remove(id)?;
        self.note(&Record::Gone(*id));
        Some(entry)
    }

    pub(super) fn extend(&mut self, id: &EventId, until: u64) {
        if self.purgatory.extend(id, until) {
            self.note(&Record::Extended(*id, until));
        }
    }

    pub(super) fn mark_hunted(&mut self, identifier: &Identifier) {
        if self.purgatory.mark_hunted(identifier) {
            self.note(&Record::Hunted(identifier));
        }
    }

    /// Why an event stayed. Not durable: the next release says it again.
    pub(super) fn set_trouble(&mut self, id: &EventId, trouble: Option<Box<str>>) {
        self.purgatory.set_trouble(id, trouble);
    }

    pub(super) fn remember(&mut self, id: EventId, until: u64, most: usize) {
        for gone in self.remembered.insert(id, until, most) {
            self.note(&Record::Forgotten(gone));
        }
        self.note(&Record::GivenUp(id, until));
    }

    pub(super) fn forget(&mut self, id: &EventId) {
        if self.remembered.remove(id) {
            self.note(&Record::Forgotten(*id));
        }
    }

    pub(super) fn forget_expired(&mut self, now: u64) {
        while let Some(id) = self.remembered.pop_expired(now) {
            self.note(&Record::Forgotten(id));
        }
    }

    pub(super) fn place(&mut self, event: EventId, placeholder: Placeholder) {
        self.note(&Record::Placeholder(event, &placeholder));
        self.placeholders.insert(event, placeholder);
    }

    pub(super) fn fill(&mut self, event: &EventId) -> Option<Placeholder> {
        let placeholder = self.placeholders.remove(event)?;
        self.note(&Record::Filled(*event));
        Some(placeholder)
    }

    /// The event of a placeholder came: it has done its work, or what it stands for is not what the event says and
    /// has to go. Says whether it fits.
    pub(super) fn meet(&mut self, held: &Held) -> bool {
        match self.placeholders.find(&held.id) {
            Some(it) if it.fits(held) => self.fill(&held.id).is_some(),
            Some(_) => {
                self.give_back(&held.id);
                false
            }
            None => false,
        }
    }

    /// The data of a placeholder goes before its time.
    pub(super) fn give_back(&mut self, event: &EventId) {
        if let Some(due) = self.placeholders.make_due(event).cloned() {
            self.note(&Record::Placeholder(*event, &due));
        }
    }

    pub(super) fn expired_placeholders(&self, now: u64) -> Vec<(EventId, Placeholder)> {
        self.placeholders.expired(now)
    }

    /// Gives what is held without a deadline one, if the settings say so now.
    pub(super) fn give_deadlines(&mut self, now: u64, config: &StoreConfig) {
        if config.hold_for.is_some() {
            self.purgatory.give_deadlines(config.deadline(now));
        }
    }

    /// When the next held event or placeholder goes, in seconds since 1970.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        let deadlines = [self.purgatory.next_deadline(), self.placeholders.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    fn note(&mut self, record: &Record<'_>) {
        if let Some(outbox) = &mut self.outbox {
            record.write(&mut outbox.lines);
            outbox.written += 1;
        }
    }

    /// How many lines there were ever.
    pub(super) fn written(&self) -> u64 {
        self.outbox.as_ref().map_or(0, |outbox| outbox.written)
    }

    /// The lines that wait, which do not wait any more.
    pub(super) fn take_lines(&mut self) -> String {
        self.outbox.as_mut().map(|outbox| std::mem::take(&mut outbox.lines)).unwrap_or_default()
    }

    /// About how many bytes a journal of all this has.
    pub(super) fn live_bytes(&self) -> usize {
        const LINE: usize = 128;
        let lines = self.purgatory.len() + self.remembered.len() + 2 * self.placeholders.len();
        self.purgatory.bytes() + LINE * lines
    }

    /// All that is here. What waits for the journal is in it, and does not wait any more.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        self.take_lines();
        let placeholders = self.placeholders.all().map(|(event, it)| (*event, it.clone()));
        Snapshot {
            entries: self.purgatory.all().cloned().collect(),
            remembered: self.remembered.all().map(|(id, until)| (*id, *until)).collect(),
            placeholders: placeholders.collect(),
        }
    }

    /// Does again what a line of the journal says. Says whether it could be understood.
    pub(super) fn replay(&mut self, replay: Replay, config: &StoreConfig) -> bool {
        match replay {
            Replay::Held { until, hunted, event } => {
                let held = GitEvent::read(&event).ok().and_then(|read| Held::new(&event, read));
                let Some(held) = held else { return false };
                let mut entry = Entry::new(Arc::new(held), until);
                entry.hunted = hunted;
                self.purgatory.insert(entry, config);
            }
            Replay::Gone(id) => drop(self.purgatory.remove(&id)),
            Replay::Extended(id, until) => drop(self.purgatory.extend(&id, until)),
            Replay::Hunted(identifier) => drop(self.purgatory.mark_hunted(&identifier)),
            Replay::GivenUp(id, until) => {
                self.remembered.insert(id, until, config.max_remembered);
            }
            Replay::Forgotten(id) => drop(self.remembered.remove(&id)),
            Replay::Placeholder(event, placeholder) => self.placeholders.insert(event, placeholder),
            Replay::Filled(event) => drop(self.placeholders.remove(&event)),
        }
        true
    }
}

impl Snapshot {
    /// Its lines, in pieces of about a megabyte.
    pub(super) fn write(
        &self,
        mut to: impl FnMut(&str) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        const PIECE: usize = 1 << 20;
        let held = self.entries.iter().map(|it| Record::Held {
            until: it.deadline,
            hunted: it.hunted,
            json: &it.held.json,
        });
        let given_up = self.remembered.iter().map(|(id, until)| Record::GivenUp(*id, *until));
        let placed = self.placeholders.iter().map(|(event, it)| Record::Placeholder(*event, it));
        let mut piece = String::new();
        for record in held.chain(given_up).chain(placed) {
            record.write(&mut piece);
            if piece.len() > PIECE {
                to(&piece)?;
                piece.clear();
            }
        }
        to(&piece)
    }
}
