use std::{num::NonZeroU32, time::Duration};

/// How long a key waits after failures in a row.
///
/// Called when a run ends with [`Outcome::Retry`](crate::Outcome::Retry), never under a lock.
pub trait Backoff: Send + Sync {
    /// The delay after the `failures`-th failure in a row. `random` is a fresh random number, for
    /// those who want jitter.
    ///
    /// A panic in here is caught, and the key waits as long as [`Exponential::DEFAULT`] says.
    fn delay(&self, failures: NonZeroU32, random: u64) -> Duration;
}

/// Any function of the failure count and a random number is a backoff.
impl<F: Fn(NonZeroU32, u64) -> Duration + Send + Sync> Backoff for F {
    fn delay(&self, failures: NonZeroU32, random: u64) -> Duration {
        self(failures, random)
    }
}

/// A delay that grows by a factor with each failure in a row, up to a cap.
///
/// The default is 20, 40, 80, 120, 120, ... seconds, without jitter.
///
/// The delay is never above the cap, jitter included, and never zero unless `initial` or `cap` is.
/// Without jitter it never shrinks from one failure to the next. All failure counts up to
/// [`u32::MAX`] are fine: nothing overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponential {
    initial: Duration,
    factor: u32,
    cap: Duration,
    jitter_percent: u8,
}

impl Exponential {
    /// 20, 40, 80, 120, 120, ... seconds, without jitter.
    pub const DEFAULT: Self = Self::new(Duration::from_secs(20), 2, Duration::from_secs(120));

    /// `initial` after the first failure, `factor` times as long after each further one, at most
    /// `cap`. A factor of 0 or 1 makes the delay constant.
    pub const fn new(initial: Duration, factor: u32, cap: Duration) -> Self {
        Self { initial, factor: if factor == 0 { 1 } else { factor }, cap, jitter_percent: 0 }
    }

    /// Makes each delay shorter by a random part of up to `percent` of it, so that keys that failed
    /// together do not come back together. Values above 100 count as 100.
    #[must_use]
    pub const fn with_jitter_percent(mut self, percent: u8) -> Self {
        self.jitter_percent = if percent > 100 { 100 } else { percent };
        self
    }

    /// The delay without jitter, in nanoseconds.
    fn base(&self, failures: NonZeroU32) -> u128 {
        let cap = self.cap.as_nanos();
        u128::from(self.factor)
            .checked_pow(failures.get() - 1)
            .and_then(|factor| factor.checked_mul(self.initial.as_nanos()))
            .map_or(if self.initial.is_zero() { 0 } else { cap }, |delay| delay.min(cap))
    }
}

impl Default for Exponential {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Backoff for Exponential {
    fn delay(&self, failures: NonZeroU32, random: u64) -> Duration {
        let base = self.base(failures);
        // Less than `base` whatever the random number, so what is left is never zero.
        let part = base * u128::from(self.jitter_percent) / 100;
        let cut = (part * u128::from(random >> 32)) >> 32;
        from_nanos(base - cut)
    }
}

fn from_nanos(nanos: u128) -> Duration {
    let secs = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanos % 1_000_000_000).unwrap_or(0);
    Duration::new(secs, rest)
}
