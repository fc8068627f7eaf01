#![expect(
    clippy::disallowed_methods,
    reason = "the one place of the shell that reads the clock and arms a timer"
)]

use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::timestamp::Timestamp;

/// The longest single sleep. Longer waits are slept in parts: far instants upset timers.
const LONGEST_SLEEP: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Tokio's clock, counted from when the debouncer was built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_origin(Instant::now().saturating_duration_since(self.origin))
    }

    /// When to wake up for `at`, at the latest in a year.
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        let now = Instant::now();
        let latest = now.checked_add(LONGEST_SLEEP).unwrap_or(now);
        self.origin.checked_add(at.since_origin()).map_or(latest, |at| at.min(latest))
    }

    /// A timer that is not armed yet.
    pub(crate) fn timer(&self) -> Sleep {
        sleep_until(self.origin)
    }
}
