//! From an owner and an identifier to a folder, and to a URL. One function each way: G11 rests on it.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use nostr::nips::nip19::ToBech32;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use purgatory_sync::Identifier;
use sha2::{Digest, Sha256};

use crate::RepositoryId;

/// What RFC 3986 calls unreserved stays, all else becomes `%XX`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// File systems take names of 255 bytes; `.git` and names beside it need room.
const MAX_ENCODED: usize = 200;
const KEPT_OF_LONG: usize = 100;

/// How a folder treats names that differ in case only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// They are two names.
    Matters,
    /// They are one name. Upper-case letters are encoded too then, so that two identifiers never share a folder.
    Ignored,
}

/// Where the repository `id` lives below `root`: `<npub>/<identifier, encoded>.git`.
pub(crate) fn repository_path(root: &Path, id: &RepositoryId, case: Case) -> PathBuf {
    root.join(owner_name(id)).join(folder_name(&id.identifier, case))
}

/// The name of the owner's folder.
fn owner_name(id: &RepositoryId) -> String {
    let Ok(npub) = id.owner.to_bech32();
    npub
}

/// The name of the repository's folder in its owner's.
///
/// It is injective. A short name can be decoded, and no encoded name has a `%` without two hex digits
/// after it, so that none is equal to a long one, which has `%-` and a SHA-256 that tells it from its like.
pub(crate) fn folder_name(identifier: &Identifier, case: Case) -> String {
    let mut name = encode(identifier.as_str());
    if case == Case::Ignored {
        name = encode_upper_case(&name);
    }
    if name.len() > MAX_ENCODED {
        name.truncate(KEPT_OF_LONG);
        name.push_str("%-");
        for byte in Sha256::digest(identifier.as_str().as_bytes()) {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name + ".git"
}

/// The path of the repository in URLs: `/<npub>/<identifier, encoded>.git`, however long.
pub(crate) fn url_path(id: &RepositoryId) -> String {
    format!("/{}/{}.git", owner_name(id), encode(id.identifier.as_str()))
}

fn encode(identifier: &str) -> String {
    // Dots alone would name this folder or the one above, if ever `.git` is taken off.
    if !identifier.is_empty() && identifier.bytes().all(|byte| byte == b'.') {
        return "%2E".repeat(identifier.len());
    }
    utf8_percent_encode(identifier, RESERVED).to_string()
}

/// Encodes the letters `A` to `Z` of an encoded name, but for those in its escapes.
fn encode_upper_case(encoded: &str) -> String {
    let mut name = String::with_capacity(encoded.len());
    let mut escape_left = 0;
    for c in encoded.chars() {
        match c {
            _ if escape_left > 0 => {
                escape_left -= 1;
                name.push(c);
            }
            '%' => {
                escape_left = 2;
                name.push(c);
            }
            'A'..='Z' => {
                let _ = write!(name, "%{:02X}", u32::from(c));
            }
            _ => name.push(c),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// G11: where case does not matter, two identifiers never share a folder either.
        #[test]
        fn names_differ_in_more_than_case(one in "[aAbB%/.ßÄ]{0,4}", other in "[aAbB%/.ßÄ]{0,4}") {
            let name = |identifier: &str| {
                folder_name(&Identifier::from(identifier), Case::Ignored).to_lowercase()
            };
            prop_assert_eq!(name(&one) == name(&other), one == other);
        }
    }

    /// G11: only letters outside of escapes are encoded once more.
    #[test]
    fn upper_case_is_encoded_where_case_does_not_matter() {
        let name = |text: &str| folder_name(&Identifier::from(text), Case::Ignored);
        assert_eq!(name("MyRepo/ä"), "%4Dy%52epo%2F%C3%A4.git");
        assert_ne!(name(&"a".repeat(300)), name(&"A".repeat(300)));
    }
}
