use nostr::{event::Tags, key::PublicKey};
use purgatory_sync::{CloneUrl, Identifier};

use super::{Nip34Error, tags};

/// A repository exists: kind 30617.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Announcement {
    /// The repository's name.
    pub identifier: Identifier,
    /// Where its data is: the http and https URLs of `clone`, in order, 50 at most.
    pub clone_urls: Vec<CloneUrl>,
    /// Whom the owner trusts with its state: the keys of `maintainers`, in order, 100 at most. The
    /// owner need not be among them.
    pub maintainers: Vec<PublicKey>,
    /// Where its events are: `relays` as they are written, in order, 50 at most.
    pub relays: Vec<String>,
}

/// How many clone URLs and relays count.
pub(super) const MAX_URLS: usize = 50;
/// How many maintainers one announcement names.
const MAX_MAINTAINERS: usize = 100;

impl Announcement {
    /// Reads an announcement's tags. What is no http URL and what is no key is passed over.
    ///
    /// # Errors
    ///
    /// [`Nip34Error::NoIdentifier`] without a `d`, [`Nip34Error::IdentifierTooLong`].
    pub fn from_tags(event_tags: &Tags) -> Result<Self, Nip34Error> {
        let maintainers = tags::values(event_tags, "maintainers");
        let relays = tags::values(event_tags, "relays").map(str::to_owned);
        Ok(Self {
            identifier: tags::identifier(event_tags)?,
            clone_urls: clone_urls(event_tags),
            maintainers: tags::collect_distinct(
                maintainers.filter_map(|hex| PublicKey::from_hex(hex).ok()),
                MAX_MAINTAINERS,
            ),
            relays: tags::collect_distinct(relays, MAX_URLS),
        })
    }
}

/// The usable URLs of `clone`.
pub(super) fn clone_urls(event_tags: &Tags) -> Vec<CloneUrl> {
    let urls = tags::values(event_tags, "clone");
    tags::collect_distinct(urls.filter_map(|url| url.parse().ok()), MAX_URLS)
}
