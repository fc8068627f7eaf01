use std::collections::{BTreeSet, HashMap};

use nostr::event::EventId;
use purgatory_sync::Oid;

use super::held::{Body, Held};
use crate::{RepositoryId, nip34::Proposal};

/// Data that came before its event: a commit that was pushed for a pull request nobody has seen yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placeholder {
    /// Where it was pushed to.
    pub repository: RepositoryId,
    /// The commit.
    pub tip: Oid,
    /// When it goes, in seconds since 1970.
    pub until: u64,
}

impl Placeholder {
    /// Of one whose data has to go at once.
    const DUE: u64 = 0;

    /// Whether it is what `event` says: that commit, in a repository that it names.
    pub(super) fn fits(&self, event: &Held) -> bool {
        matches!(&event.body, Body::Proposal(proposal) if self.fits_proposal(proposal))
    }

    pub(super) fn fits_proposal(&self, proposal: &Proposal) -> bool {
        proposal.tip == self.tip && proposal.repositories.contains(&self.repository)
    }
}

/// The placeholders, found by event and by deadline.
#[derive(Default)]
pub(super) struct Placeholders {
    by_event: HashMap<EventId, Placeholder>,
    deadlines: BTreeSet<(u64, EventId)>,
}

/// How many placeholders a repository has, and the newest of them.
pub(super) struct OfRepository {
    pub(super) repository: RepositoryId,
    pub(super) count: usize,
    pub(super) newest: EventId,
}

impl Placeholders {
    /// Puts a placeholder in the place of an earlier one of the same event.
    pub(super) fn insert(&mut self, event: EventId, placeholder: Placeholder) {
        self.remove(&event);
        self.deadlines.insert((placeholder.until, event));
        self.by_event.insert(event, placeholder);
    }

    pub(super) fn remove(&mut self, event: &EventId) -> Option<Placeholder> {
        let placeholder = self.by_event.remove(event)?;
        self.deadlines.remove(&(placeholder.until, *event));
        Some(placeholder)
    }

    pub(super) fn find(&self, event: &EventId) -> Option<&Placeholder> {
        self.by_event.get(event)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&EventId, &Placeholder)> {
        self.by_event.iter()
    }

    /// Marks it as one whose data has to go. Gives what it is from now on, if that is new.
    pub(super) fn make_due(&mut self, event: &EventId) -> Option<&Placeholder> {
        let before = self.by_event.get(event).filter(|it| it.until != Placeholder::DUE)?;
        let due = Placeholder { until: Placeholder::DUE, ..before.clone() };
        self.insert(*event, due);
        self.by_event.get(event)
    }

    pub(super) fn len(&self) -> usize {
        self.by_event.len()
    }

    /// How many wait only for their data to go.
    pub(super) fn due(&self) -> usize {
        let end = (Placeholder::DUE + 1, EventId::from_byte_array([0; 32]));
        self.deadlines.range(..end).count()
    }

    /// The repositories of those that are not due, the one with the most first.
    pub(super) fn by_repository(&self) -> Vec<OfRepository> {
        let mut counts = HashMap::<&RepositoryId, (usize, (u64, EventId))>::new();
        let alive = self.by_event.iter().filter(|(_, it)| it.until != Placeholder::DUE);
        for (event, it) in alive {
            let (count, newest) = counts.entry(&it.repository).or_insert((0, (0, *event)));
            *count += 1;
            *newest = (*newest).max((it.until, *event));
        }
        let of = |(repository, (count, (_, newest))): (&RepositoryId, _)| OfRepository {
            repository: repository.clone(),
            count,
            newest,
        };
        let mut all: Vec<_> = counts.into_iter().map(of).collect();
        all.sort_unstable_by_key(|it| std::cmp::Reverse((it.count, it.newest)));
        all
    }

    pub(super) fn expired(&self, now: u64) -> Vec<(EventId, Placeholder)> {
        let expired = self.deadlines.iter().take_while(|(until, _)| *until <= now);
        expired.filter_map(|(_, event)| Some((*event, self.find(event)?.clone()))).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(until, _)| *until)
    }
}
