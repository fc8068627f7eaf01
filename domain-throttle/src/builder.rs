use std::time::Duration;

use crate::{DomainPattern, DomainThrottle, Limits, overrides::Overrides};

/// Settings of a [`DomainThrottle`], from [`DomainThrottle::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    limits: Limits,
    overrides: Vec<(DomainPattern, Limits)>,
    margin: Duration,
    max_domains: usize,
    max_waiters: usize,
}

impl Builder {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            overrides: Vec::new(),
            margin: Duration::ZERO,
            max_domains: 100_000,
            max_waiters: 200_000,
        }
    }

    /// The limits of every domain without an override. Default: [`Limits::default`], 5 at once and
    /// 30 in 60 s.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Other limits for one domain or for all domains below one. See
    /// [`DomainThrottle::set_override`].
    pub fn limits_for(mut self, domains: impl Into<DomainPattern>, limits: Limits) -> Self {
        self.overrides.push((domains.into(), limits));
        self
    }

    /// Makes every window longer by this. Requests that leave a window apart can arrive closer
    /// together; a margin as long as the network's jitter keeps the limit at the server. Default 0.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// How many domains may be remembered at once. Over it a new domain is refused with
    /// `TooManyDomains`. Default 100,000.
    pub fn max_domains(mut self, max: usize) -> Self {
        self.max_domains = max;
        self
    }

    /// How many places in line may be taken at once; who waits for several domains takes one in
    /// each. Over it a wait is refused with `TooManyWaiters`. Default 200,000.
    pub fn max_waiters(mut self, max: usize) -> Self {
        self.max_waiters = max;
        self
    }

    /// Builds the throttle. It spawns one task in each tokio runtime that it is used in.
    pub fn build(self) -> DomainThrottle {
        let mut overrides = Overrides::new(self.margin);
        overrides.set_default(self.limits);
        for (pattern, limits) in self.overrides {
            overrides.set(pattern, limits);
        }
        DomainThrottle::from_parts(overrides, self.max_domains, self.max_waiters)
    }
}
