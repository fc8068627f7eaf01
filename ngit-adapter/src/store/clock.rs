//! The only file of the store that reads a clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970. Wall time, because what is held outlives the process and downtime counts.
#[expect(clippy::disallowed_methods, reason = "the shell's clock: the store is told the time")]
pub(super) fn system_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
