use std::{num::NonZeroU32, time::Duration};

use crate::nip34::EventLimits;

/// What a [`Relay`](super::Relay) gives to its clients.
///
/// | field | default | over it |
/// |---|---|---|
/// | `connections` | 1,000 | new ones wait until one ends |
/// | `subscriptions` | 1,000 a connection | `CLOSED` |
/// | `messages_per_minute` | 1,200 a connection | read more slowly |
/// | `events_per_minute` | 600 a connection | read more slowly |
/// | `results` | 1,000 a filter | the newest are sent |
/// | `reconciled` | 250,000 events a reconciliation | `NEG-ERR` |
/// | `event` | 1 MiB and 10,000 tags | `OK` false |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayLimits {
    /// How many connections there are at once, of any kind. Default 1,000.
    pub connections: NonZeroU32,
    /// How many subscriptions one connection has at once. Default 1,000.
    pub subscriptions: NonZeroU32,
    /// How many messages one connection may send in a minute. A client that sends more is read more slowly.
    /// Default 1,200.
    pub messages_per_minute: NonZeroU32,
    /// How many of them may be events. Default 600.
    pub events_per_minute: NonZeroU32,
    /// How many stored events one filter gives. Default 1,000.
    pub results: NonZeroU32,
    /// How many events one reconciliation (NIP-77) may be about. Default 250,000.
    pub reconciled: NonZeroU32,
    /// How large an event may be.
    pub event: EventLimits,
}

impl Default for RelayLimits {
    fn default() -> Self {
        Self {
            connections: at_least_one(1_000),
            subscriptions: at_least_one(1_000),
            messages_per_minute: at_least_one(1_200),
            events_per_minute: at_least_one(600),
            results: at_least_one(1_000),
            reconciled: at_least_one(250_000),
            event: EventLimits::default(),
        }
    }
}

const fn at_least_one(number: u32) -> NonZeroU32 {
    match NonZeroU32::new(number) {
        Some(number) => number,
        None => NonZeroU32::MIN,
    }
}

/// The most bytes of a subscription's or reconciliation's id.
pub(super) const MAX_SUBSCRIPTION_ID: usize = 256;
/// The most bytes of a message that is no event.
pub(super) const MAX_QUERY_BYTES: usize = 512 << 10;
/// The most bytes of all filters that are on in a connection.
pub(super) const MAX_FILTER_BYTES: usize = 4 << 20;
/// The most filters of one subscription.
pub(super) const MAX_FILTERS: usize = 20;
/// How many reconciliations one connection has at once.
pub(super) const MAX_RECONCILIATIONS: usize = 4;
/// How many reconciliations there are at once, over all connections.
pub(super) const MAX_ALL_RECONCILIATIONS: usize = 64;
/// How many queries run in the database at once.
pub(super) const MAX_QUERIES: usize = 32;
/// The most bytes of one of our reconciliation messages, before it is written in hex.
pub(super) const RECONCILIATION_FRAME: u64 = 128 << 10;
/// How long a message may take to be taken by a client.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// How often a connection is asked whether it lives. One that says nothing for two of them is closed.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(60);
/// How far in the future an event may be dated: NIP-11's `created_at_upper_limit`.
pub(super) const MAX_AHEAD: Duration = Duration::from_secs(15 * 60);

impl RelayLimits {
    /// The most bytes of a message: an event and what stands around it.
    pub(super) fn message_bytes(&self) -> usize {
        self.event.max_bytes.saturating_add(1_024).max(MAX_QUERY_BYTES)
    }
}
