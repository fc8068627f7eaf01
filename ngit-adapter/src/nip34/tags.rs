use nostr::event::Tags;
use purgatory_sync::{Identifier, Oid};

use super::{Nip34Error, error::MAX_IDENTIFIER_BYTES};

/// Every value of the tags of this name, whether they stand in one tag or in several.
pub(super) fn values<'a>(tags: &'a Tags, name: &'a str) -> impl Iterator<Item = &'a str> {
    named(tags, name).flat_map(|tag| tag.iter().skip(1).map(String::as_str))
}

/// The first value of each tag of this name. What stands behind it is a hint or a marker.
pub(super) fn first_values<'a>(tags: &'a Tags, name: &'a str) -> impl Iterator<Item = &'a str> {
    named(tags, name).filter_map(|tag| tag.get(1).map(String::as_str))
}

fn named<'a>(tags: &'a Tags, name: &'a str) -> impl Iterator<Item = &'a [String]> {
    tags.iter().filter(move |tag| tag.kind() == name).map(|tag| tag.as_slice())
}

/// The repository's name: the value of the first `d`.
pub(crate) fn identifier(tags: &Tags) -> Result<Identifier, Nip34Error> {
    // NIP-01 reads the first `d` only, and so do databases: a second one must not be another name.
    let first = named(tags, "d").next().and_then(|tag| tag.get(1));
    checked_identifier(first.ok_or(Nip34Error::NoIdentifier)?)
}

/// An identifier of a length that can be kept.
pub(super) fn checked_identifier(text: &str) -> Result<Identifier, Nip34Error> {
    if text.len() > MAX_IDENTIFIER_BYTES {
        return Err(Nip34Error::IdentifierTooLong(text.len()));
    }
    Ok(Identifier::from(text))
}

/// What a text says about an object.
pub(super) enum OidText {
    Sha1(Oid),
    Sha256,
    Bad(purgatory_sync::OidError),
}

pub(super) fn read_oid(text: &str) -> OidText {
    match text.parse::<Oid>() {
        Ok(oid) if oid.as_bytes().len() == 20 => OidText::Sha1(oid),
        Ok(_) => OidText::Sha256,
        Err(error) => OidText::Bad(error),
    }
}

/// Adds what is not there yet, up to a number: the order of the event stays.
pub(super) fn collect_distinct<T: PartialEq>(
    values: impl Iterator<Item = T>,
    most: usize,
) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if distinct.len() == most {
            break;
        }
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}
