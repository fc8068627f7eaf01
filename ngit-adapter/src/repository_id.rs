use std::fmt;

use nostr::key::PublicKey;
use purgatory_sync::{Identifier, Target};

/// One repository here: an owner and an identifier. Repositories of one identifier are siblings.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepositoryId {
    /// Who announced it.
    pub owner: PublicKey,
    /// The `d` of the announcement. Any string.
    pub identifier: Identifier,
}

impl RepositoryId {
    /// The repository of this owner under this identifier.
    pub fn new(owner: PublicKey, identifier: Identifier) -> Self {
        Self { owner, identifier }
    }

    /// The name by which the engine hands this repository from the store to the fetcher.
    pub fn to_target(&self) -> Target {
        Target::new(format!("{}:{}", self.owner.to_hex(), self.identifier))
    }

    /// Reads back what [`to_target`](Self::to_target) wrote.
    pub fn from_target(target: &Target) -> Option<Self> {
        let (owner, identifier) = target.as_str().split_once(':')?;
        Some(Self::new(PublicKey::from_hex(owner).ok()?, Identifier::from(identifier)))
    }
}

impl fmt::Debug for RepositoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepositoryId({}, {:?})", self.owner.to_hex(), self.identifier.as_str())
    }
}
