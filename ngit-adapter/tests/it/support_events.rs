//! Signed NIP-34 events for tests.

#![allow(dead_code, reason = "each test uses a part of this")]

use nostr::{
    event::{Event, EventBuilder, FinalizeEvent, Kind, Tag},
    key::{Keys, PublicKey, SecretKey},
    nips::nip19::ToBech32,
    types::Timestamp,
};
use purgatory_sync::Oid;

/// Somebody with a key: the same one for the same number.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    keys: Keys,
}

/// When events are made if a test does not say so.
pub(crate) const SOME_TIME: u64 = 1_760_000_000;

impl Person {
    pub(crate) fn new(number: u8) -> Self {
        let mut secret = [7; 32];
        secret[31] = number;
        Self { keys: Keys::new(SecretKey::from_slice(&secret).expect("a small number is a key")) }
    }

    pub(crate) fn key(&self) -> PublicKey {
        self.keys.public_key()
    }

    pub(crate) fn npub(&self) -> String {
        let Ok(npub) = self.key().to_bech32();
        npub
    }

    /// An announcement of a repository at these URLs.
    pub(crate) fn announcement(&self, identifier: &str, urls: &[&str]) -> Event {
        let mut clone = vec!["clone"];
        clone.extend(urls);
        self.sign(Kind::GitRepoAnnouncement, SOME_TIME, &[&["d", identifier][..], &clone])
    }

    /// A state with these refs in full, such as `refs/heads/main`, and `HEAD` on `main`.
    pub(crate) fn state(&self, identifier: &str, refs: &[(&str, Oid)]) -> Event {
        let mut tags = vec![
            vec!["d".to_owned(), identifier.to_owned()],
            vec!["HEAD".to_owned(), "ref: refs/heads/main".to_owned()],
        ];
        tags.extend(refs.iter().map(|(name, oid)| vec![(*name).to_owned(), oid.to_string()]));
        self.sign(Kind::RepoState, SOME_TIME, &tags)
    }

    /// A pull request to `owner`'s repository; `urls` are its own.
    pub(crate) fn pull_request(
        &self,
        owner: &Self,
        identifier: &str,
        tip: Oid,
        urls: &[&str],
    ) -> Event {
        let mut tags = vec![
            vec!["a".to_owned(), format!("30617:{}:{identifier}", owner.key().to_hex())],
            vec!["c".to_owned(), tip.to_string()],
        ];
        if !urls.is_empty() {
            let urls = urls.iter().map(|url| (*url).to_owned());
            tags.push(std::iter::once("clone".to_owned()).chain(urls).collect());
        }
        self.sign(Kind::GitPullRequest, SOME_TIME, &tags)
    }

    /// Any event.
    pub(crate) fn sign<T: AsRef<[S]>, S: AsRef<str>>(
        &self,
        kind: Kind,
        created_at: u64,
        tags: &[T],
    ) -> Event {
        let tags = tags.iter().map(|tag| {
            Tag::parse(tag.as_ref().iter().map(|value| value.as_ref().to_owned()))
                .expect("a tag has a name")
        });
        EventBuilder::new(kind, "")
            .tags(tags)
            .custom_created_at(Timestamp::from_secs(created_at))
            .finalize(&self.keys)
            .expect("a key can sign")
    }
}

/// The events as lines.
pub(crate) fn lines<'a>(events: impl IntoIterator<Item = &'a Event>) -> String {
    events.into_iter().map(|event| event.as_json() + "\n").collect()
}
