use std::time::Duration;

use dashmap::DashMap;

use super::{BenchKey, Contender, Hasher};

/// A map of times that a loop scans each second for what is due.
pub(crate) struct Scan<K: BenchKey> {
    keys: DashMap<K, Waiting, Hasher>,
}

struct Waiting {
    next_attempt: Duration,
    attempts: u32,
    in_progress: bool,
}

impl<K: BenchKey> Contender<K> for Scan<K> {
    const NAME: &'static str = "a map and a scan";
    const STEP: Duration = Duration::from_secs(1);

    fn new() -> Self {
        Self { keys: DashMap::default() }
    }

    fn request(&mut self, key: K, delay: Duration, now: Duration) {
        let next_attempt = now + delay;
        let waiting = Waiting { next_attempt, attempts: 0, in_progress: false };
        self.keys
            .entry(key)
            .and_modify(|waiting| {
                waiting.next_attempt = next_attempt;
                waiting.attempts = 0;
            })
            .or_insert(waiting);
    }

    fn take_and_finish(&mut self, now: Duration) -> usize {
        let ready: Vec<K> = self
            .keys
            .iter()
            .filter(|entry| !entry.in_progress && entry.next_attempt <= now)
            .map(|entry| entry.key().clone())
            .collect();
        for key in &ready {
            if let Some(mut waiting) = self.keys.get_mut(key) {
                waiting.in_progress = true;
                waiting.attempts += 1;
            }
            self.keys.remove(key);
        }
        ready.len()
    }
}
