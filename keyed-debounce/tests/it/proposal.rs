//! What the proposal lists for its queue entry, one test per line.

use keyed_debounce::{KeyState, Outcome};

use crate::sim::{Sim, at, ms, secs};

const SYNCED: (u64, u64) = (500, 5000);
const SUBMITTED: (u64, u64) = (180_000, 180_000);

/// D1: a new entry is attempted after its delay: half a second if it was synced, three minutes if
/// it was submitted.
#[test]
fn a_new_entry_waits_for_its_delay() {
    let mut sim = Sim::new();
    sim.request("synced", SYNCED.0, SYNCED.1);
    sim.request("submitted", SUBMITTED.0, SUBMITTED.1);
    assert_eq!(sim.starts_exactly_at(500, "synced").attempt, 1);
    assert_eq!(sim.starts_exactly_at(180_000, "submitted").attempt, 1);
}

/// D7, D17: "Verify backoff calculation: 20s → 40s → 80s → 120s → 120s".
#[test]
fn backoff_is_20_40_80_120_120_seconds() {
    let mut sim = Sim::new();
    sim.request("a", 0, 0);
    let mut run = sim.start("a");
    let mut now = 0;
    for (attempt, delay) in (2..).zip([20, 40, 80, 120, 120, 120]) {
        sim.finish(run, Outcome::Retry);
        now += delay * 1000;
        run = sim.starts_exactly_at(now, "a");
        assert_eq!(run.attempt, attempt);
    }
}

/// D8: "Verify `on_new_event()` resets attempt_count and updates next_attempt if sooner".
#[test]
fn a_new_event_resets_the_attempts_and_brings_the_next_one_forward_if_it_is_sooner() {
    let mut sim = Sim::new();
    sim.request("a", 0, 0);
    let run = sim.start("a");
    sim.finish(run, Outcome::Retry);
    sim.at(1000).request("a", SYNCED.0, SYNCED.1);
    let run = sim.starts_exactly_at(1500, "a");
    assert_eq!(run.attempt, 1);

    sim.finish(run, Outcome::Retry);
    sim.at(2000).request("a", SUBMITTED.0, SUBMITTED.1);
    let run = sim.starts_exactly_at(21_500, "a");
    assert_eq!(run.attempt, 1, "not sooner, but a fresh start");
}

/// D6: "Verify `on_sync_complete()` applies backoff only if next_attempt is in the past": ours
/// applies it only if nothing was asked for meanwhile.
#[test]
fn completion_backs_off_only_if_no_event_came_meanwhile() {
    let mut sim = Sim::new();
    sim.request("a", 0, 0);
    let run = sim.start("a");
    sim.at(100).finish(run, Outcome::Retry);
    assert_eq!(sim.state("a"), Some(KeyState::Backoff { due_in: secs(20), failures: 1 }));

    let run = sim.starts_exactly_at(20_100, "a");
    sim.request("a", SYNCED.0, SYNCED.1);
    sim.at(20_200).finish(run, Outcome::Retry);
    assert_eq!(sim.state("a"), Some(KeyState::Waiting { due_in: ms(400) }));
}

/// D5: "Verify `is_ready()` respects both `next_attempt` and `in_progress`".
#[test]
fn ready_means_due_and_not_in_progress() {
    let mut sim = Sim::new();
    sim.request("a", SYNCED.0, SYNCED.1);
    assert_ne!(sim.state("a"), Some(KeyState::Ready), "before its time");
    assert_eq!(sim.at(500).state("a"), Some(KeyState::Ready));
    let run = sim.start("a");
    sim.request("a", 0, 0);
    assert_eq!(sim.state("a"), Some(KeyState::Running { requested_again: true }));
    assert!(sim.at(10_000).take().is_none(), "in progress");
    sim.finish(run, Outcome::Done);
    assert_eq!(sim.state("a"), Some(KeyState::Ready));
}

/// D2: "Submit 10 events for same identifier within 100ms": one run, 500 ms after the last.
#[test]
fn ten_events_in_100_ms_are_one_run_500_ms_after_the_last() {
    let mut sim = Sim::new();
    for event in 0..10 {
        sim.at(event * 10).request("a", SYNCED.0, SYNCED.1);
    }
    let run = sim.starts_exactly_at(590, "a");
    sim.finish(run, Outcome::Done);
    assert_eq!(sim.schedule.next_wake(), None);
}

/// D6: "Verify new event during sync prevents backoff", also when its due was over before the run
/// ended, where the proposal's code backs off.
#[test]
fn an_event_during_a_long_run_prevents_backoff() {
    let mut sim = Sim::new();
    sim.request("a", 0, 0);
    let run = sim.start("a");
    sim.at(1000).request("a", SYNCED.0, SYNCED.1);
    sim.at(60_000).finish(run, Outcome::Retry);
    assert_eq!(sim.schedule.next_wake(), Some(at(60_000)));
    assert_eq!(sim.start("a").attempt, 1);
}

/// D5, D11: "Add events for 5 different identifiers": all five start, none twice.
#[test]
fn five_identifiers_start_in_parallel_and_none_twice() {
    let mut sim = Sim::new();
    for _ in 0..3 {
        for key in ["a", "b", "c", "d", "e"] {
            sim.request(key, SYNCED.0, SYNCED.1);
        }
    }
    assert_eq!(sim.at(500).take_all(), ["a", "b", "c", "d", "e"]);
    assert_eq!(sim.schedule.running_len(), 5);
}
