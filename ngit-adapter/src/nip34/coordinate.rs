use nostr::{event::Tags, key::PublicKey};

use super::{Nip34Error, tags};
use crate::RepositoryId;

/// How many repositories one pull request may name.
const MAX_REPOSITORIES: usize = 32;

/// The repositories that `a` tags name, in their order. All of them bear the first one's identifier.
pub(super) fn repositories(event_tags: &Tags) -> Result<Vec<RepositoryId>, Nip34Error> {
    let mut all =
        tags::first_values(event_tags, "a").filter_map(|value| repository(value).transpose());
    let first = all.next().ok_or(Nip34Error::NoRepository)??;
    let identifier = first.identifier.clone();
    // A pull request to several owners of one repository repeats `a`. Another identifier is another
    // repository with other data; the first one decides.
    let others = all.flatten().filter(|other| other.identifier == identifier);
    Ok(tags::collect_distinct(std::iter::once(first.clone()).chain(others), MAX_REPOSITORIES))
}

/// Reads `30617:<owner>:<identifier>`. Another kind, or an owner that is no key, is no repository.
fn repository(value: &str) -> Result<Option<RepositoryId>, Nip34Error> {
    let mut parts = value.splitn(3, ':');
    let (Some("30617"), Some(owner), Some(identifier)) = (parts.next(), parts.next(), parts.next())
    else {
        return Ok(None);
    };
    // Keys are 32 bytes: an owner written in upper case is the same owner.
    let Ok(owner) = PublicKey::from_hex(owner) else { return Ok(None) };
    Ok(Some(RepositoryId::new(owner, tags::checked_identifier(identifier)?)))
}
