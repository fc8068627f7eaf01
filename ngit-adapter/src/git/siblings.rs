//! The repositories of one identifier, whoever owns them.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use nostr::{
    key::PublicKey,
    nips::nip19::{FromBech32, ToBech32},
};
use purgatory_sync::Identifier;

use super::{
    RepositoryError, create,
    paths::{self, Case},
};
use crate::RepositoryId;

/// A repository that is there.
#[derive(Clone, Debug)]
pub(crate) struct Sibling {
    pub(crate) id: RepositoryId,
    pub(crate) path: PathBuf,
}

/// All repositories of `identifier` below `root`, in the order of their owners.
///
/// One look per owner, whatever number of repositories and objects they have.
pub(crate) fn siblings(
    root: &Path,
    identifier: &Identifier,
    case: Case,
) -> Result<Vec<Sibling>, RepositoryError> {
    let name = paths::folder_name(identifier, case);
    let mut siblings = find(root, &name, identifier).map_err(RepositoryError::because(
        format_args!("cannot list the folder of repositories {}", root.display()),
    ))?;
    siblings.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(siblings)
}

fn find(root: &Path, name: &str, identifier: &Identifier) -> io::Result<Vec<Sibling>> {
    let mut siblings = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let path = entry.path().join(name);
        // The look at the disk comes first: it is cheaper than reading the owner's name, and mostly fails.
        if !is_owner_like(&entry.file_name()) || !create::is_repository(&path) {
            continue;
        }
        if let Some(owner) = owner(&entry.file_name()) {
            siblings.push(Sibling { id: RepositoryId::new(owner, identifier.clone()), path });
        }
    }
    Ok(siblings)
}

fn is_owner_like(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"npub1")
}

/// The owner whose folder has this name, in the one spelling that we use.
fn owner(name: &OsStr) -> Option<PublicKey> {
    let name = name.to_str()?;
    let owner = PublicKey::from_bech32(name).ok()?;
    let Ok(npub) = owner.to_bech32();
    (npub == name).then_some(owner)
}
