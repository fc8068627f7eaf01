use std::{num::NonZeroU32, time::Duration};

/// What one domain may be asked.
///
/// Zero requests cannot be said. A `window` of zero holds no two starts, so only `max_concurrent`
/// limits then. Each start that a window may hold costs four bytes once it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// How many requests may be on at once. Default 5.
    pub max_concurrent: NonZeroU32,
    /// How many requests may start in any half-open interval of length `window`. Default 30.
    pub max_per_window: NonZeroU32,
    /// The length of that interval. Default 60 s.
    pub window: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_concurrent: NonZeroU32::MIN.saturating_add(4),
            max_per_window: NonZeroU32::MIN.saturating_add(29),
            window: Duration::from_secs(60),
        }
    }
}
