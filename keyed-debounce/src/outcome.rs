use std::time::Duration;

/// How a run ended, as its holder says it with [`Run::finish`](crate::Run::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done. Without a request during the run the key is forgotten.
    Done,
    /// The work failed. The key is tried again after the scheduler's backoff.
    Retry,
    /// The work failed and knows when to try again. Counts as a failure, like [`Outcome::Retry`].
    RetryAfter(Duration),
    /// The work could not be tried yet. The key is due again after this long; it is no failure.
    Defer(Duration),
}
