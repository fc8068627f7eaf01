//! D11: the order among due keys.

use keyed_debounce::Outcome;

use crate::sim::Sim;

/// D11: by due, whatever the order of requests.
#[test]
fn due_keys_leave_by_due() {
    let mut sim = Sim::new();
    for (key, delay) in [("c", 30), ("a", 10), ("d", 40), ("b", 20)] {
        sim.request(key, delay, delay);
    }
    assert_eq!(sim.at(100).take_all(), ["a", "b", "c", "d"]);
}

/// D11: ties by the first request since the last run began, not by the last one.
#[test]
fn ties_leave_by_first_request() {
    let mut sim = Sim::new();
    sim.request("a", 50, 5000);
    sim.request("b", 50, 5000);
    sim.at(10).request("b", 50, 5000);
    sim.request("a", 50, 5000);
    assert_eq!(sim.at(60).take_all(), ["a", "b"]);
}

/// D11: a key that is always due does not starve the others.
#[test]
fn a_key_that_is_always_due_lets_others_pass() {
    let mut sim = Sim::new();
    sim.request("greedy", 0, 0);
    sim.request("a", 0, 0);
    sim.request("b", 0, 0);
    let mut order = Vec::new();
    for _ in 0..4 {
        let run = sim.take().unwrap();
        order.push(*run.key);
        if *run.key == "greedy" {
            sim.request("greedy", 0, 0);
        }
        sim.finish(run, Outcome::Done);
    }
    assert_eq!(order, ["greedy", "a", "b", "greedy"]);
}

/// D11: a long run that was requested long ago does not pass those who became due meanwhile.
#[test]
fn a_due_that_passed_during_the_run_counts_from_its_end() {
    let mut sim = Sim::new();
    sim.request("long", 0, 0);
    let run = sim.start("long");
    sim.at(1).request("long", 0, 0);
    sim.at(50).request("other", 0, 0);
    sim.at(100).finish(run, Outcome::Done);
    assert_eq!(sim.take_all(), ["other", "long"]);
}

/// D11: with one runner and demand above what it can do, each key gets its turn.
#[test]
fn an_overloaded_runner_serves_all_keys_alike() {
    const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let mut sim = Sim::new();
    let mut runs = [0_u32; KEYS.len()];
    for now in 0..1000 {
        sim.at(now);
        for key in KEYS {
            sim.request(key, 0, 0);
        }
        let run = sim.take().unwrap();
        runs[KEYS.iter().position(|key| key == &*run.key).unwrap()] += 1;
        sim.finish(run, Outcome::Done);
    }
    assert_eq!(runs, [200; KEYS.len()]);
}
