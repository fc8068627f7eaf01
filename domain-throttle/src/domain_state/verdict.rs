use std::time::Duration;

use super::{DomainState, as_count};
use crate::{Endpoint, Refusal, health::Standing, keys::KeyId, moment::Moment};

/// While a probe is out nobody knows when the pause ends; this is when to look again.
const PROBE_GUESS: Duration = Duration::from_secs(1);

impl<W> DomainState<W> {
    /// The rule L5: the key, concurrency, the timed cause that ends last, and then the line.
    pub(super) fn verdict(&self, now: Moment, at: &Endpoint, key: &str) -> Result<(), Refusal> {
        self.verdict_for(now, at, self.keys.find(key))
    }

    /// The same for a key that was looked up; `None` is one that is not there.
    #[inline]
    pub(super) fn verdict_for(
        &self,
        now: Moment,
        at: &Endpoint,
        key: Option<KeyId>,
    ) -> Result<(), Refusal> {
        let key = key.map(|id| &self.keys[id]);
        if key.is_some_and(|key| key.alive) {
            return Err(Refusal::KeyBusy);
        }
        if self.alive >= self.limits.max_concurrent.get() {
            return Err(Refusal::Concurrency);
        }
        let window = self.room_at(0);
        let mut pause = key.and_then(|key| key.held_until).unwrap_or_default();
        if let Some(rare) = &self.rare {
            pause = pause.max(rare.pauses.domain_until());
            match rare.pauses.standing(at, now) {
                Standing::Paused { until } => pause = pause.max(until),
                Standing::Probing => {
                    return Err(Refusal::Paused {
                        until: pause.max(now.saturating_add(PROBE_GUESS)),
                    });
                }
                Standing::Open | Standing::ProbeReady => {}
            }
        }
        if window.max(pause) > now {
            return Err(match window > pause {
                true => Refusal::Window { until: window },
                false => Refusal::Paused { until: pause },
            });
        }
        if self.line.is_none() {
            return Ok(());
        }
        let reserved = self.reserved();
        let none_left = as_count(self.alive) + reserved
            >= as_count(self.limits.max_concurrent.get())
            || self.room_at(reserved) > now;
        if none_left || key.is_some_and(|key| key.reserved) {
            return Err(Refusal::Queued);
        }
        Ok(())
    }
}
