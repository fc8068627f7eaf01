use nostr::event::{EventId, Tags};

use super::{Nip34Error, Proposal, tags};

/// A pull request has a new tip: kind 1619.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PullRequestUpdate {
    /// Which commit, for which repositories.
    pub proposal: Proposal,
    /// The pull request that it updates, if its `E` is an event id. Nothing waits for that event.
    pub pull_request: Option<EventId>,
}

impl PullRequestUpdate {
    /// Reads an update's tags.
    ///
    /// # Errors
    ///
    /// As for [`PullRequest::from_tags`](super::PullRequest::from_tags).
    pub fn from_tags(event_tags: &Tags) -> Result<Self, Nip34Error> {
        let pull_request =
            tags::first_values(event_tags, "E").find_map(|id| EventId::from_hex(id).ok());
        Ok(Self { proposal: Proposal::from_tags(event_tags)?, pull_request })
    }
}
