//! D13: `min_gap` makes rounds. D16: `min_interval` keeps starts of one key apart.

use std::num::NonZeroUsize;

use keyed_debounce::{
    KeyState, Outcome, ScheduleError, Scheduled,
    schedule::{Settings, Timestamp},
};

use crate::sim::{Sim, at, debounce, ms};

/// D13: a lone key starts when it is due.
#[test]
fn a_lone_key_starts_when_it_is_due() {
    let mut sim = Sim::with_min_gap(1000);
    sim.request("a", 500, 500);
    let _run = sim.starts_exactly_at(500, "a");
    sim.at(9000).request("b", 30, 30);
    let _run = sim.starts_exactly_at(9030, "b");
}

/// D13: a round hands out all that is due at its start; the next begins `min_gap` later.
#[test]
fn a_round_hands_out_what_is_due_at_its_start() {
    let mut sim = Sim::with_min_gap(1000);
    sim.request("a", 500, 500);
    sim.request("b", 500, 500);
    sim.request("c", 501, 501);
    sim.request("d", 1400, 1400);
    let _run = sim.starts_exactly_at(500, "a");
    sim.at(700);
    assert_eq!(sim.take_all(), ["b"], "due at the start, also when it is taken later");
    assert_eq!(sim.state("c"), Some(KeyState::Ready));
    let _run = sim.starts_exactly_at(1500, "c");
    assert_eq!(sim.take_all(), ["d"]);
}

/// D13: the next round begins when something is due after the gap.
#[test]
fn the_next_round_waits_for_something_due() {
    let mut sim = Sim::with_min_gap(1000);
    sim.request("a", 0, 0);
    let _run = sim.start("a");
    assert_eq!(sim.schedule.next_wake(), None);
    sim.at(100).request("b", 5000, 5000);
    let _run = sim.starts_exactly_at(5100, "b");
}

/// D13: what is requested in the very instant of a round's start is not part of it, so that a key
/// that is always due does not make an endless round.
#[test]
fn a_key_that_is_always_due_runs_once_a_round() {
    let mut sim = Sim::with_min_gap(1000);
    sim.request("a", 0, 0);
    for round in 0..5 {
        let run = sim.starts_exactly_at(round * 1000, "a");
        sim.request("a", 0, 0);
        sim.finish(run, Outcome::Done);
        assert!(sim.take().is_none());
    }
}

/// D16: two starts of one key are at least the interval apart, also when it is always requested.
#[test]
fn starts_of_one_key_keep_their_distance() {
    let mut sim = Sim::with_min_interval(1000);
    sim.request("a", 0, 0);
    for start in 0..5 {
        let run = sim.starts_exactly_at(start * 1000, "a");
        sim.at(start * 1000 + 10).finish(run, Outcome::Done);
        sim.request("a", 0, 0);
        assert_eq!(sim.state("a"), Some(KeyState::Waiting { due_in: ms(990) }));
    }
    sim.request("b", 0, 0);
    let _run = sim.start("b");
}

/// D16: the interval holds after a backoff and after a cancel, too.
#[test]
fn no_way_around_the_interval() {
    let mut sim = Sim::with_min_interval(1000);
    sim.request("a", 0, 0);
    let run = sim.start("a");
    sim.finish(run, Outcome::RetryAfter(ms(1)));
    let _run = sim.starts_exactly_at(1000, "a");
    sim.request("a", 0, 0);
    sim.cancel("a");
    sim.request("a", 0, 0);
    assert!(sim.take().is_none());

    let mut sim = Sim::with_min_interval(1000);
    sim.request("a", 0, 0);
    let run = sim.start("a");
    sim.finish(run, Outcome::Retry);
    sim.cancel("a");
    assert_eq!(sim.request("a", 0, 0), Scheduled::New);
    let _run = sim.starts_exactly_at(1000, "a");
}

/// D12, D16: a last start that is remembered takes no room, is remembered for the interval and
/// not longer, and is no state of the key.
#[test]
fn a_remembered_start_is_outside_the_capacity_and_ends() {
    let settings = Settings {
        capacity: NonZeroUsize::new(1),
        min_interval: Some(ms(1000)),
        ..Settings::default()
    };
    let mut sim = Sim::with(settings);
    sim.request("a", 0, 0);
    let run = sim.start("a");
    sim.finish(run, Outcome::Done);
    assert_eq!((sim.state("a"), sim.schedule.len()), (None, 0));
    sim.request("b", 0, 0);
    let full = sim.try_request("a", debounce(0, 0)).unwrap_err();
    assert!(matches!(full, ScheduleError::Full("a")));

    assert!(sim.schedule.expire(at(999)).is_none());
    assert_eq!(*sim.schedule.expire(at(1000)).unwrap(), "a");
    assert!(sim.schedule.expire(Timestamp::MAX).is_none());
}

/// D13: a last start that is remembered wakes nobody.
#[test]
fn a_remembered_start_is_no_reason_to_wake_up() {
    let mut sim = Sim::with_min_interval(1000);
    sim.request("a", 0, 0);
    let run = sim.start("a");
    sim.finish(run, Outcome::Done);
    assert_eq!(sim.schedule.next_wake(), None);
}

/// D12: over the capacity a new key is refused, whatever the others do; known keys join.
#[test]
fn the_capacity_counts_keys_in_any_state() {
    let settings = Settings { capacity: NonZeroUsize::new(3), ..Settings::default() };
    let mut sim = Sim::with(settings);
    for key in ["runs", "fails", "waits"] {
        sim.request(key, 0, 0);
    }
    let (runs, fails) = (sim.start("runs"), sim.start("fails"));
    sim.finish(fails, Outcome::Retry);
    let refused = sim.try_request("new", debounce(0, 0)).unwrap_err();
    assert!(matches!(refused, ScheduleError::Full("new")));
    assert_eq!((sim.schedule.len(), sim.state("new")), (3, None));
    for key in ["runs", "fails", "waits"] {
        sim.request(key, 5, 5);
    }
    sim.cancel("waits");
    assert_eq!(sim.request("new", 5, 5), Scheduled::New);
    sim.finish(runs, Outcome::Done);
}
