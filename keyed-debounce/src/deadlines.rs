use std::time::Duration;

use crate::{Debounce, timestamp::Timestamp, timestamp::nanos};

/// When a key should run, as its requests and the end of its last run have it (rules D1 to D3, D6, D8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadlines {
    /// When the key should run as things stand. What else keeps it from running (D13, D16) may put
    /// this off: it does so to each due.
    pub(crate) due: Timestamp,
    /// When it should run at the latest, whatever is requested later.
    latest: Timestamp,
    /// The smallest quiet requested since the last run began, in nanoseconds. `u64::MAX`, less
    /// urgent than everything, while there was no request.
    smallest_quiet: u64,
}

impl Deadlines {
    /// D1: the first request. A key that nobody asked for yet has no deadline to respect, so this
    /// is D2 with nothing before it.
    pub(crate) fn first(debounce: Debounce, now: Timestamp) -> Self {
        let mut deadlines = Self::not_requested(Timestamp::MAX);
        deadlines.request(debounce, now);
        deadlines
    }

    /// D7: the key waits until `due` without having been asked for. D8 falls out of D2: the due is
    /// its latest, and each quiet is at least as urgent as none.
    pub(crate) fn not_requested(due: Timestamp) -> Self {
        Self { due, latest: due, smallest_quiet: u64::MAX }
    }

    /// D2 and D3: one more request, for a key that is not ready.
    pub(crate) fn request(&mut self, debounce: Debounce, now: Timestamp) {
        let quiet = nanos(debounce.quiet);
        self.latest = self.latest.min(now + debounce.max_wait);
        if quiet <= self.smallest_quiet {
            self.smallest_quiet = quiet;
            self.due = self.latest.min(now + debounce.quiet);
        } else {
            self.due = self.due.min(self.latest);
        }
    }

    /// D6: the run during which the requests came ended at `end`; `delay` is that of its outcome.
    /// A due that has passed is now.
    pub(crate) fn run_ended(&mut self, end: Timestamp, delay: Option<Duration>) {
        if let Some(delay) = delay {
            self.latest = self.latest.min(end + delay);
            self.due = self.due.min(self.latest);
        }
        self.due = self.due.max(end);
    }
}
