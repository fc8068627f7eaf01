use std::time::Duration;

use keyed_debounce::{
    Debounce,
    schedule::{Ending, Schedule, Settings, Timestamp},
};

use super::{BenchKey, Contender};

impl<K: BenchKey> Contender<K> for Schedule<K> {
    const NAME: &'static str = "keyed-debounce";

    fn new() -> Self {
        Self::new(Settings::default())
    }

    fn request(&mut self, key: K, delay: Duration, now: Duration) {
        let debounce = Debounce::new(delay, Duration::from_secs(24 * 60 * 60));
        self.schedule(key, debounce, Timestamp::from_origin(now)).expect("open and unbounded");
    }

    fn take_and_finish(&mut self, now: Duration) -> usize {
        let now = Timestamp::from_origin(now);
        let mut taken = 0;
        while let Some(run) = self.pop_due(now) {
            self.finish(run.ticket, Ending::Done, now);
            taken += 1;
        }
        taken
    }
}
