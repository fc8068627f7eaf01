//! What the store asks its database.

use std::{collections::BTreeSet, sync::Arc};

use nostr::{
    event::{Event, EventId, Kind},
    filter::{Filter, SingleLetterTag},
    key::PublicKey,
};
use nostr_database::{DatabaseEventStatus, NostrDatabase};
use purgatory_sync::{Identifier, Oid, StoreError};

use super::{deletion::Deletion, version::Version};
use crate::{
    RepositoryId, StateRefs,
    nip34::{self, Announcement, GitEvent, State},
};

/// An announcement that is served.
pub(super) struct StoredAnnouncement {
    pub(super) owner: PublicKey,
    pub(super) version: Version,
    pub(super) announcement: Arc<Announcement>,
}

/// A state that is served.
pub(super) struct StoredState {
    pub(super) author: PublicKey,
    pub(super) version: Version,
    pub(super) refs: StateRefs,
}

fn failed(what: &'static str) -> impl FnOnce(nostr_database::error::Error) -> StoreError {
    move |error| StoreError::new(what).with_source(error)
}

/// The newest of an author's events of one kind for an identifier, by a look at that author alone.
pub(super) async fn newest_of(
    database: &dyn NostrDatabase,
    author: PublicKey,
    kind: Kind,
    identifier: &Identifier,
) -> Result<Option<Version>, StoreError> {
    let filter = Filter::new().author(author).kind(kind).identifier(identifier.as_str());
    let events = query(database, filter).await?;
    // A database may cut long values in its index: it must be that very identifier.
    let same = events.iter().filter(|event| names(event, identifier));
    Ok(same.map(Version::of).max())
}

fn names(event: &Event, identifier: &Identifier) -> bool {
    nip34::identifier(&event.tags).is_ok_and(|found| found == *identifier)
}

pub(super) async fn announcements(
    database: &dyn NostrDatabase,
    identifier: &Identifier,
) -> Result<Vec<StoredAnnouncement>, StoreError> {
    let filter = Filter::new().kind(Kind::GitRepoAnnouncement).identifier(identifier.as_str());
    let events = query(database, filter).await?;
    let read = events.into_iter().filter_map(|event| {
        let announcement = Arc::new(Announcement::from_tags(&event.tags).ok()?);
        let it =
            StoredAnnouncement { owner: event.pubkey, version: Version::of(&event), announcement };
        (it.announcement.identifier == *identifier).then_some(it)
    });
    Ok(read.collect())
}

/// All announcements that are served.
pub(super) async fn all_announcements(
    database: &dyn NostrDatabase,
) -> Result<Vec<(RepositoryId, Announcement)>, StoreError> {
    let events = query(database, Filter::new().kind(Kind::GitRepoAnnouncement)).await?;
    let read = events.iter().filter_map(|event| {
        let announcement = Announcement::from_tags(&event.tags).ok()?;
        Some((RepositoryId::new(event.pubkey, announcement.identifier.clone()), announcement))
    });
    Ok(read.collect())
}

/// The states of an identifier that name refs. Those without refs move nothing (R3).
pub(super) async fn states(
    database: &dyn NostrDatabase,
    identifier: &Identifier,
) -> Result<Vec<StoredState>, StoreError> {
    let filter = Filter::new().kind(Kind::RepoState).identifier(identifier.as_str());
    let events = query(database, filter).await?;
    Ok(events.iter().filter_map(|event| stored_state(event, identifier)).collect())
}

fn stored_state(event: &Event, identifier: &Identifier) -> Option<StoredState> {
    let state = State::from_tags(&event.tags).ok()?;
    let fits = state.identifier == *identifier && !state.refs.refs.is_empty();
    fits.then(|| StoredState {
        author: event.pubkey,
        version: Version::of(event),
        refs: state.refs,
    })
}

/// The pull requests and updates to an owner's repository that are served, with their commits.
pub(super) async fn pull_requests(
    database: &dyn NostrDatabase,
    owner: &PublicKey,
    identifier: &Identifier,
) -> Result<Vec<(EventId, Oid)>, StoreError> {
    let values = addresses(Kind::GitRepoAnnouncement, owner, identifier);
    let filter = Filter::new()
        .kinds([Kind::GitPullRequest, Kind::GitPullRequestUpdate])
        .custom_tags(SingleLetterTag::LOWERCASE_A, values);
    let events = query(database, filter).await?;
    Ok(events.iter().filter_map(|event| Some((event.id, tip_of(event)?))).collect())
}

/// The commit of a pull request or an update that is served.
pub(super) async fn tip(
    database: &dyn NostrDatabase,
    id: &EventId,
) -> Result<Option<Oid>, StoreError> {
    Ok(event(database, id).await?.as_ref().and_then(tip_of))
}

/// An event that is served.
pub(super) async fn event(
    database: &dyn NostrDatabase,
    id: &EventId,
) -> Result<Option<Event>, StoreError> {
    database.event_by_id(id).await.map_err(failed("the database could not be asked"))
}

fn tip_of(event: &Event) -> Option<Oid> {
    GitEvent::read(event).ok()?.into_proposal().map(|it| it.tip)
}

/// How many deletions that name an event are read. One is enough, if it is one that counts.
const DELETIONS: usize = 16;

/// Whether an event's author has asked for its deletion, before or after it came.
///
/// Only deletions are read that name it: an author may have any number of others.
pub(super) async fn is_deleted(
    database: &dyn NostrDatabase,
    event: &Event,
) -> Result<bool, StoreError> {
    let deletions =
        || Filter::new().author(event.pubkey).kind(Kind::EventDeletion).limit(DELETIONS);
    let id = event.id.to_hex();
    let by_id = deletions().custom_tags(SingleLetterTag::LOWERCASE_E, [id.to_uppercase(), id]);
    let mut found = query(database, by_id).await?;
    if event.kind.is_addressable()
        && let Ok(identifier) = nip34::identifier(&event.tags)
    {
        let addresses = addresses(event.kind, &event.pubkey, &identifier);
        let by_address = deletions().custom_tags(SingleLetterTag::LOWERCASE_A, addresses);
        // An older one is not about it.
        found.append(&mut query(database, by_address.since(event.created_at)).await?);
    }
    Ok(found.iter().any(|deletion| Deletion::read(deletion).covers(event)))
}

/// How events name an addressable one, with the key in both of its usual spellings.
fn addresses(kind: Kind, author: &PublicKey, identifier: &Identifier) -> [String; 2] {
    let author = author.to_hex();
    [author.to_uppercase(), author].map(|author| format!("{}:{author}:{identifier}", kind.as_u16()))
}

/// Whether an event is saved, or deleted, or unknown.
pub(super) async fn status(
    database: &dyn NostrDatabase,
    id: &EventId,
) -> Result<DatabaseEventStatus, StoreError> {
    database.check_id(id).await.map_err(failed("the database could not look an event up"))
}

async fn query(
    database: &dyn NostrDatabase,
    filter: Filter,
) -> Result<BTreeSet<Event>, StoreError> {
    database.query(filter).await.map_err(failed("the database could not be asked"))
}
