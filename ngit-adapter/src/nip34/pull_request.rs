use nostr::event::Tags;

use super::{Nip34Error, Proposal};

/// Somebody asks for a commit to be taken: kind 1618.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PullRequest {
    /// Which commit, for which repositories.
    pub proposal: Proposal,
}

impl PullRequest {
    /// Reads a pull request's tags.
    ///
    /// # Errors
    ///
    /// [`Nip34Error::NoRepository`] without a usable `a`; [`Nip34Error::NoTip`],
    /// [`Nip34Error::BadTip`] or [`Nip34Error::Sha256`] without a usable `c`.
    pub fn from_tags(tags: &Tags) -> Result<Self, Nip34Error> {
        Ok(Self { proposal: Proposal::from_tags(tags)? })
    }
}
