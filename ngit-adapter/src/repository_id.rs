use std::fmt;

use nostr::{key::PublicKey, nips::nip19::FromBech32};
use percent_encoding::percent_decode_str;
use purgatory_sync::{Identifier, Target};

use crate::git::paths;

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

    /// The path of this repository in URLs: `/<npub>/<identifier, percent-encoded>.git`.
    pub fn url_path(&self) -> String {
        paths::url_path(self)
    }

    /// Reads the path of a URL, as it stands in the URL: still encoded. Other spellings than that of
    /// [`url_path`](Self::url_path) lead to the same repository, if they decode to the same identifier.
    ///
    /// `None` if it is not `/<npub>/<something>.git` or does not decode to UTF-8.
    pub fn from_url_path(path: &str) -> Option<Self> {
        let (owner, name) = path.strip_prefix('/')?.split_once('/')?;
        let name = name.strip_suffix(".git")?;
        if name.contains('/') || !owner.starts_with("npub1") {
            return None;
        }
        let owner = PublicKey::from_bech32(owner).ok()?;
        let identifier = percent_decode_str(name).decode_utf8().ok()?;
        Some(Self::new(owner, Identifier::from(identifier.as_ref())))
    }
}

impl fmt::Debug for RepositoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepositoryId({}, {:?})", self.owner.to_hex(), self.identifier.as_str())
    }
}
