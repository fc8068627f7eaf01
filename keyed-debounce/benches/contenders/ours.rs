use std::time::Duration;

use keyed_debounce::{
    Debounce,
    schedule::{Ending, Schedule, Settings, Timestamp},
};

use super::{BenchKey, Contender, Hasher};

pub(crate) type Ours<K> = Schedule<K, Hasher>;

impl<K: BenchKey> Contender<K> for Ours<K> {
    const NAME: &'static str = "keyed-debounce";

    fn new() -> Self {
        Self::with_hasher(Settings::default(), Hasher::default())
    }

    fn request(&mut self, key: K, delay: Duration, now: Duration) {
        let debounce = Debounce::new(delay, Duration::from_secs(24 * 60 * 60));
        self.schedule(key, debounce, Timestamp::from_origin(now)).expect("open and unbounded");
    }

    fn take_and_finish(&mut self, now: Duration) -> usize {
        let now = Timestamp::from_origin(now);
        let mut taken = 0;
        loop {
            if let Some(run) = self.pop_due(now) {
                self.finish(run.ticket, Ending::Done, now);
                taken += 1;
            } else if self.next_wake().is_none_or(|wake| wake > now) {
                return taken;
            }
        }
    }
}
