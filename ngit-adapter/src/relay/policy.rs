//! What this relay is for: announcements that name it, and what is about the repositories that it knows.

use std::collections::BTreeSet;

use nostr::{
    event::{Event, EventId, Kind},
    filter::Filter,
    key::PublicKey,
};
use purgatory_sync::Identifier;
use url::Url;

use super::{admit::Rejected, shared::Shared};
use crate::{RepositoryId, nip34::Announcement};

/// The most tags of an event that are looked up.
const MAX_LOOKED_UP: usize = 200;

/// Whether an event is any of this relay's business.
///
/// - An announcement has to name this service in `clone` and in `relays` (R11).
/// - States, pull requests, updates and deletions are the store's business.
/// - A patch, and anything else, has to be about something that is known here: a repository that is held or
///   served, or an event that is served.
/// - A profile and a list of relays are taken of those who have something here.
pub(super) async fn check(shared: &Shared, event: &Event) -> Result<(), Rejected> {
    match event.kind.as_u16() {
        30_617 => announcement(shared, event),
        5 | 30_618 | 1_618 | 1_619 => Ok(()),
        20_000..30_000 => Err(Rejected::new("blocked", "this relay keeps no ephemeral events")),
        0 | 10_002 | 10_317 => known_author(shared, event).await,
        _ => about_something_known(shared, event).await,
    }
}

/// R11: an announcement names this service in both of its lists.
fn announcement(shared: &Shared, event: &Event) -> Result<(), Rejected> {
    let announcement = Announcement::from_tags(&event.tags)
        .map_err(|error| Rejected::new("invalid", error.to_string()))?;
    let id = RepositoryId::new(event.pubkey, announcement.identifier.clone());
    let ours = shared.ours();
    let clone = announcement.clone_urls.iter().any(|url| {
        ours.serves(url) && RepositoryId::from_url_path(url.url().path()).as_ref() == Some(&id)
    });
    if !clone {
        let path = id.url_path();
        return Err(Rejected::new(
            "blocked",
            format!("its `clone` does not list this service: http(s)://{ours}{path}"),
        ));
    }
    if !announcement.relays.iter().any(|relay| is_us(shared, relay)) {
        return Err(Rejected::new(
            "blocked",
            format!("its `relays` does not list this service: ws(s)://{ours}"),
        ));
    }
    Ok(())
}

fn is_us(shared: &Shared, relay: &str) -> bool {
    let Ok(url) = relay.parse::<Url>() else { return false };
    // The same host and port by the same rule as for clone URLs, which knows only http.
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return false,
    };
    let Some(rest) = relay.trim().split_once("://").map(|(_, rest)| rest) else { return false };
    format!("{scheme}://{rest}").parse().is_ok_and(|url| shared.ours().serves(&url))
}

async fn known_author(shared: &Shared, event: &Event) -> Result<(), Rejected> {
    let filter = Filter::new().author(event.pubkey).limit(1);
    if found(shared, filter).await? {
        return Ok(());
    }
    Err(Rejected::new("blocked", "this relay keeps profiles of those who have git events here"))
}

async fn about_something_known(shared: &Shared, event: &Event) -> Result<(), Rejected> {
    let mut ids = BTreeSet::new();
    let mut repositories = BTreeSet::new();
    let mut addresses = BTreeSet::new();
    for tag in event.tags.iter() {
        let [name, value, ..] = tag.as_slice() else { continue };
        if ids.len() + repositories.len() + addresses.len() >= MAX_LOOKED_UP {
            break;
        }
        if !matches!(name.as_str(), "e" | "E" | "q" | "a" | "A") {
            continue;
        }
        if let Ok(id) = EventId::from_hex(value) {
            ids.insert(id);
        } else if let Some((kind, id)) = address(value) {
            addresses.insert((kind, id.owner, id.identifier.clone()));
            if kind == 30_617 {
                repositories.insert(id);
            }
        }
    }
    for id in &repositories {
        if shared.store().is_announced(id).await.map_err(|error| {
            tracing::warn!(%error, "the database could not be asked");
            Rejected::error()
        })? {
            return Ok(());
        }
    }
    if !ids.is_empty() && found(shared, Filter::new().ids(ids).limit(1)).await? {
        return Ok(());
    }
    for (kind, author, identifier) in addresses.into_iter().filter(|(kind, ..)| *kind != 30_617) {
        let filter =
            Filter::new().kind(Kind::from(kind)).author(author).identifier(identifier.as_str());
        if found(shared, filter.limit(1)).await? {
            return Ok(());
        }
    }
    // What is served may have named it before it came.
    if found(shared, Filter::new().event(event.id).limit(1)).await? {
        return Ok(());
    }
    Err(Rejected::new("blocked", "it is about no repository and no event that this relay knows"))
}

fn address(value: &str) -> Option<(u16, RepositoryId)> {
    let mut parts = value.splitn(3, ':');
    let kind = parts.next()?.parse().ok()?;
    let author = PublicKey::from_hex(parts.next()?).ok()?;
    Some((kind, RepositoryId::new(author, Identifier::from(parts.next()?))))
}

async fn found(shared: &Shared, filter: Filter) -> Result<bool, Rejected> {
    let _turn = shared.query_turn().await;
    let found = shared.database().query(filter).await.map_err(|error| {
        tracing::warn!(%error, "the database could not be asked");
        Rejected::error()
    })?;
    Ok(!found.is_empty())
}
