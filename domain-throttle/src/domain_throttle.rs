use std::{sync::Arc, time::Instant};

use async_trait::async_trait;

use crate::{
    Builder, Denied, Domain, DomainPattern, DomainTally, Endpoint, Limits, Moment, Permit, Refusal,
    Throttle, ThrottleError,
    acquire::Acquire,
    overrides::Overrides,
    permit_hook::permit,
    shared::{Seat, Shared},
    telemetry,
};

/// The [`Throttle`] in memory.
///
/// A clone is another handle of the same throttle. Permits and waits keep what they need, so they
/// outlive the handle they came from.
///
/// Waiting needs a tokio runtime; [`check`](Self::check) and [`try_acquire`](Self::try_acquire)
/// need none. A runtime it is used in must have its timer enabled: in each it spawns one task, which
/// moves the lines on when time does, forgets idle domains, and ends with the throttle or the runtime.
/// So a runtime that is busy, or is not driven just now, holds up nobody who waits in another.
#[derive(Clone, Debug)]
pub struct DomainThrottle {
    shared: Arc<Shared>,
}

/// How one domain stands, from [`DomainThrottle::counts`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainCounts {
    /// The limits in force, with the margin.
    pub limits: Limits,
    /// Permits that are alive.
    pub in_flight: u32,
    /// Waiters in line.
    pub waiting: usize,
    /// Starts in the window that ends now.
    pub in_window: usize,
    /// Until when the whole domain is paused.
    pub paused_until: Option<Instant>,
}

impl DomainThrottle {
    /// A throttle with the default limits: 5 at once and 30 in 60 s for each domain.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A throttle with settings.
    pub fn builder() -> Builder {
        Builder::new(Limits::default())
    }

    pub(crate) fn from_parts(overrides: Overrides, max_domains: usize, max_waiters: usize) -> Self {
        Self { shared: Arc::new(Shared::new(overrides, max_domains, max_waiters)) }
    }

    /// Says whether `key` would get a permit for `at` now. Takes nothing, never waits.
    ///
    /// # Errors
    ///
    /// The reason why not, see [`Denied`].
    pub fn check(&self, at: &Endpoint, key: &str) -> Result<(), Denied> {
        if self.shared.is_closed() {
            return Err(Denied::Closed);
        }
        let look = || self.shared.look(at.domain(), |seat| seat.core.check(seat.now, at, key));
        let verdict = match look() {
            None if self.shared.has_room() => return Ok(()),
            // It may have taken the last place after the first look.
            None => look(),
            found => found,
        };
        verdict.ok_or(Denied::TooManyDomains)?.map_err(|refusal| self.denied(refusal))
    }

    /// Takes a permit if there is one now. Never waits, never overtakes a waiter that could go.
    ///
    /// # Errors
    ///
    /// The reason why there is none, see [`Denied`].
    pub fn try_acquire(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied> {
        let taken = self.take(at, key);
        if let Err(denied) = &taken {
            telemetry::denied(at.domain(), denied);
        }
        taken
    }

    /// Puts other limits in force for one domain or for all domains below one, from now on. An
    /// exact domain comes before a suffix, a longer suffix before a shorter one.
    ///
    /// Permits that are alive stay so. It looks at every remembered domain once, with a short lock
    /// on each.
    pub fn set_override(&self, domains: impl Into<DomainPattern>, limits: Limits) {
        let domains = domains.into();
        self.shared.change_overrides(|overrides| overrides.set(domains, limits));
    }

    /// Takes an override back.
    pub fn remove_override(&self, domains: &DomainPattern) {
        self.shared.change_overrides(|overrides| overrides.remove(domains));
    }

    /// Changes the limits of every domain without an override.
    pub fn set_limits(&self, limits: Limits) {
        self.shared.change_overrides(|overrides| overrides.set_default(limits));
    }

    /// How one domain stands; `None` if nothing is remembered of it.
    pub fn counts(&self, domain: &Domain) -> Option<DomainCounts> {
        self.shared.look(domain, |Seat { core, now, .. }| DomainCounts {
            limits: *core.limits(),
            in_flight: core.in_flight(),
            waiting: core.waiting(),
            in_window: core.in_window(now),
            paused_until: core.paused_until(now).map(|until| self.shared.clock.instant(until)),
        })
    }

    /// What was asked so far: of the first 100 domains by name, of all others together. At most 101
    /// rows, however many domains there are.
    pub fn tallies(&self) -> Vec<DomainTally> {
        self.shared.tallies.all()
    }

    /// How many domains are remembered at present.
    pub fn domains(&self) -> usize {
        self.shared.domains()
    }

    /// How many places in line are taken at present.
    pub fn waiters(&self) -> usize {
        self.shared.waiters()
    }

    /// Ends every wait with [`ThrottleError::Closed`] and refuses all that comes after. Permits that
    /// are alive go on. Calling it twice is fine.
    pub fn close(&self) {
        self.shared.close();
    }

    #[inline]
    fn take(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied> {
        if self.shared.is_closed() {
            return Err(Denied::Closed);
        }
        let taken = self.shared.enter(at.domain(), |seat| self.shared.try_take(seat, at, key));
        match taken.map_err(|_| Denied::TooManyDomains)? {
            Ok(granted) => Ok(permit(&self.shared, at, granted, None)),
            Err(refusal) => Err(self.denied(refusal)),
        }
    }

    #[inline]
    fn denied(&self, refusal: Refusal) -> Denied {
        let instant = |until: Moment| self.shared.clock.instant(until);
        match refusal {
            Refusal::KeyBusy => Denied::KeyBusy,
            Refusal::Concurrency => Denied::Concurrency,
            Refusal::Window { until } => Denied::Window { until: instant(until) },
            Refusal::Paused { until } => Denied::Paused { until: instant(until) },
            Refusal::Queued => Denied::Queued,
        }
    }
}

impl Default for DomainThrottle {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Throttle for DomainThrottle {
    async fn check(&self, at: &Endpoint, key: &str) -> Result<(), Denied> {
        DomainThrottle::check(self, at, key)
    }

    async fn try_acquire(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied> {
        DomainThrottle::try_acquire(self, at, key)
    }

    async fn acquire_any(&self, at: &[Endpoint], key: &str) -> Result<Permit, ThrottleError> {
        Acquire::new(self.shared.clone(), at, key).await
    }
}
