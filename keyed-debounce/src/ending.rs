use std::{
    num::NonZeroU32,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use crate::{Backoff, Exponential, Outcome};

/// An [`Outcome`] with its delays worked out, so that the core need not call a [`Backoff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The work is done.
    Done,
    /// The work failed.
    Failed {
        /// How long the key waits if nobody requested it during the run.
        delay: Duration,
        /// How long it waits at most if somebody did.
        delay_if_requested: Duration,
    },
    /// The work could not be tried; no failure.
    Deferred {
        /// How long the key waits.
        delay: Duration,
    },
}

impl Ending {
    /// What `outcome` means for a run that was the `attempt`-th in a row.
    pub fn new(outcome: Outcome, attempt: u32, backoff: &dyn Backoff, random: u64) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::Retry => {
                let failures = NonZeroU32::new(attempt).unwrap_or(NonZeroU32::MIN);
                Self::Failed {
                    delay: delay(backoff, failures, random),
                    delay_if_requested: delay(backoff, NonZeroU32::MIN, random),
                }
            }
            Outcome::RetryAfter(delay) => Self::Failed { delay, delay_if_requested: delay },
            Outcome::Defer(delay) => Self::Deferred { delay },
        }
    }

    pub(crate) fn delay_if_requested(self) -> Option<Duration> {
        match self {
            Self::Done => None,
            Self::Failed { delay_if_requested: delay, .. } | Self::Deferred { delay } => {
                Some(delay)
            }
        }
    }
}

/// A run may end while its thread panics: a second panic would end the process.
fn delay(backoff: &dyn Backoff, failures: NonZeroU32, random: u64) -> Duration {
    catch_unwind(AssertUnwindSafe(|| backoff.delay(failures, random))).unwrap_or_else(|panic| {
        // What was thrown may throw again when it is dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
        Exponential::DEFAULT.delay(failures, random)
    })
}
