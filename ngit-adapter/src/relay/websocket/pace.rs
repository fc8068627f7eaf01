use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

/// How fast something may go on: so many in a minute, in one burst or spread.
///
/// It never refuses. It says when the next one may be read, so that a client that sends too much is
/// read more slowly, and TCP makes it wait.
#[derive(Debug)]
pub(in crate::relay) struct Pace {
    per_minute: u32,
    /// What is left, in sixtieth-billionths: one is a minute's worth of nanoseconds.
    left: u128,
    at: Instant,
}

const ONE: u128 = 60_000_000_000;

impl Pace {
    pub(in crate::relay) fn new(per_minute: NonZeroU32, now: Instant) -> Self {
        let per_minute = per_minute.get();
        Self { per_minute, left: u128::from(per_minute) * ONE, at: now }
    }

    /// Counts one. It may be more than is left: whoever asked for [`ready_at`](Self::ready_at) first never does.
    pub(in crate::relay) fn count(&mut self, now: Instant) {
        self.refill(now);
        self.left = self.left.saturating_sub(ONE);
    }

    /// When the next one may come: now or earlier, if it may.
    pub(in crate::relay) fn ready_at(&mut self, now: Instant) -> Instant {
        self.refill(now);
        let lacking = ONE.saturating_sub(self.left).div_ceil(u128::from(self.per_minute));
        now + Duration::from_nanos(u64::try_from(lacking).unwrap_or(u64::MAX))
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_nanos();
        let full = u128::from(self.per_minute) * ONE;
        self.left = (self.left + passed * u128::from(self.per_minute)).min(full);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to begin with")]
        Instant::now()
    }

    /// R10: a burst of a minute's worth goes at once, what is over it goes evenly.
    #[test]
    fn a_minutes_worth_goes_at_once() {
        let now = start();
        let mut pace = Pace::new(NonZeroU32::new(60).unwrap(), now);
        for _ in 0..60 {
            assert_eq!(pace.ready_at(now), now);
            pace.count(now);
        }
        assert_eq!(pace.ready_at(now), now + Duration::from_secs(1));
        let later = now + Duration::from_secs(1);
        assert_eq!(pace.ready_at(later), later);
        pace.count(later);
        assert_eq!(pace.ready_at(later), later + Duration::from_secs(1));
    }

    proptest! {
        /// R10: in any span of time no more than a minute's worth and the share of that span are read,
        /// and the promised instant is one at which the next may come.
        #[test]
        fn no_span_has_more_than_its_share(
            per_minute in 1_u32..500,
            waits in prop::collection::vec(0_u64..3_000, 1..200),
        ) {
            let begin = start();
            let mut now = begin;
            let mut pace = Pace::new(NonZeroU32::new(per_minute).unwrap(), now);
            let mut reads = Vec::new();
            for wait in waits {
                now += Duration::from_millis(wait);
                let ready = pace.ready_at(now);
                if ready > now {
                    let almost = ready - Duration::from_nanos(1);
                    prop_assert!(almost < now || pace.ready_at(almost) > almost);
                    now = ready;
                    prop_assert_eq!(pace.ready_at(now), now);
                }
                pace.count(now);
                reads.push(now);
            }
            for (first, from) in reads.iter().enumerate() {
                for (last, to) in reads.iter().enumerate().skip(first) {
                    let share = (*to - *from).as_nanos() * u128::from(per_minute) / ONE;
                    let read = u128::try_from(last - first + 1).unwrap();
                    prop_assert!(read <= u128::from(per_minute) + share + 1);
                }
            }
        }
    }
}
