use std::time::Instant;

use domain_throttle::Domain;

use crate::{CloneUrl, Identifier, PassSummary};

/// What the engine does at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Every identifier that is queued or running, in no order. Each is seen whole; two of them may
    /// be seen a moment apart.
    pub identifiers: Vec<IdentifierSnapshot>,
    /// Whether the engine still has to ask the store what it holds: at the start, and after the queue was full.
    pub restoring: bool,
    /// Whether the engine was told to stop.
    pub stopping: bool,
}

impl Snapshot {
    /// Whether nothing is queued or running, and nothing is still to be asked from the store.
    pub fn is_idle(&self) -> bool {
        self.identifiers.is_empty() && !self.restoring
    }

    /// Whether waiting for more is without hope: nothing waits but backoff, and each last pass found
    /// [`no_source_left`](PassSummary::no_source_left). Also true when idle.
    pub fn no_source_left(&self) -> bool {
        !self.restoring
            && self.identifiers.iter().all(|each| {
                matches!(each.state, State::Backoff { .. })
                    && each.last_pass.as_ref().is_some_and(|pass| pass.no_source_left)
            })
    }

    /// How many fetches are on.
    pub fn fetching(&self) -> usize {
        let fetching = |each: &&IdentifierSnapshot| {
            matches!(each.state, State::Running(Activity::Fetching { .. }))
        };
        self.identifiers.iter().filter(fetching).count()
    }
}

/// What one identifier does at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IdentifierSnapshot {
    /// The identifier.
    pub identifier: Identifier,
    /// What it does.
    pub state: State,
    /// Whether it runs again after the pass that is on.
    pub requested_again: bool,
    /// The number of its last pass in a row of failures; 0 before the first.
    pub attempt: u32,
    /// How many events were held at the last look.
    pub held: usize,
    /// How many objects were missing at the last look.
    pub missing: usize,
    /// What its last pass found.
    pub last_pass: Option<PassSummary>,
}

/// What an identifier does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It was asked for and waits for its time, or for its turn.
    Waiting {
        /// When it is due at the latest, as far as this engine was asked.
        by: Option<Instant>,
    },
    /// A pass is on.
    Running(Activity),
    /// Its last pass left something held.
    Backoff {
        /// When it is tried again, by the backoff of the settings.
        until: Instant,
    },
    /// All that its last pass could have asked was paused.
    Paused {
        /// When it is tried again.
        until: Instant,
    },
}

/// What a pass does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// It looks at what is wanted and what is here.
    Looking,
    /// It lets events go.
    Releasing,
    /// It waits until fewer fetches are on.
    WaitingForSlot,
    /// It waits in the lines of these domains.
    InLine {
        /// The domains, each once.
        domains: Vec<Domain>,
    },
    /// It asks a server.
    Fetching {
        /// The server.
        url: CloneUrl,
        /// Since when.
        since: Instant,
    },
}
