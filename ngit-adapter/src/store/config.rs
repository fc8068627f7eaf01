use std::time::Duration;

use crate::nip34::EventLimits;

/// The store's settings.
///
/// Who gives way where a bound is reached is told in the [module's page](super#limits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// How large an event may be.
    pub event_limits: EventLimits,
    /// How many events are held at once, announcements included. Default 200,000.
    pub max_held: usize,
    /// How many announcements of one identifier are held. Default 500.
    pub max_announcements: usize,
    /// How many states of one identifier are held. Default 1,000.
    pub max_states: usize,
    /// How many pull requests and updates of one identifier are held. Default 5,000.
    pub max_pull_requests: usize,
    /// How many repositories of one identifier are made for owners who have no state of their own and whom the author
    /// of the one that moves them does not trust. Anyone can announce a name and trust its author, and each such
    /// repository is one more copy. Default 50.
    pub max_followers: usize,
    /// How long an event is held. `None`, the default, is for ever; a relay sets 30 minutes.
    pub hold_for: Option<Duration>,
    /// How long the id of an event that was given up is remembered. Default 7 days.
    pub remember_for: Duration,
    /// How many ids are remembered; the oldest go first. Default 200,000.
    pub max_remembered: usize,
    /// How long data that came before its event is kept. Default 20 minutes.
    pub keep_placeholder_for: Duration,
    /// How many placeholders there are at once. Default 10,000.
    pub max_placeholders: usize,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            event_limits: EventLimits::default(),
            max_held: 200_000,
            max_announcements: 500,
            max_states: 1_000,
            max_pull_requests: 5_000,
            max_followers: 50,
            hold_for: None,
            remember_for: Duration::from_secs(7 * 24 * 60 * 60),
            max_remembered: 200_000,
            keep_placeholder_for: Duration::from_secs(20 * 60),
            max_placeholders: 10_000,
        }
    }
}

impl StoreConfig {
    /// The settings of a relay: held events go after 30 minutes.
    pub fn relay() -> Self {
        Self { hold_for: Some(Duration::from_secs(30 * 60)), ..Self::default() }
    }

    /// The same without bounds on what is held.
    pub(super) fn unbounded(self) -> Self {
        Self {
            max_held: usize::MAX,
            max_announcements: usize::MAX,
            max_states: usize::MAX,
            max_pull_requests: usize::MAX,
            ..self
        }
    }

    /// When an event that comes now goes, in seconds since 1970.
    pub(super) fn deadline(&self, now: u64) -> u64 {
        self.hold_for.map_or(u64::MAX, |hold_for| now.saturating_add(hold_for.as_secs()))
    }
}
