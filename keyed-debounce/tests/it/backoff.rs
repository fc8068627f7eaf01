//! D17: delays between failures.

use std::{num::NonZeroU32, time::Duration};

use keyed_debounce::{Backoff, Exponential};
use proptest::prelude::*;

use crate::sim::{ms, secs};

fn failures(failures: u32) -> NonZeroU32 {
    NonZeroU32::new(failures).unwrap()
}

/// D17: the defaults of the proposal.
#[test]
fn the_default_is_20_40_80_120() {
    let delays = [1, 2, 3, 4, 5, 1000, u32::MAX]
        .map(|count| Exponential::DEFAULT.delay(failures(count), u64::MAX));
    assert_eq!(delays, [20, 40, 80, 120, 120, 120, 120].map(secs));
    assert_eq!(Exponential::default(), Exponential::DEFAULT);
}

/// D17: zero only where it is asked for.
#[test]
fn zero_is_a_choice() {
    for count in [1, 2, u32::MAX] {
        let count = failures(count);
        assert!(Exponential::new(Duration::ZERO, 2, secs(9)).delay(count, 0).is_zero());
        assert!(Exponential::new(secs(9), 2, Duration::ZERO).delay(count, 0).is_zero());
        let full_jitter = Exponential::new(ms(1), 2, secs(9)).with_jitter_percent(100);
        assert!(!full_jitter.delay(count, u64::MAX).is_zero());
    }
}

/// D17: the factors 0 and 1 keep the delay.
#[test]
fn a_factor_of_one_is_constant() {
    for factor in [0, 1] {
        let constant = Exponential::new(ms(30), factor, secs(9));
        assert_eq!(constant.delay(failures(u32::MAX), 0), ms(30));
    }
}

/// D17: a closure is a backoff.
#[test]
fn a_closure_is_a_backoff() {
    let linear = |failures: NonZeroU32, _random: u64| secs(u64::from(failures.get()));
    assert_eq!(Backoff::delay(&linear, failures(3), 0), secs(3));
}

/// D17: jitter spreads evenly over the part it may take.
#[test]
fn jitter_takes_up_to_its_share() {
    let backoff = Exponential::new(secs(100), 2, secs(100)).with_jitter_percent(25);
    assert_eq!(backoff.delay(failures(1), 0), secs(100));
    assert_eq!(backoff.delay(failures(1), 1 << 63), ms(87_500));
    let least = backoff.delay(failures(1), u64::MAX);
    assert!(least > secs(75) && least < ms(75_001), "{least:?}");
}

fn any_backoff() -> impl Strategy<Value = Exponential> {
    let duration =
        || prop_oneof![any::<Duration>(), (0..1000_u64).prop_map(ms), Just(Duration::MAX)];
    (duration(), any::<u32>(), duration())
        .prop_map(|(initial, factor, cap)| Exponential::new(initial, factor, cap))
}

proptest! {
    /// D17: never above the cap, jitter included; never zero unless configured.
    #[test]
    fn never_above_the_cap_and_never_zero(
        backoff in any_backoff(),
        percent in any::<u8>(),
        count in 1..=u32::MAX,
        random in any::<u64>(),
        cap in (0..100_000_u64).prop_map(ms),
        initial in (1..100_000_u64).prop_map(ms),
        factor in any::<u32>(),
    ) {
        let count = failures(count);
        let jittered = backoff.with_jitter_percent(percent).delay(count, random);
        prop_assert!(jittered <= backoff.delay(count, random));
        let capped = Exponential::new(initial, factor, cap).with_jitter_percent(percent);
        let delay = capped.delay(count, random);
        prop_assert!(delay <= cap);
        prop_assert_eq!(delay.is_zero(), cap.is_zero());
    }

    /// D17: without jitter it does not shrink, up to the last count there is.
    #[test]
    fn monotone_without_jitter(backoff in any_backoff(), count in 1..u32::MAX, more in 1..u32::MAX) {
        let later = failures(count.saturating_add(more));
        prop_assert!(backoff.delay(failures(count), 0) <= backoff.delay(later, 0));
    }
}
