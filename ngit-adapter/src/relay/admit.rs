//! What may come in, however it comes: from a client or from another relay.

use std::fmt;

use nostr::{event::Event, types::Timestamp};
use nostr_database::{RejectedReason, SaveEventStatus};
use purgatory_sync::{EventStore, GitFetcher, Identifier, Oid};

use super::{
    limits::MAX_AHEAD,
    metrics::{self, Fate},
    policy,
    shared::{LookError, Shared},
};
use crate::{
    nip34::{GitEvent, VerifiedEvent},
    store::{AdmitError, Arrival, Outcome, Wake},
};

/// What became of an event that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is kept until its data is here.
    Held,
    /// It is served from now on.
    Served,
    /// It was held or served before.
    Duplicate,
}

/// Why an event was not taken: a word for machines, and a reason for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) word: &'static str,
    pub(crate) reason: String,
}

/// The most characters of a reason.
const MAX_REASON: usize = 400;

impl Rejected {
    pub(super) fn new(word: &'static str, reason: impl Into<String>) -> Self {
        // It may quote what somebody sent.
        let mut reason = reason.into();
        if let Some((end, _)) = reason.char_indices().nth(MAX_REASON) {
            reason.truncate(end);
            reason.push('…');
        }
        Self { word, reason }
    }

    fn invalid(reason: impl Into<String>) -> Self {
        Self::new("invalid", reason)
    }

    fn blocked(reason: impl Into<String>) -> Self {
        Self::new("blocked", reason)
    }

    pub(super) fn error() -> Self {
        Self::new("error", "it could not be saved, try again later")
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.word, self.reason)
    }
}

/// Takes an event by the relay's policy. When it returns, what was taken is durable, whoever asked for it
/// is told, and the engine knows.
pub(crate) async fn admit(
    shared: &Shared,
    event: VerifiedEvent,
    arrival: Arrival,
) -> Result<Accepted, Rejected> {
    let result = try_admit(shared, event, arrival).await;
    metrics::event(match &result {
        Ok(Accepted::Held) => Fate::Held,
        Ok(Accepted::Served) => Fate::Served,
        Ok(Accepted::Duplicate) => Fate::Duplicate,
        Err(_) => Fate::Rejected,
    });
    result
}

async fn try_admit(
    shared: &Shared,
    event: VerifiedEvent,
    arrival: Arrival,
) -> Result<Accepted, Rejected> {
    let latest = Timestamp::now().as_secs().saturating_add(MAX_AHEAD.as_secs());
    if event.created_at.as_secs() > latest {
        return Err(Rejected::invalid("its created_at is in the future"));
    }
    policy::check(shared, &event).await?;
    let admission = match shared.store().admit(event.clone(), arrival).await {
        Ok(admission) => admission,
        Err(error) => return Err(refusal(error)),
    };
    if let (Outcome::Announced { .. }, Wake::Changed(identifiers)) =
        (&admission.outcome, admission.wake())
    {
        announced(shared, identifiers, arrival).await;
    } else {
        wake(shared, &admission.wake(), arrival);
    }
    if matches!(admission.outcome, Outcome::Announced { .. } | Outcome::Deletion { .. }) {
        shared.announcements_changed();
    }
    match admission.outcome {
        Outcome::Held { .. } => Ok(release_if_here(shared, &event).await),
        Outcome::Announced { served: false } if shared.store().holds(&event.id) => {
            Ok(Accepted::Held)
        }
        Outcome::Announced { served: false } => Ok(Accepted::Served),
        // The store told that it is served.
        Outcome::Announced { served: true } => Ok(Accepted::Served),
        Outcome::Passed | Outcome::Deletion { .. } => {
            shared.hub().publish(event.into_event());
            Ok(Accepted::Served)
        }
        Outcome::Other => save(shared, event.into_event()).await,
        Outcome::Duplicate => Ok(Accepted::Duplicate),
        Outcome::Superseded => {
            Err(Rejected::new("replaced", "its author has a newer one of its kind"))
        }
        Outcome::Deleted => Err(Rejected::blocked("its author has deleted it")),
        Outcome::Expired => Err(Rejected::invalid("it says itself that it is over")),
        Outcome::GivenUp => {
            Err(Rejected::blocked("its data was looked for until its time was over"))
        }
    }
}

/// Lets a held event go at once if its data is here: a state that moves or drops refs may need nothing new, and
/// nobody could push anything for it.
async fn release_if_here(shared: &Shared, event: &Event) -> Accepted {
    let Ok(read) = GitEvent::read(event) else { return Accepted::Held };
    let (Some(identifier), oids) = (read.identifier(), oids(&read)) else { return Accepted::Held };
    if oids.is_empty() {
        return Accepted::Held;
    }
    // What fails here is done by the engine later.
    match shared.fetcher().missing(identifier, &oids).await {
        Ok(missing) if missing.is_empty() => {}
        _ => return Accepted::Held,
    }
    release_here(shared, identifier).await;
    if shared.store().holds(&event.id) { Accepted::Held } else { Accepted::Served }
}

/// An announcement is part of the burst that it comes with: what it lets go now goes, and what is missing is looked for
/// when the burst is over, or after the time that its author has for a push.
async fn announced(shared: &Shared, identifiers: Vec<Identifier>, arrival: Arrival) {
    for identifier in identifiers {
        release_here(shared, &identifier).await;
        wake(shared, &Wake::Held(identifier), arrival);
    }
}

/// Lets go what has all its data here. What fails is done by the engine later.
async fn release_here(shared: &Shared, identifier: &Identifier) {
    let released = async {
        let here = shared.wanted_here(identifier).await?;
        shared.store().release(identifier, &here).await?;
        Ok::<_, LookError>(())
    };
    if let Err(error) = released.await {
        tracing::warn!(
            identifier = identifier.as_str(),
            error = &error as &dyn std::error::Error,
            "not released at once"
        );
    }
}

fn oids(read: &GitEvent) -> Vec<Oid> {
    match read {
        GitEvent::State(state) => state.oids().collect(),
        GitEvent::PullRequest(it) => vec![it.proposal.tip],
        GitEvent::PullRequestUpdate(it) => vec![it.proposal.tip],
        _ => Vec::new(),
    }
}

/// Saves an event that waits for no data, and tells it once it is saved.
async fn save(shared: &Shared, event: Event) -> Result<Accepted, Rejected> {
    let saved = shared.database().save_event(&event).await.map_err(|error| {
        tracing::warn!(%error, event_id = %event.id, "an event could not be saved");
        Rejected::error()
    })?;
    match saved {
        SaveEventStatus::Success => {
            shared.hub().publish(event);
            Ok(Accepted::Served)
        }
        SaveEventStatus::Rejected(reason) => match reason {
            RejectedReason::Duplicate => Ok(Accepted::Duplicate),
            RejectedReason::Replaced => {
                Err(Rejected::new("replaced", "its author has a newer one of its kind"))
            }
            RejectedReason::Deleted => Err(Rejected::blocked("its author has deleted it")),
            RejectedReason::Expired => Err(Rejected::invalid("it says itself that it is over")),
            RejectedReason::Vanished => Err(Rejected::blocked("its author asked to be forgotten")),
            RejectedReason::InvalidDelete => {
                Err(Rejected::invalid("it deletes what is not its author's"))
            }
            RejectedReason::Ephemeral | RejectedReason::Other => {
                Err(Rejected::blocked("the database does not take it"))
            }
        },
    }
}

fn refusal(error: AdmitError) -> Rejected {
    match error {
        AdmitError::Event(error) => Rejected::invalid(error.to_string()),
        AdmitError::Nip34(error) => Rejected::invalid(error.to_string()),
        AdmitError::Full(..) => Rejected::new("rate-limited", error.to_string()),
        AdmitError::Refused(_) => Rejected::blocked(error.to_string()),
        AdmitError::Store(error) => {
            tracing::warn!(%error, "an event could not be taken");
            Rejected::error()
        }
    }
}

/// Tells the engine. It may be full or stopping: it looks at what is held by itself then, later or at the next start.
fn wake(shared: &Shared, wake: &Wake, arrival: Arrival) {
    match wake {
        Wake::Nothing => {}
        Wake::Held(identifier) => {
            if let Err(error) = shared.sync().event_held(identifier.clone(), arrival) {
                tracing::debug!(identifier = identifier.as_str(), %error, "not queued now");
            }
        }
        Wake::Changed(identifiers) => {
            for identifier in identifiers {
                shared.look_again(identifier);
            }
        }
    }
}
