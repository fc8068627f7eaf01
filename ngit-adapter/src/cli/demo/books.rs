use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::now;

/// What one server counted. Cheap to clone; clones share one book.
#[derive(Clone, Default)]
pub(super) struct Books(Arc<Mutex<Counts>>);

/// What stands in the books of one server, or of several.
#[derive(Clone, Default)]
pub(super) struct Counts {
    /// When each fetch began: with the request for what the server can do.
    pub(super) starts: Vec<Instant>,
    /// All HTTP requests; a fetch makes several, one after the other.
    pub(super) requests: u64,
    /// How many fetches were told to come back later.
    pub(super) sent_away: u64,
    /// How many requests are on.
    pub(super) on_now: usize,
    /// How many requests were on at once, at most.
    pub(super) most_at_once: usize,
}

impl Books {
    /// A request came. It is on until the guard is dropped, which has to be before its answer goes out: whoever got
    /// the answer may ask again at once.
    pub(super) fn came(&self, starts_a_fetch: bool) -> OnNow {
        let mut counts = self.lock();
        if starts_a_fetch {
            counts.starts.push(now());
        }
        counts.requests += 1;
        counts.on_now += 1;
        counts.most_at_once = counts.most_at_once.max(counts.on_now);
        OnNow(self.clone())
    }

    pub(super) fn sent_away(&self) {
        self.lock().sent_away += 1;
    }

    pub(super) fn read(&self) -> Counts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is on.
pub(super) struct OnNow(Books);

impl Drop for OnNow {
    fn drop(&mut self) {
        self.0.lock().on_now -= 1;
    }
}

impl Counts {
    pub(super) fn fetches(&self) -> usize {
        self.starts.len()
    }

    /// How many fetches began in the window that ends at `now`.
    pub(super) fn lately(&self, now: Instant, window: Duration) -> usize {
        let within = |start: &&Instant| now.saturating_duration_since(**start) < window;
        self.starts.iter().rev().take_while(within).count()
    }

    /// The most fetches that began in any half-open interval of this length.
    pub(super) fn most_within(&self, window: Duration) -> usize {
        let mut most = 0;
        let mut first = 0;
        for (place, start) in self.starts.iter().enumerate() {
            while start.saturating_duration_since(self.starts[first]) >= window && first < place {
                first += 1;
            }
            most = most.max(place + 1 - first);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);

    fn counts(gaps: &[u64]) -> Counts {
        let mut at = now();
        let starts = gaps.iter().map(|gap| {
            at += Duration::from_secs(*gap);
            at
        });
        Counts { starts: starts.collect(), ..Counts::default() }
    }

    #[test]
    fn a_start_leaves_the_window_when_it_is_a_window_old() {
        let counts = counts(&[0, 59, 1]);
        assert_eq!(counts.most_within(WINDOW), 2);
        let first = counts.starts[0];
        assert_eq!(counts.lately(first + WINDOW, WINDOW), 2);
        assert_eq!(counts.lately(first + 2 * WINDOW, WINDOW), 0);
        assert_eq!(Counts::default().most_within(WINDOW), 0);
    }

    proptest! {
        /// L1: what the table shows is the fullest of all windows, not only of those that begin at a start.
        #[test]
        fn the_fullest_window_is_found(gaps in prop::collection::vec(0_u64..50, 0..60)) {
            let counts = counts(&gaps);
            let begins = counts.starts.iter().flat_map(|start| {
                (0..60).filter_map(|before| start.checked_sub(Duration::from_secs(before)))
            });
            let within = |begin: Instant| {
                let inside = |start: &&Instant| **start >= begin && **start < begin + WINDOW;
                counts.starts.iter().filter(inside).count()
            };
            prop_assert_eq!(counts.most_within(WINDOW), begins.map(within).max().unwrap_or(0));
        }
    }

    #[test]
    fn what_is_on_is_counted_until_its_guard_goes() {
        let books = Books::default();
        let first = books.came(true);
        let second = books.came(false);
        drop(first);
        let third = books.came(false);
        let counts = books.read();
        assert_eq!((counts.fetches(), counts.requests), (1, 3));
        assert_eq!((counts.on_now, counts.most_at_once), (2, 2));
        drop((second, third));
        assert_eq!(books.read().on_now, 0);
    }
}
