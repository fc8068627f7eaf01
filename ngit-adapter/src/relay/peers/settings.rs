use std::{num::NonZeroU32, time::Duration};

use purgatory_sync::keyed_debounce::Exponential;

use super::PeerUrl;

/// How a [`Relay`](crate::relay::Relay) hears from other relays (R9).
///
/// | field | default | over it |
/// |---|---|---|
/// | `most` | 64 | the relays that the fewest owners name are left out |
/// | `connect_timeout` | 10 s, and again for TLS and the handshake | tried again later |
/// | `idle_timeout` | 30 s for an answer | asked in another way, or later |
/// | `frames_per_minute` | 12,000 | read more slowly |
/// | `catch_up_events`, `catch_up_time` | 250,000, 30 min | the rest is asked for the next time |
/// | `again_every` | 1 hour | |
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerSettings {
    /// Relays that are asked in any case. Default: none.
    pub bootstrap: Vec<PeerUrl>,
    /// How many relays are asked at once, the bootstrap relays included. None: no relay is. Default 64.
    pub most: usize,
    /// How long a name and a connection may take, and then how long the handshakes may. Default 10 s.
    pub connect_timeout: Duration,
    /// How long an answer may take. Default 30 s.
    pub idle_timeout: Duration,
    /// How many messages one peer may send in a minute before it is read more slowly. Default 12,000.
    pub frames_per_minute: NonZeroU32,
    /// How many events one catch-up takes. Default 250,000.
    pub catch_up_events: usize,
    /// How long one catch-up takes. Default 30 min.
    pub catch_up_time: Duration,
    /// How long until everything is asked for again, and until missing data of what is served is looked for again.
    /// Default 1 hour.
    pub again_every: Duration,
    /// How long a peer is left alone after failures in a row. Default: 1 s, doubled up to 10 min, up to half of
    /// it at random less.
    pub reconnect: Exponential,
    /// How long a connection lives before failures before it are forgotten. Default 60 s.
    pub healthy_after: Duration,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            bootstrap: Vec::new(),
            most: 64,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            frames_per_minute: const { NonZeroU32::new(12_000).expect("12,000 is not zero") },
            catch_up_events: 250_000,
            catch_up_time: Duration::from_secs(30 * 60),
            again_every: Duration::from_secs(60 * 60),
            reconnect: Exponential::new(Duration::from_secs(1), 2, Duration::from_secs(600))
                .with_jitter_percent(50),
            healthy_after: Duration::from_secs(60),
        }
    }
}
