use nostr::event::Tags;
use purgatory_sync::{CloneUrl, Identifier, Oid};

use super::{
    Nip34Error, announcement, coordinate,
    tags::{self, OidText},
};
use crate::RepositoryId;

/// What a pull request and its update have in common: a commit somewhere, for some repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proposal {
    /// The repositories of `a`, in order, 32 at most, never none. All have the first one's identifier.
    pub repositories: Vec<RepositoryId>,
    /// The commit of `c`.
    pub tip: Oid,
    /// Where its author says it is: the http and https URLs of `clone`, in order, 50 at most.
    pub clone_urls: Vec<CloneUrl>,
}

impl Proposal {
    /// The repository's name.
    pub fn identifier(&self) -> &Identifier {
        &self.repositories[0].identifier
    }

    pub(super) fn from_tags(event_tags: &Tags) -> Result<Self, Nip34Error> {
        Ok(Self {
            repositories: coordinate::repositories(event_tags)?,
            tip: tip(event_tags)?,
            clone_urls: announcement::clone_urls(event_tags),
        })
    }
}

/// The first `c` that is an object id; without one, what is wrong with the first.
fn tip(event_tags: &Tags) -> Result<Oid, Nip34Error> {
    let mut wrong = None;
    for value in tags::first_values(event_tags, "c") {
        let error = match tags::read_oid(value) {
            OidText::Sha1(oid) => return Ok(oid),
            OidText::Sha256 => Nip34Error::Sha256,
            OidText::Bad(error) => Nip34Error::BadTip(error),
        };
        wrong.get_or_insert(error);
    }
    Err(wrong.unwrap_or(Nip34Error::NoTip))
}
