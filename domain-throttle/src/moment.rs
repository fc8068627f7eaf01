use std::time::Duration;

/// A point in time as the pure core counts it: nanoseconds since an epoch of the caller's choice.
///
/// All sums saturate: 584 years after the epoch time stands still, and nothing panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time.
    pub const MAX: Self = Self(u64::MAX);

    /// This many nanoseconds after the epoch.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment `by` later, or [`MAX`](Self::MAX).
    #[must_use]
    #[inline]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[inline]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in nanoseconds, saturating.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().checked_mul(1_000_000_000);
    let nanos = seconds.and_then(|nanos| nanos.checked_add(u64::from(duration.subsec_nanos())));
    nanos.unwrap_or(u64::MAX)
}
