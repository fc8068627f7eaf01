use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, ValueEnum, value_parser};
use nostr::{key::PublicKey, nips::nip19::FromBech32};
use purgatory_sync::OurDomain;

use super::SyncArgs;
use crate::relay::{Backend, PeerUrl, PeerUrlError, RelayConfig};

/// A relay on one port: nostr websocket, git over smart HTTP, metrics, health, and a status page.
///
/// A flag beats the environment, which beats the default. SIGTERM and Ctrl-C end it cleanly, with exit status 0.
/// Log lines go to standard error; RUST_LOG chooses them (default: info).
#[derive(Args, Debug)]
pub(super) struct ServeOptions {
    /// Where to listen. Port 0 is any free one.
    #[arg(
        long,
        value_name = "ADDR:PORT",
        env = "NGIT_BIND_ADDRESS",
        default_value = "127.0.0.1:8080",
        value_parser = address
    )]
    pub(super) bind_address: SocketAddr,
    /// The name under which clients reach it; announcements have to list it. Default: the address it listens on.
    #[arg(long, value_name = "HOST[:PORT]", env = "NGIT_DOMAIN")]
    pub(super) domain: Option<OurDomain>,
    /// Whose relay it is, for the document about it.
    #[arg(long, value_name = "NPUB", env = "NGIT_OWNER_NPUB", value_parser = npub)]
    pub(super) owner_npub: Option<PublicKey>,
    /// Where the repositories are. Made if it is not there.
    #[arg(long, value_name = "DIR", env = "NGIT_GIT_DATA_PATH", default_value = "data/git")]
    pub(super) git_data_path: PathBuf,
    /// Where the events are, and what is held. Made if it is not there.
    #[arg(long, value_name = "DIR", env = "NGIT_RELAY_DATA_PATH", default_value = "data/relay")]
    pub(super) relay_data_path: PathBuf,
    /// What keeps the events. `memory` forgets all at the end: for trying it out.
    #[arg(long, value_name = "KIND", env = "NGIT_DATABASE_BACKEND", default_value = "lmdb")]
    pub(super) database_backend: BackendName,
    /// Let URLs lead to loopback and private addresses.
    #[arg(long, env = "NGIT_ALLOW_PRIVATE_NETWORKS", value_parser = yes_or_no)]
    pub(super) allow_private_networks: bool,
    /// Relays that are asked for git events in any case, with commas between them. Others are those that served
    /// announcements name.
    #[arg(
        long,
        value_name = "URL,...",
        env = "NGIT_SYNC_BOOTSTRAP_RELAY_URL",
        default_value = "",
        hide_default_value = true
    )]
    bootstrap_relay_url: PeerUrls,
    /// How often relays are asked for everything again, and missing data of what is served is looked for. An hour at most.
    #[arg(long, value_name = "SECS", env = "NGIT_SYNC_AGAIN_SECS", default_value = "3600", value_parser = up_to(3_600))]
    sync_again_secs: u32,
    /// How log lines are written.
    #[arg(long, value_name = "FORMAT", env = "NGIT_LOG_FORMAT", default_value = "text")]
    pub(super) log_format: LogFormat,
    #[command(flatten)]
    pub(super) sync: SyncArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Connections at once, of any kind.
    #[arg(long, value_name = "N", env = "NGIT_MAX_CONNECTIONS", default_value = "1000", value_parser = up_to(100_000))]
    max_connections: u32,
    /// Subscriptions of one connection.
    #[arg(long, value_name = "N", env = "NGIT_MAX_SUBSCRIPTIONS", default_value = "1000", value_parser = up_to(100_000))]
    max_subscriptions: u32,
    /// Messages of one connection in a minute; over it, it is read more slowly.
    #[arg(long, value_name = "N", env = "NGIT_MAX_MESSAGES_PER_MINUTE", default_value = "1200", value_parser = up_to(1_000_000))]
    max_messages_per_minute: u32,
    /// Events of one connection in a minute; over it, it is read more slowly.
    #[arg(long, value_name = "N", env = "NGIT_MAX_EVENTS_PER_MINUTE", default_value = "600", value_parser = up_to(1_000_000))]
    max_events_per_minute: u32,
    /// Other relays that are heard at once. 0: none is.
    #[arg(long, value_name = "N", env = "NGIT_MAX_PEERS", default_value = "64", value_parser = value_parser!(u8).range(0..=64))]
    max_peers: u8,
    /// Bytes of an event.
    #[arg(long, value_name = "BYTES", env = "NGIT_MAX_EVENT_BYTES", default_value = "1048576", value_parser = up_to(16 << 20))]
    max_event_bytes: u32,
    /// Bytes of a pack, pushed or fetched.
    #[arg(long, value_name = "BYTES", env = "NGIT_MAX_PACK_BYTES", default_value = "2147483648", value_parser = value_parser!(u64).range(1..=1 << 40))]
    max_pack_bytes: u64,
    /// How long an event is held.
    #[arg(long, value_name = "SECS", env = "NGIT_HOLD_SECS", default_value = "1800", value_parser = up_to(31_536_000))]
    hold_secs: u32,
    /// How long a pushed commit waits for its pull request.
    #[arg(long, value_name = "SECS", env = "NGIT_HOLD_PUSHED_SECS", default_value = "1200", value_parser = up_to(31_536_000))]
    hold_pushed_secs: u32,
}

/// The URLs of relays, with commas between them. None is fine.
#[derive(Clone, Debug)]
struct PeerUrls(Vec<PeerUrl>);

impl FromStr for PeerUrls {
    type Err = PeerUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let urls = text.split(',').map(str::trim).filter(|url| !url.is_empty());
        urls.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "allowed is an IP address with a port, like 127.0.0.1:8080 or [::]:8080")
}

fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Ok(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Ok(false),
        _ => Err("allowed is true or false (in the environment: NGIT_ALLOW_PRIVATE_NETWORKS)"),
    }
}

/// A whole number from 1 to `most`; another one is refused with these bounds.
fn up_to(most: u32) -> clap::builder::RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..=i64::from(most))
}

/// What keeps the events, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BackendName {
    Lmdb,
    Memory,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

fn npub(text: &str) -> Result<PublicKey, &'static str> {
    PublicKey::from_bech32(text)
        .ok()
        .filter(|_| text.starts_with("npub1"))
        .ok_or("allowed is a public key that starts with npub1")
}

impl ServeOptions {
    /// The settings of a relay that listens on `bound`.
    pub(super) fn to_config(&self, bound: SocketAddr) -> Result<RelayConfig, super::Failure> {
        let domain = match &self.domain {
            Some(domain) => domain.clone(),
            None => bound
                .to_string()
                .parse()
                .map_err(super::Failure::because("the address has no name"))?,
        };
        let mut config = RelayConfig::new(domain, &self.git_data_path, &self.relay_data_path);
        config.owner = self.owner_npub;
        config.backend = match self.database_backend {
            BackendName::Lmdb => Backend::Lmdb,
            BackendName::Memory => Backend::Memory,
        };
        config.allow_private_networks = self.allow_private_networks;
        config.sync = self.sync.to_config().map_err(super::Failure::because("a wrong setting"))?;
        let limits = &self.limits;
        config.limits.connections = at_least_one(limits.max_connections);
        config.limits.subscriptions = at_least_one(limits.max_subscriptions);
        config.limits.messages_per_minute = at_least_one(limits.max_messages_per_minute);
        config.limits.events_per_minute = at_least_one(limits.max_events_per_minute);
        let bytes = usize::try_from(limits.max_event_bytes).unwrap_or(usize::MAX);
        config.limits.event.max_bytes = bytes;
        config.store.event_limits = config.limits.event;
        config.store.hold_for = Some(Duration::from_secs(limits.hold_secs.into()));
        config.store.keep_placeholder_for = Duration::from_secs(limits.hold_pushed_secs.into());
        config.git.pack_bytes = limits.max_pack_bytes;
        config.peers.bootstrap = self.bootstrap_relay_url.0.clone();
        config.peers.again_every = Duration::from_secs(self.sync_again_secs.into());
        config.peers.most = usize::from(limits.max_peers);
        Ok(config)
    }
}

/// Zero was refused when the arguments were read.
fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}
