//! How many bytes a waiting key takes, its own included, as a counting allocator sees it.
//!
//! `cargo bench -p keyed-debounce --bench bytes [-- KEYS]`. The numbers do not depend on the machine.

mod contenders;

use std::{alloc::System, env};

use contenders::{
    BenchKey, Contender,
    delay_queue::DelayQueueAndMap,
    keys::{delay, moment, shuffled},
    ours::Ours,
    scan::Scan,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let keys = env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    println!("{keys} keys: bytes for a key after schedule, and after a reschedule of each");
    compare::<u64>(keys);
    compare::<String>(keys);
}

fn compare<K: BenchKey>(keys: u64) {
    println!("{}", K::NAME);
    let ours = row::<K, Ours<K>>(keys, None);
    row::<K, DelayQueueAndMap<K>>(keys, Some(ours));
    row::<K, Scan<K>>(keys, Some(ours));
}

fn row<K: BenchKey, C: Contender<K>>(keys: u64, ours: Option<f64>) -> f64 {
    let order = shuffled(keys);
    let region = Region::new(ALLOCATOR);
    let mut queue = C::new();
    for number in 0..keys {
        queue.request(K::number(number), delay(number), moment(number));
    }
    let after_schedule = held(&region, keys);
    for (requests, &number) in (keys..).zip(&order) {
        queue.request(K::number(number), delay(number), moment(requests));
    }
    let after_reschedule = held(&region, keys);
    let share = ours.map_or(100.0, |ours| ours / after_schedule * 100.0);
    println!("  {:24}{after_schedule:8.1}{after_reschedule:8.1}   ours is {share:.0} %", C::NAME);
    after_schedule
}

/// Bytes that are allocated now and were not at the start of the region.
#[expect(clippy::cast_precision_loss, reason = "a mean to print")]
fn held(region: &Region<'_, System>, keys: u64) -> f64 {
    let stats = region.change();
    (stats.bytes_allocated as f64 - stats.bytes_deallocated as f64) / keys as f64
}
