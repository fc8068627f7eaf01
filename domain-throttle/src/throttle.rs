use std::{error::Error, time::Instant};

use async_trait::async_trait;

use crate::{Endpoint, Permit};

/// Leave to ask other people's servers: so many requests at once and so many per window to one domain.
///
/// This is the port: [`DomainThrottle`](crate::DomainThrottle) implements it in memory, others may
/// implement it over a store that several processes share.
///
/// `key` is whoever the request is for. It is the unit of fairness, and one key has at most one
/// permit of a domain at a time.
///
/// # What an implementation owes
///
/// - Check and take are one step. No interleaving of callers exceeds a limit.
/// - While somebody waits who may go, a permit is granted. Nobody has to poll.
/// - A dropped `acquire_any` leaves no trace; a permit that was on its way to it goes to the next in line.
/// - A backend with leases keeps the limits within the lease: it renews the lease while the
///   [`Permit`] lives and wakes [`Permit::lost`] when it cannot. After a crash the lease ends by itself.
#[async_trait]
pub trait Throttle: Send + Sync {
    /// Says whether `key` would get a permit for `at` now. Takes nothing.
    ///
    /// # Errors
    ///
    /// The reason why not, see [`Denied`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it takes nothing.
    async fn check(&self, at: &Endpoint, key: &str) -> Result<(), Denied>;

    /// Takes a permit if there is one now. Never overtakes a waiter that could go.
    ///
    /// # Errors
    ///
    /// The reason why there is none, see [`Denied`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future holds no permit.
    async fn try_acquire(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied>;

    /// Waits in the lines of all these endpoints at once; the first grant wins, the other places are given up.
    ///
    /// A permit that is set aside for a wait is there for one second; if the future is not polled in
    /// that time, the permit goes to the next in line and the wait keeps its place.
    ///
    /// The wait has no time limit of its own. A place at an endpoint that is paused is kept until the pause ends.
    ///
    /// # Errors
    ///
    /// [`ThrottleError`]; an empty `at` is [`ThrottleError::NoEndpoint`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: when the future is dropped its places are given up and a permit that was on its
    /// way goes to the next in line.
    async fn acquire_any(&self, at: &[Endpoint], key: &str) -> Result<Permit, ThrottleError>;
}

/// Why there is no permit now.
///
/// Of several causes the first of this order is named: the key, concurrency, then the timed cause
/// that ends last. `until` is the first instant at which that cause is over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// The key has a permit of this domain already.
    #[error("this key has a request to this domain on already")]
    KeyBusy,
    /// The domain has as many requests on as it may.
    #[error("the domain has as many requests on as it may")]
    Concurrency,
    /// The window is full.
    #[error("the domain's window is full")]
    Window {
        /// When a start leaves the window.
        until: Instant,
    },
    /// The endpoint, the domain, or this key on it is paused.
    #[error("the endpoint is paused")]
    Paused {
        /// When the pause ends. While a probe is out nobody knows; then it is a second from now.
        until: Instant,
    },
    /// What there is has been set aside for those who wait in line.
    #[error("others wait in line")]
    Queued,
    /// The throttle holds as many domains as it may, and this one is new.
    #[error("the throttle holds as many domains as it may: wait, or raise `max_domains`")]
    TooManyDomains,
    /// The throttle was closed.
    #[error("the throttle is closed")]
    Closed,
    /// The store behind the throttle failed.
    #[error("the throttle's store failed")]
    Backend(#[source] Box<dyn Error + Send + Sync>),
}

/// Why a wait for a permit ended without one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThrottleError {
    /// No endpoint was given.
    #[error("no endpoint was given to wait for: name one at least")]
    NoEndpoint,
    /// The throttle holds as many waiters as it may.
    #[error("the throttle holds as many waiters as it may: wait, or raise `max_waiters`")]
    TooManyWaiters,
    /// The throttle holds as many domains as it may, and one of these is new.
    #[error("the throttle holds as many domains as it may: wait, or raise `max_domains`")]
    TooManyDomains,
    /// The throttle was closed.
    #[error("the throttle is closed")]
    Closed,
    /// The deadline of the wait has passed.
    #[error("no permit came before the deadline")]
    DeadlinePassed,
    /// The permit was lost while the request was on.
    #[error("the permit was lost while the request was on")]
    Lost,
    /// The store behind the throttle failed.
    #[error("the throttle's store failed")]
    Backend(#[source] Box<dyn Error + Send + Sync>),
}
