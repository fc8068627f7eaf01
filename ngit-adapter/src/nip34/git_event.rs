use nostr::event::Event;
use purgatory_sync::Identifier;

use super::{Announcement, Nip34Error, Patch, Proposal, PullRequest, PullRequestUpdate, State};

/// What an event says about git.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GitEvent {
    /// Kind 30617.
    Announcement(Announcement),
    /// Kind 30618.
    State(State),
    /// Kind 1618.
    PullRequest(PullRequest),
    /// Kind 1619.
    PullRequestUpdate(PullRequestUpdate),
    /// Kind 1617.
    Patch(Patch),
    /// Any other kind: none of our business.
    Other,
}

impl GitEvent {
    /// Reads an event by its kind.
    ///
    /// # Errors
    ///
    /// [`Nip34Error`] says what its kind needs and it lacks.
    pub fn read(event: &Event) -> Result<Self, Nip34Error> {
        let tags = &event.tags;
        Ok(match event.kind.as_u16() {
            30617 => Self::Announcement(Announcement::from_tags(tags)?),
            30618 => Self::State(State::from_tags(tags)?),
            1618 => Self::PullRequest(PullRequest::from_tags(tags)?),
            1619 => Self::PullRequestUpdate(PullRequestUpdate::from_tags(tags)?),
            1617 => Self::Patch(Patch::from_tags(tags)),
            _ => Self::Other,
        })
    }

    /// The repository's name, if it names one.
    pub fn identifier(&self) -> Option<&Identifier> {
        match self {
            Self::Announcement(announcement) => Some(&announcement.identifier),
            Self::State(state) => Some(&state.identifier),
            Self::PullRequest(pull_request) => Some(pull_request.proposal.identifier()),
            Self::PullRequestUpdate(update) => Some(update.proposal.identifier()),
            Self::Patch(patch) => patch.identifier.as_ref(),
            Self::Other => None,
        }
    }

    /// What a pull request or an update proposes.
    pub fn into_proposal(self) -> Option<Proposal> {
        match self {
            Self::PullRequest(pull_request) => Some(pull_request.proposal),
            Self::PullRequestUpdate(update) => Some(update.proposal),
            _ => None,
        }
    }
}
