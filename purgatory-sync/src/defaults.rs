use std::{num::NonZeroUsize, sync::Arc};

use domain_throttle::{DomainThrottle, Throttle};
use keyed_debounce::{Exponential, KeyedDebouncer, Scheduler};

use crate::{Identifier, SyncConfig};

/// Places in line for each identifier that may be queued: one may wait for several servers.
const PLACES: usize = 4;

/// The scheduler in memory, with the settings' bounds.
pub(crate) fn scheduler(config: &SyncConfig) -> Arc<dyn Scheduler<Identifier>> {
    let capacity = NonZeroUsize::new(config.max_queued()).unwrap_or(NonZeroUsize::MIN);
    let initial = config.backoff_initial();
    let backoff = Exponential::new(initial, 2, config.backoff_max().max(initial));
    let scheduler = KeyedDebouncer::builder()
        .capacity(capacity)
        .min_gap(config.loop_interval())
        .backoff(backoff)
        .build();
    Arc::new(scheduler)
}

/// The throttle in memory, with the settings' limits.
pub(crate) fn throttle(config: &SyncConfig) -> Arc<dyn Throttle> {
    let throttle = DomainThrottle::builder()
        .limits(config.limits())
        .max_waiters(config.max_queued().saturating_mul(PLACES))
        .build();
    Arc::new(throttle)
}
