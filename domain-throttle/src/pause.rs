use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    Endpoint, Feedback,
    health::{Health, Standing},
    key_name::KeyName,
    keys::KeyId,
    moment::Moment,
};

/// No server is believed when it asks for more than this.
pub(crate) const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// What holds requests back for a time, after the rule L10.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    domain_until: Moment,
    evidence: Option<Evidence>,
    /// Held keys by the end of their hold.
    pub(crate) holds: BTreeSet<(Moment, KeyId)>,
    /// Endpoints that were reported broken.
    endpoints: BTreeMap<Endpoint, Health>,
    /// With so many endpoints, those that no longer count are looked for.
    tidy_at: usize,
}

/// So few endpoints are not worth a search for those that no longer count.
const FEW_ENDPOINTS: usize = 16;

/// That the server asked somebody to come back later.
#[derive(Debug)]
struct Evidence {
    key: KeyName,
    /// Somebody else was asked too: the server means everybody.
    two_keys: bool,
    /// Grants from this number on came after it.
    since_grant: u64,
    forget_at: Moment,
}

impl Pauses {
    pub(crate) fn domain_until(&self) -> Moment {
        self.domain_until
    }

    /// How an endpoint stands.
    pub(crate) fn standing(&self, at: &Endpoint, now: Moment) -> Standing {
        if self.endpoints.is_empty() {
            return Standing::Open;
        }
        self.endpoints.get(at).map_or(Standing::Open, |health| health.standing(now))
    }

    /// The ends of the endpoints' pauses that lie after `now`.
    pub(crate) fn endpoint_ends(&self, now: Moment) -> impl Iterator<Item = (&Endpoint, Moment)> {
        self.endpoints.iter().filter_map(move |(at, health)| match health.standing(now) {
            Standing::Paused { until } => Some((at, until)),
            _ => None,
        })
    }

    /// The server asked `key` to stay away for `delay`, which is capped. Returns until when the domain is paused if
    /// that became later.
    pub(crate) fn retry_after(
        &mut self,
        now: Moment,
        key: &KeyName,
        delay: Duration,
        window: Duration,
        next_grant: u64,
    ) -> Option<Moment> {
        let before = self.evidence.take().filter(|seen| now < seen.forget_at);
        let two_keys = before.as_ref().is_some_and(|seen| seen.two_keys || seen.key != *key);
        let pause = if two_keys { delay } else { delay.min(window) };
        let until = now.saturating_add(pause);
        let forget_at = until.saturating_add(2 * pause);
        self.evidence = Some(Evidence {
            key: key.clone(),
            two_keys,
            since_grant: next_grant,
            forget_at: before.map_or(forget_at, |seen| seen.forget_at.max(forget_at)),
        });
        (until > self.domain_until).then(|| {
            self.domain_until = until;
            until
        })
    }

    /// A permit goes to `at`. Says whether it is the endpoint's probe.
    pub(crate) fn granted(&mut self, at: &Endpoint, now: Moment) -> bool {
        self.endpoints.get_mut(at).is_some_and(|health| health.granted(now))
    }

    /// The probe of `at` did not go out after all.
    pub(crate) fn probe_unused(&mut self, at: &Endpoint) {
        if let Some(health) = self.endpoints.get_mut(at) {
            health.probe_unused();
        }
    }

    /// What a request said of its endpoint and of the domain. Returns until when the endpoint is
    /// paused if a pause began.
    pub(crate) fn report(
        &mut self,
        now: Moment,
        at: &Endpoint,
        feedback: Feedback,
        grant: u64,
        probe: bool,
        next_grant: u64,
    ) -> Option<Moment> {
        if feedback == Feedback::Ok
            && self.evidence.as_ref().is_some_and(|e| e.since_grant <= grant)
        {
            self.evidence = None;
        }
        match feedback {
            Feedback::Unused => {
                if probe {
                    self.probe_unused(at);
                }
                None
            }
            Feedback::Broken => {
                self.make_room(now, at);
                let health = self.endpoints.entry(at.clone()).or_default();
                health.broken(now, grant, probe, next_grant)
            }
            Feedback::Ok | Feedback::Failed | Feedback::RetryAfter(_) => {
                if self.endpoints.get(at).is_some_and(|health| health.ends_with(now, grant, probe))
                {
                    self.endpoints.remove(at);
                }
                None
            }
        }
    }

    /// Before another endpoint is remembered. A search comes after at least as many reports as there
    /// are endpoints to look at, so that a domain that is never idle neither grows nor stops.
    fn make_room(&mut self, now: Moment, at: &Endpoint) {
        if self.endpoints.len() < self.tidy_at.max(FEW_ENDPOINTS) || self.endpoints.contains_key(at)
        {
            return;
        }
        self.endpoints.retain(|_, health| !health.is_over(now));
        self.tidy_at = 2 * self.endpoints.len();
    }

    /// Drops what no longer counts.
    pub(crate) fn tidy(&mut self, now: Moment) {
        if self.evidence.as_ref().is_some_and(|seen| seen.forget_at <= now) {
            self.evidence = None;
        }
        self.endpoints.retain(|_, health| !health.is_over(now));
    }

    /// From when on nothing here counts, if nothing is added.
    pub(crate) fn over_at(&self) -> Moment {
        let evidence = self.evidence.as_ref().map(|seen| seen.forget_at);
        let hold = self.holds.last().map(|&(until, _)| until);
        let endpoints = self.endpoints.values().map(Health::forget_at);
        endpoints.chain(evidence).chain(hold).fold(self.domain_until, Moment::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L12: ever new broken ports of a domain that is never idle are forgotten as their time passes.
    #[test]
    fn ever_new_broken_endpoints_do_not_pile_up() {
        let mut pauses = Pauses::default();
        let mut most = 0;
        for n in 0..20_000_u64 {
            // Ten a second; a single report is remembered for two minutes.
            let now = Moment::from_nanos(n * 100_000_000);
            let at = format!("https://h.example:{}", n + 1).parse().expect("a URL");
            pauses.report(now, &at, Feedback::Broken, n + 1, false, n + 2);
            most = most.max(pauses.endpoints.len());
        }
        assert!((1_200..=2_402).contains(&most), "{most} endpoints");
    }
}
