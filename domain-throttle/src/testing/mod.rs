//! For those who write a [`Throttle`]: a suite that says whether it keeps the
//! rules.
//!
//! Implement [`Backend`] for what you built, and let a test call [`check`]:
//!
//! ```
//! use std::{sync::Arc, time::{Duration, Instant}};
//! use domain_throttle::{DomainThrottle, Limits, Throttle, testing};
//!
//! struct InMemory;
//!
//! #[async_trait::async_trait]
//! impl testing::Backend for InMemory {
//!     async fn throttle(&self, limits: Limits) -> Arc<dyn Throttle> {
//!         Arc::new(DomainThrottle::builder().limits(limits).build())
//!     }
//!     fn now(&self) -> Instant {
//!         tokio::time::Instant::now().into_std()
//!     }
//!     async fn advance(&self, by: Duration) {
//!         tokio::time::sleep(by).await; // on tokio's paused clock
//!         tokio::task::yield_now().await;
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! testing::check(&InMemory).await
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cases;
mod waiters;

use std::{
    error::Error,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;

use crate::{Limits, Throttle};

/// A throttle under test, and the time it lives in.
#[async_trait]
pub trait Backend: Send + Sync {
    /// A throttle that has seen nothing yet, with these limits for every domain.
    ///
    /// # Cancel safety
    ///
    /// The check never drops it early.
    async fn throttle(&self, limits: Limits) -> Arc<dyn Throttle>;

    /// The time as the throttle sees it: what `until` of a denial is compared with.
    fn now(&self) -> Instant;

    /// Lets so much time pass for every throttle of this backend, and returns when what that brings
    /// about has happened: whoever may go was woken. Also called with zero, after something else
    /// has happened.
    ///
    /// # Cancel safety
    ///
    /// The check never drops it early.
    async fn advance(&self, by: Duration);
}

/// What a throttle did against the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

/// One rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The name of the rule: `L1` to `L14`, as in the crate's documentation.
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
}

impl Violations {
    /// All of them, by rule.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.0.iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the throttle breaks {} of the rules:", self.0.len())?;
        self.0.iter().try_for_each(|found| write!(f, "\n{}: {}", found.rule, found.what))
    }
}

impl Error for Violations {}

/// Tries what the rules L1 to L10 say of any throttle. Each case has a throttle of its own.
///
/// It waits for nothing by itself: a future is polled only after its waker was called, so a wake-up
/// that is lost is found and does not hang the test.
///
/// # Errors
///
/// [`Violations`] with the name of each rule that was seen broken.
///
/// # Cancel safety
///
/// A dropped check is over; the throttles that it made are dropped with it.
pub async fn check(backend: &dyn Backend) -> Result<(), Violations> {
    let mut found = Vec::new();
    for case in cases::ALL {
        if let Err(what) = case.run(backend).await {
            found.push(Violation { rule: case.rule, what });
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Violations(found)) }
}
