//! Quiet against max_wait, and late polls.

use keyed_debounce::Debounce;

use crate::sim::{Sim, at, ms};

/// D1, D2: requests every 100 ms from 0 to 1000 ms; when does the key run? `max_wait` below,
/// equal to and above `quiet`, and around the length of the burst.
#[test]
fn a_table_of_quiet_against_max_wait() {
    for (quiet, max_wait, start) in [
        (500, 200, 200),
        (500, 499, 499),
        (500, 500, 500),
        (500, 501, 501),
        (500, 1200, 1200),
        (500, 1499, 1499),
        (500, 1500, 1500),
        (500, 5000, 1500),
        (50, 5000, 50),
        (0, 5000, 0),
        (500, 0, 0),
        (0, 0, 0),
    ] {
        let mut sim = Sim::new();
        for now in (0..=1000).step_by(100) {
            // What is due before the next request stays ready whatever is requested.
            sim.at(now).request("a", quiet, max_wait);
        }
        assert_eq!(sim.schedule.next_wake(), Some(at(start)), "{quiet}/{max_wait}");
    }
}

/// D2: a steady stream of requests cannot starve the key.
#[test]
fn a_steady_stream_runs_every_max_wait() {
    let mut sim = Sim::new();
    let mut starts = Vec::new();
    for now in (0..60_000).step_by(100) {
        sim.at(now).request("a", 500, 5000);
        if let Some(run) = sim.take() {
            starts.push(now);
            sim.finish(run, keyed_debounce::Outcome::Done);
        }
    }
    // Done at 5000 with the request of that moment already in: the next one counts from 5100.
    assert_eq!(starts.first(), Some(&5000));
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 5100), "{starts:?}");
}

/// D3: a slow request never delays a fast one, before or after it.
#[test]
fn three_minutes_never_delay_half_a_second() {
    let mut sim = Sim::new();
    sim.request("a", 500, 5000);
    sim.at(100).request("a", 180_000, 180_000);
    let _run = sim.starts_exactly_at(500, "a");

    let mut sim = Sim::new();
    sim.request("a", 180_000, 180_000);
    sim.at(100).request("a", 500, 5000);
    let _run = sim.starts_exactly_at(600, "a");
}

/// D3: a less urgent request may still bring the latest start forward.
#[test]
fn a_less_urgent_request_with_a_short_max_wait_is_kept() {
    let mut sim = Sim::new();
    sim.request("a", 500, 5000);
    sim.request("a", 700, 300);
    let _run = sim.starts_exactly_at(300, "a");
}

/// D2: `Debounce::after`: the soonest wins, later requests cannot postpone it.
#[test]
fn a_fixed_delay_is_not_postponed() {
    let mut sim = Sim::new();
    for now in (0..180_000).step_by(10_000) {
        sim.at(now).try_request("a", Debounce::after(ms(180_000))).unwrap();
    }
    let _run = sim.starts_exactly_at(180_000, "a");
}

/// D2: what the smallest quiet was is forgotten when the run begins.
#[test]
fn urgency_ends_with_the_run_it_was_for() {
    let mut sim = Sim::new();
    sim.request("a", 0, 0);
    let run = sim.start("a");
    sim.request("a", 500, 5000);
    sim.finish(run, keyed_debounce::Outcome::Done);
    sim.at(200).request("a", 500, 5000);
    let _run = sim.starts_exactly_at(700, "a");
}

/// D3, D14: a timer that fires late finds the key once, and a request between due and poll changes
/// nothing: it is ready, though nobody has looked.
#[test]
fn a_late_poll_hands_out_once() {
    let mut sim = Sim::new();
    sim.request("a", 500, 500);
    sim.request("b", 600, 600);
    sim.at(900).request("a", 500, 500);
    assert_eq!(sim.take_all(), ["a", "b"]);
    assert_eq!(sim.at(10_000).take_all(), [""; 0]);
}
