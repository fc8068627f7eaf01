//! What is measured: this crate's core, and what a user would write instead.
#![allow(dead_code, reason = "each bench uses its part")]

pub(crate) mod delay_queue;
pub(crate) mod keys;
pub(crate) mod ours;
pub(crate) mod scan;

use std::{
    hash::{BuildHasherDefault, DefaultHasher},
    time::Duration,
};

pub(crate) use keys::BenchKey;

/// The standard library's hasher without its random seed: tables then grow with the same request in
/// each round.
pub(crate) type Hasher = BuildHasherDefault<DefaultHasher>;

/// A queue of keys that are due later. Time is what the caller says, counted from the start.
pub(crate) trait Contender<K> {
    /// What the tables call it.
    const NAME: &'static str;
    /// How far time goes at once while keys become due.
    const STEP: Duration = Duration::from_millis(10);

    fn new() -> Self;
    /// An event of `key`: it runs `delay` after `now`. A key that waits already waits anew.
    fn request(&mut self, key: K, delay: Duration, now: Duration);
    /// Takes what is due at `now` and finishes it. Returns how many keys that were.
    fn take_and_finish(&mut self, now: Duration) -> usize;
}
