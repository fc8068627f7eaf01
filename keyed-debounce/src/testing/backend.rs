use std::{fmt, hash::Hash, time::Duration};

use async_trait::async_trait;

use crate::{Backoff, Exponential, Scheduler};

/// What a scheduler's author supplies so that [`check`](crate::testing::check) can try it.
///
/// The check needs to steer time: with real waiting a few thousand steps would take hours. A backend
/// over a store that has a clock of its own is checked with that clock replaced.
#[async_trait]
pub trait Backend: Send + Sync {
    /// The scheduler's keys.
    type Key: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static;
    /// The scheduler.
    type Scheduler: Scheduler<Self::Key>;

    /// A scheduler that knows no key, with no capacity, no rounds and no least interval. Called some
    /// hundred times; earlier ones are dropped before.
    ///
    /// # Cancel safety
    ///
    /// The check never drops it early.
    async fn fresh(&self) -> Self::Scheduler;

    /// The key with this number. Different numbers are different keys.
    fn key(&self, number: u32) -> Self::Key;

    /// Lets the clock of all schedulers go on by `by`, up to many years in one step, then lets
    /// them notice.
    ///
    /// # Cancel safety
    ///
    /// The check never drops it early.
    async fn advance(&self, by: Duration);

    /// Lets everything run that can run without the clock going on. Called when the check has done
    /// something and looks for its effect. By default it yields to the tokio runtime many times, which
    /// is enough if nothing but tasks of the same current-thread runtime has to act.
    ///
    /// # Cancel safety
    ///
    /// The check never drops it early.
    async fn settle(&self) {
        for _ in 0..32 {
            tokio::task::yield_now().await;
        }
    }

    /// The backoff of the schedulers. It is asked with the random number 0, so it should have no
    /// jitter. By default [`Exponential::DEFAULT`].
    fn backoff(&self) -> &dyn Backoff {
        &Exponential::DEFAULT
    }

    /// How late a scheduler may notice that a key is due. Zero by default. Above zero the order of
    /// hand-outs (D11) is not checked.
    fn tolerance(&self) -> Duration {
        Duration::ZERO
    }
}
