use std::fmt;

use nostr::event::{EventId, Kind};
use purgatory_sync::{Identifier, Oid};

use super::{
    held::{Body, Held},
    look::Look,
    purgatory::Entry,
};

/// A state, a pull request or an update that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldEvent {
    /// The event.
    pub id: EventId,
    /// Its kind.
    pub kind: Kind,
    /// The repository's name.
    pub identifier: Identifier,
    /// The objects it waits for, here or not: [`GitFetcher::missing`](purgatory_sync::GitFetcher::missing)
    /// says which are not.
    pub oids: Vec<Oid>,
    /// Why it waits, if it is not for its objects alone.
    pub reason: Option<HeldReason>,
}

/// Why an event waits though its objects may be here. The text is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldReason {
    /// No announcement of the repository is known.
    NotAnnounced,
    /// Announcements are known, and none of them gives its author a say.
    NoAuthority,
    /// It waits for no object, and goes with or after its announcement, which waits itself.
    AnnouncementWaits,
    /// Its objects were here and it could not be released.
    Trouble(String),
}

impl fmt::Display for HeldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAnnounced => "no announcement of its repository is known",
            Self::NoAuthority => "no announcement gives its author authority over the repository",
            Self::AnnouncementWaits => "it goes after its announcement, which waits for data",
            Self::Trouble(trouble) => trouble,
        })
    }
}

/// The states, pull requests and updates of a look, oldest first.
pub(super) fn listing(look: &Look) -> Vec<HeldEvent> {
    let authority = look.authority();
    let reason = |entry: &Entry| {
        let held = &entry.held;
        let rightful = match &held.body {
            Body::Proposal(it) => it.repositories.iter().any(|it| authority.knows(&it.owner)),
            _ => !authority.owners_for(&held.author).is_empty(),
        };
        if let Some(trouble) = &entry.trouble {
            Some(HeldReason::Trouble(trouble.to_string()))
        } else if rightful {
            held.oids().is_empty().then_some(HeldReason::AnnouncementWaits)
        } else if authority.is_empty() || matches!(held.body, Body::Proposal(_)) {
            Some(HeldReason::NotAnnounced)
        } else {
            Some(HeldReason::NoAuthority)
        }
    };
    let mut entries: Vec<_> = look.held().iter().filter(|entry| entry.held.counts()).collect();
    entries.sort_by_key(|entry| (entry.held.created_at, entry.held.id));
    entries.into_iter().map(|entry| event(&entry.held, reason(entry))).collect()
}

fn event(held: &Held, reason: Option<HeldReason>) -> HeldEvent {
    HeldEvent {
        id: held.id,
        kind: held.kind,
        identifier: held.identifier.clone(),
        oids: held.oids().to_vec(),
        reason,
    }
}
