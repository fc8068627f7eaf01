#![expect(
    clippy::disallowed_methods,
    reason = "the delay queue lives by tokio's clock, paused here"
)]

use std::{
    collections::{HashMap, hash_map::Entry},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    runtime::Runtime,
    time::{Instant, advance},
};
use tokio_util::time::{DelayQueue, delay_queue};

use super::{BenchKey, Contender, Hasher};

/// `tokio_util::time::DelayQueue` for the times and a `HashMap` to find what to reset.
pub(crate) struct DelayQueueAndMap<K> {
    runtime: Runtime,
    origin: Instant,
    queue: DelayQueue<K>,
    keys: HashMap<K, delay_queue::Key, Hasher>,
}

impl<K: BenchKey> Contender<K> for DelayQueueAndMap<K> {
    const NAME: &'static str = "DelayQueue + HashMap";

    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let entered = runtime.enter();
        let origin = Instant::now();
        drop(entered);
        Self { runtime, origin, queue: DelayQueue::new(), keys: HashMap::default() }
    }

    fn request(&mut self, key: K, delay: Duration, now: Duration) {
        let due = self.origin + now + delay;
        // The queue makes its timer with the first key.
        let _entered = self.queue.is_empty().then(|| self.runtime.enter());
        match self.keys.entry(key) {
            Entry::Occupied(known) => self.queue.reset_at(known.get(), due),
            Entry::Vacant(new) => {
                let key = self.queue.insert_at(new.key().clone(), due);
                new.insert(key);
            }
        }
    }

    fn take_and_finish(&mut self, now: Duration) -> usize {
        let Self { runtime, origin, queue, keys } = self;
        let behind =
            (*origin + now).saturating_duration_since(runtime.block_on(async { Instant::now() }));
        runtime.block_on(advance(behind));
        let _entered = runtime.enter();
        let mut cx = Context::from_waker(Waker::noop());
        let mut taken = 0;
        while let Poll::Ready(Some(due)) = queue.poll_expired(&mut cx) {
            keys.remove(due.get_ref());
            taken += 1;
        }
        taken
    }
}
