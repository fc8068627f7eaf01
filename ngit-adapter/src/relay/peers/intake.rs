//! An event of a peer: checked, and admitted as a client's would be (R1, R9).

use std::sync::{Mutex, PoisonError};

use nostr::{
    event::{Event, EventId, Kind},
    filter::{Filter, MatchEventOptions},
    types::Timestamp,
};
use purgatory_sync::StoreError;

use super::{questions::About, refused::Refused};
use crate::{
    nip34::{GitEvent, VerifiedEvent},
    relay::{
        admit::{self, Accepted, Rejected},
        limits::MAX_AHEAD,
        metrics,
        shared::Shared,
    },
    store::Arrival,
};

/// What became of an event of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Taken {
    /// It is held or served from now on.
    New,
    /// It was here.
    Known,
    /// The policy of this relay, or its author, is against it.
    Refused,
    /// There is no room, or the disk is full: later, perhaps.
    NotNow,
    /// It is about no repository that is announced here.
    Unrelated,
    /// It was not asked for.
    Unasked,
    /// It is no event, or its id or signature is wrong.
    Invalid,
}

impl Taken {
    pub(in crate::relay) const ALL: [Self; 7] = [
        Self::New,
        Self::Known,
        Self::Refused,
        Self::NotNow,
        Self::Unrelated,
        Self::Unasked,
        Self::Invalid,
    ];

    pub(in crate::relay) const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Known => "known",
            Self::Refused => "refused",
            Self::NotNow => "not_now",
            Self::Unrelated => "unrelated",
            Self::Unasked => "unasked",
            Self::Invalid => "invalid",
        }
    }
}

/// An event that was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) taken: Taken,
    /// Its id and date, if they are its own: they were checked.
    pub(super) event: Option<(EventId, Timestamp)>,
}

/// Takes the events of all peers.
#[derive(Debug, Default)]
pub(super) struct Intake {
    refused: Mutex<Refused>,
}

impl Intake {
    /// Takes an event that came for one of these filters.
    pub(super) async fn take(&self, shared: &Shared, json: &str, asked: &[Filter]) -> Look {
        let look = self.look(shared, json, asked).await;
        metrics::peer_event(look.taken.as_str());
        look
    }

    async fn look(&self, shared: &Shared, json: &str, asked: &[Filter]) -> Look {
        let Ok(event) = VerifiedEvent::from_json(json.as_bytes(), &shared.limits().event) else {
            return Look { taken: Taken::Invalid, event: None };
        };
        let seen = Some((event.id, event.created_at));
        if !asked.iter().any(|filter| filter.match_event(&event, MatchEventOptions::new())) {
            return Look { taken: Taken::Unasked, event: seen };
        }
        let taken = match concerns(shared, &event).await {
            Ok(true) => self.admit(shared, event).await,
            Ok(false) => Taken::Unrelated,
            Err(error) => {
                tracing::warn!(%error, "an event of a peer could not be looked at");
                Taken::NotNow
            }
        };
        Look { taken, event: seen }
    }

    async fn admit(&self, shared: &Shared, event: VerifiedEvent) -> Taken {
        let kept = (*event).clone();
        match admit::admit(shared, event, Arrival::Synced).await {
            Ok(Accepted::Held | Accepted::Served) => Taken::New,
            Ok(Accepted::Duplicate) => Taken::Known,
            Err(rejected) if is_final(&rejected, &kept) => {
                tracing::debug!(event_id = %kept.id, %rejected, "event of a peer refused");
                self.refused.lock().unwrap_or_else(PoisonError::into_inner).note(&kept);
                Taken::Refused
            }
            Err(rejected) => {
                tracing::debug!(event_id = %kept.id, %rejected, "event of a peer not taken now");
                Taken::NotNow
            }
        }
    }

    /// Lets everything be asked for again.
    pub(super) fn forget_refused(&self) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Refused::default();
    }

    /// What was refused for good and may be among the answers to a question.
    pub(super) fn refused(&self, about: &About) -> Vec<(EventId, Timestamp)> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).about(about)
    }
}

/// Whether asking again would change nothing.
fn is_final(rejected: &Rejected, event: &Event) -> bool {
    let latest = Timestamp::now().as_secs().saturating_add(MAX_AHEAD.as_secs());
    match rejected.word {
        "invalid" => event.created_at.as_secs() <= latest,
        "replaced" => true,
        // What such an event is about may be announced later: only what the event itself says, and what became of it
        // here, stays as it is.
        "blocked" => matches!(event.kind.as_u16(), 30_617 | 30_618 | 1_618 | 1_619),
        _ => false,
    }
}

/// Whether an event is about a repository that is announced here. A client's event may come before its announcement;
/// a peer is asked again when the announcement is here.
async fn concerns(shared: &Shared, event: &VerifiedEvent) -> Result<bool, StoreError> {
    if event.kind == Kind::GitRepoAnnouncement {
        return Ok(true);
    }
    match GitEvent::read(event) {
        Ok(GitEvent::State(state)) => shared.store().knows(&state.identifier).await,
        Ok(GitEvent::PullRequest(it)) => any_announced(shared, &it.proposal.repositories).await,
        Ok(GitEvent::PullRequestUpdate(it)) => {
            any_announced(shared, &it.proposal.repositories).await
        }
        // What else there is, the policy looks at.
        Ok(_) => Ok(true),
        // The store says why.
        Err(_) => Ok(true),
    }
}

async fn any_announced(
    shared: &Shared,
    repositories: &[crate::RepositoryId],
) -> Result<bool, StoreError> {
    for repository in repositories {
        if shared.store().is_announced(repository).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
