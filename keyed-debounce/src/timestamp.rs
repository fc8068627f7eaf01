use std::{ops::Add, time::Duration};

/// A point in time, as the pure core sees it: nanoseconds since an origin that the caller chooses.
///
/// The core never reads a clock. Whoever drives it maps a clock of its own to timestamps: the tokio
/// shell counts from the moment the debouncer was built, a simulation counts from zero. All
/// arithmetic saturates: the last representable timestamp, 584 years after the origin, stands for
/// "never".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ORIGIN: Self = Self(0);
    /// The last timestamp, about 584 years after the origin.
    pub const MAX: Self = Self(u64::MAX);

    /// The timestamp `elapsed` after the origin, or [`Timestamp::MAX`] if that is too far.
    pub const fn from_origin(elapsed: Duration) -> Self {
        Self(nanos(elapsed))
    }

    /// How long after the origin this is.
    pub const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The timestamp `delay` later, or [`Timestamp::MAX`] if that is too far.
    pub const fn saturating_add(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(nanos(delay)))
    }

    /// The next timestamp that can be told from this one.
    pub(crate) const fn just_after(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Saturates, as [`Timestamp::saturating_add`] does.
impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, delay: Duration) -> Self {
        self.saturating_add(delay)
    }
}

/// Whole nanoseconds of a duration, saturating after 584 years.
pub(crate) const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 {
        u64::MAX
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "compared with u64::MAX above")]
        {
            nanos as u64
        }
    }
}
