use std::path::PathBuf;

use nostr::key::PublicKey;
use purgatory_sync::{OurDomain, SyncConfig};

use super::{PeerSettings, RelayLimits};
use crate::{git::Limits, store::StoreConfig};

/// The settings of a [`Relay`](super::Relay).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelayConfig {
    /// The name under which clients reach this service. Announcements have to list it (R11).
    pub domain: OurDomain,
    /// Whose service it is, for the document about it (NIP-11).
    pub owner: Option<PublicKey>,
    /// Where the repositories are.
    pub git_data: PathBuf,
    /// Where the events are, and what is held.
    pub relay_data: PathBuf,
    /// What keeps the events.
    pub backend: Backend,
    /// Whether loopback and private addresses may be asked for git data and events. Default: no.
    pub allow_private_networks: bool,
    /// The settings of the engine.
    pub sync: SyncConfig,
    /// The settings of the store. Default: [`StoreConfig::relay`].
    pub store: StoreConfig,
    /// What clients get.
    pub limits: RelayLimits,
    /// What a fetch and a push may take.
    pub git: Limits,
    /// How other relays are heard.
    pub peers: PeerSettings,
}

/// What keeps the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// LMDB, in the folder of the relay's data.
    #[default]
    Lmdb,
    /// Memory: all events are gone with the process, held ones included. For trying it out.
    Memory,
}

impl RelayConfig {
    /// The default settings for a service of this name, with its data in these two folders.
    pub fn new(
        domain: OurDomain,
        git_data: impl Into<PathBuf>,
        relay_data: impl Into<PathBuf>,
    ) -> Self {
        Self {
            domain,
            owner: None,
            git_data: git_data.into(),
            relay_data: relay_data.into(),
            backend: Backend::default(),
            allow_private_networks: false,
            sync: SyncConfig::default(),
            store: StoreConfig::relay(),
            limits: RelayLimits::default(),
            git: Limits::default(),
            peers: PeerSettings::default(),
        }
    }
}
