use std::time::Duration;

/// How long a key waits before it runs.
///
/// A request with this debounce asks for a run once nothing was asked for `quiet`, and in any case
/// by `max_wait` after the request. `max_wait` below `quiet` is allowed: the key then runs at
/// `max_wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Debounce {
    /// How long the key must go without a request before it runs.
    pub quiet: Duration,
    /// The longest that a request may wait for its run to become due.
    pub max_wait: Duration,
}

impl Debounce {
    /// Run after `quiet` without a request, and by `max_wait` in any case.
    pub const fn new(quiet: Duration, max_wait: Duration) -> Self {
        Self { quiet, max_wait }
    }

    /// A fixed delay that later requests cannot postpone: the soonest request wins.
    pub const fn after(delay: Duration) -> Self {
        Self { quiet: delay, max_wait: delay }
    }

    /// Run as soon as a runner is free.
    pub const fn immediate() -> Self {
        Self::after(Duration::ZERO)
    }
}
