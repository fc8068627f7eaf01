//! The one place of this crate that reads the clock and arms timers.

use std::time::{Duration, Instant};

/// Now, as tokio's clock has it, so that paused time in tests holds here too.
#[expect(
    clippy::disallowed_methods,
    reason = "the shell's clock: everything else is told the time"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Waits until `at`.
#[expect(clippy::disallowed_methods, reason = "the shell's timer: the core says until when")]
pub(crate) async fn until(at: Instant) {
    tokio::time::sleep_until(tokio::time::Instant::from_std(at)).await;
}

/// Waits this long.
pub(crate) async fn pause(length: Duration) {
    match now().checked_add(length) {
        Some(at) => until(at).await,
        None => std::future::pending().await,
    }
}
