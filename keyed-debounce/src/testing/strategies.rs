use std::{ops::Range, time::Duration};

use proptest::{collection::vec, prelude::*};

use crate::{Debounce, Outcome};

/// One step of a random test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Time passes.
    Advance(Duration),
    /// The key with this number is requested.
    Schedule(u32, Debounce),
    /// The next run is taken, if there is one.
    Take,
    /// One of the runs that are on ends: the one with this number, modulo how many there are.
    Finish(usize, Outcome),
    /// As [`Op::Finish`], but the run is dropped.
    Drop(usize),
    /// The key with this number is cancelled.
    Cancel(u32),
}

/// Sequences of operations on few keys, so that they meet. All times are whole milliseconds.
pub fn ops(length: Range<usize>) -> impl Strategy<Value = Vec<Op>> {
    vec(op(6), length)
}

/// One operation on the keys below `keys`.
pub fn op(keys: u32) -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => step().prop_map(Op::Advance),
        6 => (0..keys, debounce()).prop_map(|(key, debounce)| Op::Schedule(key, debounce)),
        4 => Just(Op::Take),
        3 => (any::<usize>(), outcome()).prop_map(|(run, outcome)| Op::Finish(run, outcome)),
        1 => any::<usize>().prop_map(Op::Drop),
        1 => (0..keys).prop_map(Op::Cancel),
    ]
}

/// A debounce: quiet below, equal to or above the longest wait, zero and endless included.
pub fn debounce() -> impl Strategy<Value = Debounce> {
    prop_oneof![
        6 => (delay(), delay()).prop_map(|(quiet, max_wait)| Debounce::new(quiet, max_wait)),
        2 => delay().prop_map(Debounce::after),
        2 => Just(Debounce::new(Duration::from_millis(500), Duration::from_secs(5))),
        1 => Just(Debounce::immediate()),
        1 => delay().prop_map(|quiet| Debounce::new(quiet, Duration::MAX)),
        1 => Just(Debounce::after(Duration::MAX)),
    ]
}

/// An outcome.
pub fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        2 => Just(Outcome::Done),
        3 => Just(Outcome::Retry),
        1 => delay().prop_map(Outcome::RetryAfter),
        1 => delay().prop_map(Outcome::Defer),
    ]
}

/// A delay as people use it, most often short.
pub fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => 0..20_u64,
        4 => 0..1000_u64,
        2 => 0..200_000_u64,
    ]
    .prop_map(Duration::from_millis)
}

/// How long until the next operation: often not at all, seldom a jump of more than 2^36 ms, where
/// timer wheels have ended.
pub fn step() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => Just(0),
        6 => 1..20_u64,
        6 => 1..1000_u64,
        2 => 1..200_000_u64,
        1 => Just(1 << 37),
    ]
    .prop_map(Duration::from_millis)
}
