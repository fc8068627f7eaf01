use nostr::event::Tags;
use purgatory_sync::Identifier;

use super::coordinate;

/// A patch: kind 1617. It carries its data, so nothing is fetched for it and nothing holds it back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Patch {
    /// The repository's name, if an `a` says it.
    pub identifier: Option<Identifier>,
}

impl Patch {
    /// Reads a patch's tags. Every patch is taken.
    pub fn from_tags(tags: &Tags) -> Self {
        let first = coordinate::repositories(tags).ok().and_then(|all| all.into_iter().next());
        Self { identifier: first.map(|repository| repository.identifier) }
    }
}
