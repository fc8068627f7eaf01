//! D18: memory, as a counting allocator sees it. A test binary of its own with one test, so that
//! nobody else allocates meanwhile.

use std::{alloc::System, num::NonZeroU32, time::Duration};

use keyed_debounce::{
    Debounce, Outcome,
    schedule::{Ending, Schedule, Settings, Timestamp},
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const KEYS: u64 = 50_000;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_origin(Duration::from_millis(ms))
}

/// Bytes that are allocated now and were not at the start of the region.
fn held(region: &Region<'_, System>) -> i64 {
    let stats = region.change();
    i64::try_from(stats.bytes_allocated).unwrap() - i64::try_from(stats.bytes_deallocated).unwrap()
}

/// D9, D18: after everything is done nothing is kept, whatever order keys come and go in; and no
/// single request or end of a run moves more than a few kilobytes, however many keys there are.
#[test]
fn memory_is_given_back_and_no_step_moves_much() {
    let settings = Settings { min_interval: Some(Duration::from_millis(1)), ..Settings::default() };
    let mut schedule = Schedule::<u64>::new(settings);
    let backoff = |_: NonZeroU32, _: u64| Duration::ZERO;
    let region = Region::new(ALLOCATOR);
    let mut most_in_a_step = 0;
    let mut step = |schedule: &mut Schedule<u64>, act: &mut dyn FnMut(&mut Schedule<u64>)| {
        let region = Region::new(ALLOCATOR);
        act(schedule);
        let stats = region.change();
        // What a growing table would copy is at least what it allocates.
        most_in_a_step = most_in_a_step.max(stats.bytes_allocated);
    };
    for round in 0..2 {
        let start = round * 10_000_000;
        for key in 0..KEYS {
            let delay = Duration::from_millis(1000 + key % 977);
            step(&mut schedule, &mut |schedule| {
                schedule.schedule(key, Debounce::after(delay), at(start)).unwrap();
            });
        }
        let per_key = held(&region) / i64::try_from(KEYS).unwrap();
        assert!(per_key < 250, "{per_key} bytes for a key of 8");
        for key in (0..KEYS).step_by(3) {
            step(&mut schedule, &mut |schedule| {
                assert!(schedule.cancel(&key, at(start + 1)).found);
            });
        }
        let now = at(start + 5000);
        let mut taken = 0;
        while !schedule.is_empty() {
            step(&mut schedule, &mut |schedule| {
                let Some(run) = schedule.pop_due(now) else { return };
                taken += 1;
                let outcome = if taken % 2 == 0 { Outcome::Done } else { Outcome::Retry };
                let ending = Ending::new(outcome, run.attempt, &backoff, 0);
                schedule.finish(run.ticket, ending, now);
            });
            if schedule.next_wake() > Some(now) {
                break;
            }
        }
        let later = at(start + 6000);
        while let Some(run) = schedule.pop_due(later) {
            schedule.finish(run.ticket, Ending::Done, later);
        }
        assert!(schedule.is_empty());
        while schedule.expire(at(start + 7000)).is_some() {}
        let kept = held(&region);
        assert!(kept < 4096, "{kept} bytes are kept");
    }
    drop(schedule);
    // Not zero: the harness may have written down its own few things meanwhile.
    assert!(held(&region) < 4096, "{} bytes are kept", held(&region));
    assert!(most_in_a_step < 64 * 1024, "one step allocated {most_in_a_step} bytes");
}
