use std::collections::BTreeSet;

use nostr::event::Tags;
use purgatory_sync::{Identifier, Oid};

use super::{
    Nip34Error,
    tags::{self, OidText},
};
use crate::{RefName, StateRefs};

/// Where a repository's branches and tags point: kind 30618.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// The repository's name.
    pub identifier: Identifier,
    /// Its branches and tags.
    pub refs: StateRefs,
}

impl State {
    /// Reads a state's tags.
    ///
    /// Each `refs/heads/*` and `refs/tags/*` with an object id is a ref; of an annotated tag the id
    /// is the tag object's. `^{}` entries, other names and names that git refuses are passed over.
    /// A name whose value is no object id is [left alone](StateRefs::left_alone). Of a name that is
    /// repeated the first tag counts.
    ///
    /// # Errors
    ///
    /// [`Nip34Error::NoIdentifier`] without a `d`, [`Nip34Error::IdentifierTooLong`],
    /// [`Nip34Error::Sha256`] if every object it names is named by SHA-256.
    pub fn from_tags(event_tags: &Tags) -> Result<Self, Nip34Error> {
        let identifier = tags::identifier(event_tags)?;
        let mut refs = StateRefs::default();
        let mut sha256 = false;
        for tag in event_tags.iter() {
            let [name, value, ..] = tag.as_slice() else { continue };
            let Ok(name) = name.parse::<RefName>() else { continue };
            if refs.refs.contains_key(&name) || refs.left_alone.contains(&name) {
                continue;
            }
            match tags::read_oid(value) {
                OidText::Sha1(oid) => {
                    refs.refs.insert(name, oid);
                }
                other => {
                    sha256 |= matches!(other, OidText::Sha256);
                    refs.left_alone.insert(name);
                }
            }
        }
        if sha256 && refs.refs.is_empty() {
            return Err(Nip34Error::Sha256);
        }
        refs.head = head(event_tags);
        Ok(Self { identifier, refs })
    }

    /// The objects it waits for, each once, in the order of their ids.
    pub fn oids(&self) -> impl Iterator<Item = Oid> {
        self.refs.refs.values().copied().collect::<BTreeSet<_>>().into_iter()
    }
}

/// The branch that `HEAD` names.
fn head(event_tags: &Tags) -> Option<RefName> {
    let value = tags::first_values(event_tags, "HEAD").next()?;
    let name = value.strip_prefix("ref: ")?.parse::<RefName>().ok()?;
    name.is_branch().then_some(name)
}
