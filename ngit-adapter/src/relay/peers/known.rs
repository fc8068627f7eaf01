//! What is announced here, and which relays those announcements name.

use std::collections::BTreeSet;

use nostr::key::PublicKey;
use purgatory_sync::StoreError;

use super::url::PeerUrl;
use crate::{RepositoryId, relay::shared::Shared};

/// The repositories that are announced here, held or served.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What [`Shared::announced_version`] said before they were listed.
    pub(super) version: u64,
    pub(super) repositories: BTreeSet<RepositoryId>,
}

/// One look at all announcements.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) known: Known,
    /// The relays that served announcements name, each with an announcement's owner.
    pub(super) named: Vec<(PublicKey, PeerUrl)>,
}

pub(super) async fn list(shared: &Shared) -> Result<Listing, StoreError> {
    let version = shared.announced_version();
    let announced = shared.store().all_announced().await?;
    let named = announced.iter().flat_map(|it| {
        let owner = it.repository.owner;
        it.relays.iter().filter_map(move |relay| Some((owner, relay.parse().ok()?)))
    });
    let named = named.collect();
    let repositories = announced.into_iter().map(|it| it.repository).collect();
    Ok(Listing { known: Known { version, repositories }, named })
}
