use nostr::{
    event::{EventBuilder, FinalizeEvent, Kind, Tag},
    key::{Keys, PublicKey, SecretKey},
    types::Timestamp,
};
use purgatory_sync::Oid;

use super::{
    Told,
    history::{Ids, Mark},
};

/// Somebody with a key. The keys are no secret: they sign nothing but this demo.
pub(super) struct Person {
    name: &'static str,
    keys: Keys,
}

/// The instant of the demo's events.
const NOW: u64 = 1_760_000_000;

impl Person {
    pub(super) fn new(name: &'static str) -> Self {
        let secret =
            SecretKey::from_slice(&[name.as_bytes()[0]; 32]).expect("a small number is a key");
        Self { name, keys: Keys::new(secret) }
    }

    fn key(&self) -> PublicKey {
        self.keys.public_key()
    }

    pub(super) fn announcement(&self, repository: &'static str, urls: &[String]) -> Told {
        let clone: Vec<&str> =
            std::iter::once("clone").chain(urls.iter().map(String::as_str)).collect();
        let tags: [&[&str]; 3] = [&["d", repository], &["name", repository], &clone];
        self.sign(
            Kind::GitRepoAnnouncement,
            &tags,
            repository,
            format!("{}'s announcement", self.name),
        )
    }

    pub(super) fn state(
        &self,
        repository: &'static str,
        ids: &Ids,
        main: Mark,
        tags: &[(&str, Mark)],
    ) -> Told {
        let mut all = vec![
            vec!["d".to_owned(), repository.to_owned()],
            vec!["HEAD".to_owned(), "ref: refs/heads/main".to_owned()],
            vec!["refs/heads/main".to_owned(), ids[main].to_string()],
        ];
        for (name, mark) in tags {
            all.push(vec![format!("refs/tags/{name}"), ids[*mark].to_string()]);
        }
        let what = match tags.len() {
            0 => format!("{}'s state: main", self.name),
            _ => format!("{}'s state: main and a tag", self.name),
        };
        self.sign(Kind::RepoState, &all, repository, what)
    }

    pub(super) fn pull_request(
        &self,
        repository: &'static str,
        owner: &Self,
        subject: &str,
        tip: Oid,
        own_url: Option<String>,
    ) -> Told {
        let mut tags = vec![
            vec!["a".to_owned(), format!("30617:{}:{repository}", owner.key().to_hex())],
            vec!["subject".to_owned(), subject.to_owned()],
            vec!["c".to_owned(), tip.to_string()],
        ];
        tags.extend(own_url.map(|url| vec!["clone".to_owned(), url]));
        self.sign(
            Kind::GitPullRequest,
            &tags,
            repository,
            format!("{}'s PR \"{subject}\"", self.name),
        )
    }

    pub(super) fn update(&self, of: &Told, owner: &Self, subject: &str, tip: Oid) -> Told {
        let repository = of.repository;
        let tags = [
            vec!["E".to_owned(), of.event.id.to_hex()],
            vec!["P".to_owned(), of.event.pubkey.to_hex()],
            vec!["a".to_owned(), format!("30617:{}:{repository}", owner.key().to_hex())],
            vec!["c".to_owned(), tip.to_string()],
        ];
        let what = format!("{}'s update of \"{subject}\"", self.name);
        self.sign(Kind::GitPullRequestUpdate, &tags, repository, what)
    }

    fn sign<T: AsRef<[S]>, S: AsRef<str>>(
        &self,
        kind: Kind,
        tags: &[T],
        repository: &'static str,
        what: String,
    ) -> Told {
        let tags = tags.iter().map(|tag| {
            Tag::parse(tag.as_ref().iter().map(|value| value.as_ref().to_owned()))
                .expect("a tag here has a name")
        });
        let event = EventBuilder::new(kind, "")
            .tags(tags)
            .custom_created_at(Timestamp::from_secs(NOW))
            .finalize(&self.keys)
            .expect("a key can sign");
        Told { event, repository, what }
    }
}
