use std::sync::Arc;

use nostr::{
    event::{Event, EventId, Kind},
    key::PublicKey,
};
use purgatory_sync::{Identifier, Oid};

use super::version::Version;
use crate::nip34::{Announcement, GitEvent, Proposal};

/// One event that waits: what is looked at often, and the rest as its JSON.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: EventId,
    pub(super) author: PublicKey,
    pub(super) created_at: u64,
    pub(super) kind: Kind,
    pub(super) identifier: Identifier,
    pub(super) body: Body,
    pub(super) json: Box<str>,
}

/// What an event waits for and stands for.
#[derive(Debug)]
pub(super) enum Body {
    Announcement(Arc<Announcement>),
    State(Box<[Oid]>),
    Proposal(Box<Proposal>),
}

/// Of events with the same slot only one is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    Announcement(PublicKey),
    State(PublicKey),
    Proposal(EventId),
}

impl Slot {
    /// Whether both are of one kind.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Held {
    /// What is kept of an event, if it is of a kind that waits.
    pub(super) fn new(event: &Event, read: GitEvent) -> Option<Self> {
        let identifier = read.identifier()?.clone();
        let body = match read {
            GitEvent::Announcement(announcement) => Body::Announcement(Arc::new(announcement)),
            GitEvent::State(state) => Body::State(state.oids().collect()),
            GitEvent::PullRequest(pull_request) => Body::Proposal(Box::new(pull_request.proposal)),
            GitEvent::PullRequestUpdate(update) => Body::Proposal(Box::new(update.proposal)),
            GitEvent::Patch(_) | GitEvent::Other => return None,
        };
        Some(Self {
            id: event.id,
            author: event.pubkey,
            created_at: event.created_at.as_secs(),
            kind: event.kind,
            identifier,
            body,
            json: event.as_json().into_boxed_str(),
        })
    }

    pub(super) fn slot(&self) -> Slot {
        match self.body {
            Body::Announcement(_) => Slot::Announcement(self.author),
            Body::State(_) => Slot::State(self.author),
            Body::Proposal(_) => Slot::Proposal(self.id),
        }
    }

    pub(super) fn version(&self) -> Version {
        Version::new(self.created_at, self.id)
    }

    /// The objects it waits for.
    pub(super) fn oids(&self) -> &[Oid] {
        match &self.body {
            Body::Announcement(_) => &[],
            Body::State(oids) => oids,
            Body::Proposal(proposal) => std::slice::from_ref(&proposal.tip),
        }
    }

    pub(super) fn announcement(&self) -> Option<&Arc<Announcement>> {
        match &self.body {
            Body::Announcement(announcement) => Some(announcement),
            _ => None,
        }
    }

    /// An announcement alone is not counted as held.
    pub(super) fn counts(&self) -> bool {
        !matches!(self.body, Body::Announcement(_))
    }
}
