use std::{fmt, hash::Hash, num::NonZeroUsize, sync::Arc, time::Duration};

use crate::{Backoff, Exponential, KeyedDebouncer, Observer, schedule::Settings, shared::Shared};

/// Sets up a [`KeyedDebouncer`].
///
/// Defaults: no capacity, no rounds, no least interval, [`Exponential::DEFAULT`], 16 parallel runs in
/// [`KeyedDebouncer::run`], no observer.
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<K> {
    settings: Settings,
    backoff: Box<dyn Backoff>,
    max_parallel: NonZeroUsize,
    observers: Vec<Box<dyn Observer<K>>>,
}

/// How many runs [`KeyedDebouncer::run`] has on at once, unless it is told otherwise.
const MAX_PARALLEL: NonZeroUsize = NonZeroUsize::new(16).unwrap();

impl<K> Builder<K> {
    pub(crate) fn new() -> Self {
        Self {
            settings: Settings::default(),
            backoff: Box::new(Exponential::DEFAULT),
            max_parallel: MAX_PARALLEL,
            observers: Vec::new(),
        }
    }

    /// D12: how many keys it holds, whatever they do. A request for one more is refused.
    pub fn capacity(mut self, keys: NonZeroUsize) -> Self {
        self.settings.capacity = Some(keys);
        self
    }

    /// D13: the least time between two rounds of hand-outs. Zero is as if it were not set.
    pub fn min_gap(mut self, gap: Duration) -> Self {
        self.settings.min_gap = Some(gap);
        self
    }

    /// D16: the least time between two run starts of one key. Zero is as if it were not set.
    pub fn min_interval(mut self, interval: Duration) -> Self {
        self.settings.min_interval = Some(interval);
        self
    }

    /// D17: how long a key waits after failures.
    pub fn backoff(mut self, backoff: impl Backoff + 'static) -> Self {
        self.backoff = Box::new(backoff);
        self
    }

    /// How many runs [`KeyedDebouncer::run`] has on at once.
    pub fn max_parallel(mut self, runs: NonZeroUsize) -> Self {
        self.max_parallel = runs;
        self
    }

    /// Adds an observer; several are told in the order in which they were added.
    pub fn observer(mut self, observer: impl Observer<K> + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> Builder<K> {
    /// Builds the debouncer. Starts nothing.
    pub fn build(self) -> KeyedDebouncer<K> {
        let Self { settings, backoff, max_parallel, observers } = self;
        KeyedDebouncer { shared: Arc::new(Shared::new(settings, backoff, observers)), max_parallel }
    }
}

impl<K> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("settings", &self.settings)
            .field("max_parallel", &self.max_parallel)
            .field("observers", &self.observers.len())
            .finish_non_exhaustive()
    }
}
