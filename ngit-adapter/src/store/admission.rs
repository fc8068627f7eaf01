use std::fmt;

use nostr::event::{EventId, Kind};
use purgatory_sync::{Arrival, HeldError, Identifier, PurgatorySync, StoreError};

use crate::nip34::{EventError, Nip34Error};

/// What became of an event that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Admission {
    /// The event.
    pub id: EventId,
    /// Its kind.
    pub kind: Kind,
    /// The repository's name, if the event names one.
    pub identifier: Option<Identifier>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A state, a pull request or an update is held until its data is here. It is durable.
    Held {
        /// A placeholder says that the data came first: a look is worth its while at once.
        data_first: bool,
    },
    /// An announcement was taken, and is durable.
    Announced {
        /// It is served already, because data for its repository was released before.
        served: bool,
    },
    /// A patch was saved in the database.
    Passed,
    /// A deletion took effect on what its author has here, and was saved in the database.
    Deletion {
        /// The repositories of which held events went.
        identifiers: Vec<Identifier>,
    },
    /// Another kind: left alone, not saved.
    Other,
    /// It is held or saved already. Nothing changed, no clock starts anew.
    Duplicate,
    /// Its author has a newer one of its kind for the repository.
    Superseded,
    /// Its author has deleted it.
    Deleted,
    /// It says itself that it is over (NIP-40).
    Expired,
    /// It was held here before until its time was over, and its id is remembered.
    GivenUp,
}

/// What the engine has to be told about an admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Nothing.
    Nothing,
    /// `event_held` of this identifier, with the event's arrival.
    Held(Identifier),
    /// `changed` of each of these: what they need, or where it may be, is not what it was. Where an
    /// announcement comes with a burst of other events, `event_held` keeps the burst one pass.
    Changed(Vec<Identifier>),
}

impl Admission {
    /// What the engine has to be told.
    pub fn wake(&self) -> Wake {
        match (&self.outcome, &self.identifier) {
            (Outcome::Held { data_first: false }, Some(identifier)) => {
                Wake::Held(identifier.clone())
            }
            (Outcome::Held { data_first: true } | Outcome::Announced { .. }, Some(identifier)) => {
                Wake::Changed(vec![identifier.clone()])
            }
            (Outcome::Deletion { identifiers }, _) if !identifiers.is_empty() => {
                Wake::Changed(identifiers.clone())
            }
            _ => Wake::Nothing,
        }
    }
}

impl Wake {
    /// Tells the engine.
    ///
    /// # Errors
    ///
    /// The engine's, if its queue is full or it has stopped. The event is held all the same: the engine
    /// asks the store for it later, or at its next start.
    pub fn tell(self, engine: &PurgatorySync, arrival: Arrival) -> Result<(), HeldError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Held(identifier) => engine.event_held(identifier, arrival),
            Self::Changed(identifiers) => {
                let told = identifiers.into_iter().map(|identifier| engine.changed(identifier));
                // One that the queue has no room for must not keep the others from it.
                told.fold(Ok(()), Result::and)
            }
        }
    }
}

/// Why an event was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// It is no signed event, or too large.
    #[error(transparent)]
    Event(#[from] EventError),
    /// It lacks what its kind needs.
    #[error(transparent)]
    Nip34(#[from] Nip34Error),
    /// No more events are held, here or for this repository.
    #[error("no more {0} are held: {1} wait already")]
    Full(Full, usize),
    /// The database does not take it. The reason is the database's.
    #[error("the database does not take it: {0}")]
    Refused(String),
    /// The store failed: the event was not looked at. It may be sent again.
    #[error("the event could not be taken")]
    Store(#[from] StoreError),
}

impl AdmitError {
    /// Whether the event is at fault, and not the store: sending it again would change nothing.
    pub fn is_rejection(&self) -> bool {
        !matches!(self, Self::Store(_))
    }
}

/// Of what there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Full {
    /// Events of any kind.
    Events,
    /// Announcements of one identifier.
    Announcements,
    /// States of one identifier.
    States,
    /// Pull requests and updates of one identifier.
    PullRequests,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Events => "events",
            Self::Announcements => "announcements of this repository",
            Self::States => "states of this repository",
            Self::PullRequests => "pull requests of this repository",
        })
    }
}
