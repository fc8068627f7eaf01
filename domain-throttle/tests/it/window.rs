//! L1 and L5 in nanoseconds, judged by counting.

use std::time::Duration;

use domain_throttle::{DomainState, Feedback, Moment, Refusal};
use proptest::prelude::*;

use crate::support::{at, limits, secs};

const NANOS: u64 = 1_000_000_000;

/// The most starts in any half-open interval of this length: each start can be an interval's first.
fn most_in_any(window: u64, starts: &[u64]) -> usize {
    let within = |first: u64| starts.iter().filter(|&&s| first <= s && s - first < window).count();
    starts.iter().map(|&first| within(first)).max().unwrap_or(0)
}

fn steps() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        4 => Just(0u64),
        2 => 0..100u64,
        4 => 0..5 * NANOS,
        1 => 0..200 * NANOS,
        // The ticks of a 60 s window wrap after 137 s, milliseconds in 32 bits after 49.7 days.
        1 => Just((1u64 << 32) * 32 - 1),
        1 => Just((1u64 << 32) * 1_000_000),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    /// L1: no half-open minute holds more than the limit, wherever it begins. L5: every promise is
    /// exact, whatever fraction of the way the clock has gone: refused just before it, granted at
    /// it, and at most one tick of 32 ns later than an exact log of starts would have it.
    #[test]
    fn no_minute_holds_more_than_the_limit(
        from in prop_oneof![Just(0u64), any::<u32>().prop_map(u64::from), 0..u64::MAX / 4],
        per_window in 1..40u32,
        steps in steps(),
        fractions in prop::collection::vec(0.0..1.0f64, 8),
    ) {
        let mut core = DomainState::<()>::new(limits(1, per_window, secs(60)));
        let server = at("https://h.example");
        let (mut now, mut starts) = (from, Vec::new());
        for step in steps {
            now += step;
            match core.try_take(Moment::from_nanos(now), &server, "k") {
                Ok(grant) => {
                    starts.push(now);
                    core.settle(Moment::from_nanos(now), grant, &server, Feedback::Ok);
                }
                Err(Refusal::Window { until }) => {
                    let until = until.as_nanos();
                    let oldest = starts[starts.len() - per_window as usize];
                    let exact = oldest + 60 * NANOS;
                    prop_assert!((exact..exact + 32).contains(&until), "{until} for {exact}");
                    for fraction in &fractions {
                        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "any point on the way will do")]
                        let between = now + ((until - 1 - now) as f64 * fraction) as u64;
                        now = between.min(until - 1);
                        prop_assert!(core.check(Moment::from_nanos(now), &server, "k").is_err());
                    }
                    prop_assert!(core.check(Moment::from_nanos(until - 1), &server, "k").is_err());
                    prop_assert!(core.check(Moment::from_nanos(until), &server, "k").is_ok());
                    now = until;
                }
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert!(most_in_any(60 * NANOS, &starts) <= per_window as usize);
    }

    /// L9: a request that was never sent is as if it had not been granted, whenever it comes back.
    #[test]
    fn what_was_not_sent_does_not_count(
        steps in prop::collection::vec((0..30 * NANOS, any::<bool>()), 1..60),
    ) {
        let server = at("https://h.example");
        let mut with = DomainState::<()>::new(limits(1, 3, secs(60)));
        let mut without = DomainState::<()>::new(limits(1, 3, secs(60)));
        let mut now = Moment::ZERO;
        for (step, is_sent) in steps {
            now = now.saturating_add(Duration::from_nanos(step));
            let (one, two) = (with.check(now, &server, "k"), without.check(now, &server, "k"));
            prop_assert_eq!(one, two);
            if one.is_err() {
                continue;
            }
            let grant = with.try_take(now, &server, "k").expect("checked");
            if is_sent {
                with.settle(now, grant, &server, Feedback::Ok);
                let grant = without.try_take(now, &server, "k").expect("checked");
                without.settle(now, grant, &server, Feedback::Failed);
            } else {
                let later = now.saturating_add(Duration::from_nanos(step / 2));
                with.settle(later, grant, &server, Feedback::Unused);
                now = later;
            }
        }
    }

    /// L11: limits that are lowered for less than a window and raised again let nothing more
    /// through: the starts of before still count, and those of between too.
    #[test]
    fn lowering_and_raising_a_limit_lets_nothing_more_through(
        before in prop::collection::vec(0..20 * NANOS, 0..20),
        between in prop::collection::vec(0..3 * NANOS, 0..19),
        after in prop::collection::vec(0..20 * NANOS, 0..40),
        low in (1..6u32, 1..60u64),
    ) {
        let server = at("https://h.example");
        let mut core = DomainState::<()>::new(limits(1, 5, secs(60)));
        let (mut now, mut starts) = (0u64, Vec::new());
        let phases = [(before, (5, 60)), (between, low), (after, (5, 60))];
        for (steps, (max, window)) in phases {
            core.set_limits(Moment::from_nanos(now), limits(1, max, secs(window)));
            for step in steps {
                now += step;
                let moment = Moment::from_nanos(now);
                let counted = starts.iter().filter(|&&s| s + window * NANOS + 32 > now).count();
                let taken = core.try_take(moment, &server, "k");
                if let Ok(grant) = taken {
                    prop_assert!(counted <= max as usize);
                    core.settle(moment, grant, &server, Feedback::Ok);
                    starts.push(now);
                    let counted = starts.iter().filter(|&&s| s + window * NANOS > now).count();
                    prop_assert!(counted <= max as usize, "{} of {} in {} s", counted, max, window);
                } else {
                    prop_assert!(counted >= max as usize, "refused although only {} count", counted);
                }
            }
        }
    }
}

/// L1: the edge is half-open: a start exactly one window after another is in another interval.
#[test]
fn a_start_exactly_one_window_later_is_allowed() {
    let server = at("https://h.example");
    for window in [Duration::from_nanos(1), Duration::from_millis(7), secs(60), secs(86_400 * 365)]
    {
        let mut core = DomainState::<()>::new(limits(9, 1, window));
        let first = core.try_take(Moment::ZERO, &server, "a").expect("nothing was asked yet");
        let end = Moment::ZERO.saturating_add(window);
        let before = Moment::from_nanos(end.as_nanos() - 1);
        assert_eq!(core.check(before, &server, "b"), Err(Refusal::Window { until: end }));
        assert_eq!(core.check(end, &server, "b"), Ok(()));
        core.settle(end, first, &server, Feedback::Ok);
    }
}

/// L1, L12: clocks at zero, at 2^36 ms and at the end of time; windows of any length. Nothing panics.
#[test]
fn far_times_and_long_windows_saturate() {
    let server = at("https://h.example");
    let windows = [Duration::ZERO, Duration::from_nanos(1), secs(60), secs(1 << 40), Duration::MAX];
    let clocks = [0, (1 << 36) * 1_000_000, u64::MAX - 1, u64::MAX];
    for window in windows {
        for clock in clocks {
            let now = Moment::from_nanos(clock);
            let mut core = DomainState::<()>::new(limits(2, 1, window));
            let grant = core.try_take(now, &server, "a").expect("nothing was asked yet");
            let _ = core.check(now, &server, "b");
            let _ = core.in_window(now);
            core.set_limits(now, limits(1, 3, Duration::MAX));
            core.settle(now, grant, &server, Feedback::RetryAfter(Duration::MAX));
            let _ = core.check(now, &server, "a");
            core.shrink(Moment::MAX);
            let _ = (core.idle_at(), core.next_wakeup(now), core.paused_until(now));
        }
    }
}

/// L1: a window without length limits nothing and blocks nobody, waiters included.
#[test]
fn a_window_without_length_limits_concurrency_only() {
    let server = at("https://h.example");
    let mut core = DomainState::new(limits(2, 1, Duration::ZERO));
    let one = core.try_take(Moment::ZERO, &server, "a").expect("open");
    let two = core.try_take(Moment::ZERO, &server, "b").expect("open");
    let waiter = core.join(Moment::ZERO, std::slice::from_ref(&server), "c", ());
    assert!(core.claim(Moment::ZERO, waiter).is_none());
    core.settle(Moment::ZERO, one, &server, Feedback::Ok);
    assert!(core.claim(Moment::ZERO, waiter).is_some());
    core.settle(Moment::ZERO, two, &server, Feedback::Ok);
}

/// L1: what the usual shortcuts let through in one minute at a limit of 30, and what this lets
/// through. These are the numbers in the README.
#[test]
fn only_a_log_of_starts_keeps_the_limit_in_every_minute() {
    const LIMIT: usize = 30;
    const MINUTE: u64 = 60 * NANOS;
    // An adversary asks every 10 ms for three minutes.
    let adversary = || (0..18_000).map(|n| n * NANOS / 100);
    // A token bucket of 30 that gets one token back every two seconds.
    let (mut tokens, mut last) = (LIMIT as u64 * 2 * NANOS, 0);
    let bucket: Vec<u64> = adversary()
        .filter(|&now| {
            tokens = (tokens + now - last).min(LIMIT as u64 * 2 * NANOS);
            last = now;
            let goes = tokens >= 2 * NANOS;
            tokens -= if goes { 2 * NANOS } else { 0 };
            goes
        })
        .collect();
    // A counter that is set back at every full minute. The adversary begins late in the first.
    let mut counted = (0, 0);
    let late = || adversary().map(|now| now + MINUTE - NANOS);
    let fixed: Vec<u64> = late()
        .filter(|&now| {
            if counted.0 != now / MINUTE {
                counted = (now / MINUTE, 0);
            }
            counted.1 += 1;
            counted.1 <= LIMIT
        })
        .collect();
    // Two counters, the older one weighed by what is left of it. The adversary spends a budget
    // at the end of a minute, and the next as it comes back.
    let mut counters: std::collections::BTreeMap<u64, u64> = [(0, 0)].into();
    let two_counters: Vec<u64> = late()
        .filter(|&now| {
            let this = now / MINUTE;
            let previous = this.checked_sub(1).and_then(|n| counters.get(&n)).copied().unwrap_or(0);
            let weighed = previous * (MINUTE - now % MINUTE) / MINUTE;
            let goes = weighed + counters.get(&this).copied().unwrap_or(0) < LIMIT as u64;
            *counters.entry(this).or_default() += u64::from(goes);
            goes
        })
        .collect();
    let server = at("https://h.example");
    let mut core = DomainState::<()>::new(limits(30, 30, secs(60)));
    let ours: Vec<u64> = adversary()
        .filter(|&now| {
            let now = Moment::from_nanos(now);
            let taken = core.try_take(now, &server, "k");
            taken.map(|grant| core.settle(now, grant, &server, Feedback::Ok)).is_ok()
        })
        .collect();
    let most = [&bucket, &fixed, &two_counters, &ours].map(|starts| most_in_any(MINUTE, starts));
    assert_eq!(most[0], 59, "token bucket");
    assert_eq!(most[1], 60, "fixed window");
    assert_eq!(most[2], 60, "two counters");
    assert_eq!(most[3], LIMIT, "a log of starts");
    // And it is never later than needed: all of the budget is used.
    assert_eq!(ours.len(), 3 * LIMIT);
}
