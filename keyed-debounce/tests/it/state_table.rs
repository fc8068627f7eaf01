//! The state table of the README, cell by cell: in which state a key is, what happens, and where it
//! is then. One test per state, one line per cell.

use keyed_debounce::{KeyState, Outcome, Scheduled};

use crate::sim::{Sim, ms, secs};

const ABSENT: Option<KeyState> = None;
const READY: Option<KeyState> = Some(KeyState::Ready);
const RUNNING: Option<KeyState> = Some(KeyState::Running { requested_again: false });
const REQUESTED: Option<KeyState> = Some(KeyState::Running { requested_again: true });

fn waiting(due_in_ms: u64) -> Option<KeyState> {
    Some(KeyState::Waiting { due_in: ms(due_in_ms) })
}

fn backoff(due_in_ms: u64, failures: u32) -> Option<KeyState> {
    Some(KeyState::Backoff { due_in: ms(due_in_ms), failures })
}

fn is_waiting() -> Sim {
    let mut sim = Sim::new();
    sim.request("a", 500, 5000);
    sim.at(100);
    sim
}

fn is_ready() -> Sim {
    let mut sim = is_waiting();
    sim.at(500);
    sim
}

/// A state with a run that is on; `event` ends it with an outcome at 600 ms.
fn ends(requested: bool, outcome: Outcome) -> Option<KeyState> {
    let mut sim = is_ready();
    let run = sim.start("a");
    if requested {
        sim.request("a", 500, 5000);
    }
    sim.at(600).finish(run, outcome);
    sim.state("a")
}

fn in_backoff() -> Sim {
    let mut sim = is_ready();
    let run = sim.start("a");
    sim.finish(run, Outcome::Retry);
    sim
}

/// D1: absent × request, cancel, poll.
#[test]
fn absent() {
    let mut sim = Sim::new();
    assert_eq!(sim.request("a", 500, 5000), Scheduled::New);
    assert_eq!(sim.state("a"), waiting(500));

    let mut sim = Sim::new();
    assert!(!sim.cancel("a"));
    assert!(sim.take().is_none());
    assert_eq!(sim.state("a"), ABSENT);
}

/// D2, D3: waiting × request (more urgent, equal, less urgent), due, cancel, early poll.
#[test]
fn waiting_for_its_due() {
    let mut sim = is_waiting();
    assert_eq!(sim.request("a", 200, 5000), Scheduled::Joined);
    assert_eq!(sim.state("a"), waiting(200), "more urgent");

    let mut sim = is_waiting();
    sim.request("a", 500, 5000);
    assert_eq!(sim.state("a"), waiting(500), "equal");

    let mut sim = is_waiting();
    sim.request("a", 180_000, 180_000);
    assert_eq!(sim.state("a"), waiting(400), "less urgent");

    let mut sim = is_waiting();
    sim.at(500);
    assert_eq!(sim.state("a"), READY, "due");

    let mut sim = is_waiting();
    assert!(sim.cancel("a"));
    assert_eq!(sim.state("a"), ABSENT);

    let mut sim = is_waiting();
    assert!(sim.take().is_none());
    assert_eq!(sim.state("a"), waiting(400));
}

/// D3: ready × request, take, cancel.
#[test]
fn ready() {
    let mut sim = is_ready();
    assert_eq!(sim.request("a", 500, 5000), Scheduled::Joined);
    assert_eq!(sim.state("a"), READY);

    let mut sim = is_ready();
    let _run = sim.start("a");
    assert_eq!(sim.state("a"), RUNNING);

    let mut sim = is_ready();
    assert!(sim.cancel("a"));
    assert_eq!(sim.state("a"), ABSENT);
    assert!(sim.take().is_none());
}

/// D6, D7, D9, D10: running × request, cancel, Done, Retry, RetryAfter, Defer, dropped.
#[test]
fn running() {
    let mut sim = is_ready();
    let _run = sim.start("a");
    assert_eq!(sim.request("a", 500, 5000), Scheduled::AfterRun);
    assert_eq!(sim.state("a"), REQUESTED);

    let mut sim = is_ready();
    let run = sim.start("a");
    assert!(!sim.cancel("a"), "nothing waits");
    assert_eq!(sim.state("a"), RUNNING);
    sim.finish(run, Outcome::Retry);
    assert_eq!(sim.state("a"), ABSENT, "the outcome is dropped");

    assert_eq!(ends(false, Outcome::Done), ABSENT);
    assert_eq!(ends(false, Outcome::Retry), backoff(20_000, 1));
    assert_eq!(ends(false, Outcome::RetryAfter(ms(70))), backoff(70, 1));
    assert_eq!(ends(false, Outcome::Defer(ms(70))), backoff(70, 0));
}

/// D6: running and requested × request, cancel, Done, Retry, RetryAfter, Defer.
#[test]
fn running_and_requested() {
    let mut sim = is_ready();
    let run = sim.start("a");
    sim.request("a", 500, 5000);
    assert_eq!(sim.request("a", 300, 5000), Scheduled::AfterRun);
    assert_eq!(sim.state("a"), REQUESTED);
    sim.finish(run, Outcome::Done);
    assert_eq!(sim.state("a"), waiting(300), "the requests join as if the key waited");

    let mut sim = is_ready();
    let run = sim.start("a");
    sim.request("a", 500, 5000);
    assert!(sim.cancel("a"));
    assert_eq!(sim.state("a"), RUNNING);
    sim.finish(run, Outcome::Retry);
    assert_eq!(sim.state("a"), ABSENT);

    assert_eq!(ends(true, Outcome::Done), waiting(400));
    assert_eq!(ends(true, Outcome::Retry), waiting(400));
    assert_eq!(ends(true, Outcome::RetryAfter(ms(70))), waiting(70), "the earlier of the two");
    assert_eq!(ends(true, Outcome::RetryAfter(secs(70))), waiting(400));
    assert_eq!(ends(true, Outcome::Defer(ms(70))), waiting(70));
}

/// D6: a request whose due has passed when the run ends is ready at once, after those that were due
/// before the run ended (D11).
#[test]
fn running_and_requested_with_a_due_that_has_passed() {
    let mut sim = is_ready();
    let run = sim.start("a");
    sim.request("a", 500, 5000);
    sim.at(1500);
    sim.request("b", 100, 100);
    sim.at(2000).finish(run, Outcome::Retry);
    assert_eq!(sim.state("a"), READY);
    assert_eq!(sim.take_all(), ["b", "a"]);
}

/// D7, D8: backoff × request, due, take, cancel.
#[test]
fn backing_off() {
    let mut sim = in_backoff();
    assert_eq!(sim.request("a", 500, 5000), Scheduled::Joined);
    assert_eq!(sim.state("a"), waiting(500), "a fresh start");

    let mut sim = in_backoff();
    sim.at(20_400).request("a", 500, 5000);
    assert_eq!(sim.state("a"), waiting(100), "brought forward, never put off");

    let mut sim = in_backoff();
    sim.request("a", 180_000, 180_000);
    assert_eq!(sim.state("a"), waiting(20_000));

    let mut sim = in_backoff();
    sim.at(20_500);
    assert_eq!(sim.state("a"), READY);
    assert_eq!(sim.start("a").attempt, 2);

    let mut sim = in_backoff();
    sim.at(20_500).request("a", 500, 5000);
    assert_eq!(sim.state("a"), READY);
    assert_eq!(sim.start("a").attempt, 1, "D8: also a ready key starts afresh");

    let mut sim = in_backoff();
    assert!(sim.cancel("a"));
    assert_eq!(sim.state("a"), ABSENT);
}

/// D19: after a cancel during the run a later request counts as any other.
#[test]
fn cancelled_and_requested_again() {
    let mut sim = is_ready();
    let run = sim.start("a");
    sim.request("a", 100, 100);
    sim.cancel("a");
    assert_eq!(sim.at(600).request("a", 500, 5000), Scheduled::AfterRun);
    sim.at(700).finish(run, Outcome::Done);
    assert_eq!(sim.state("a"), waiting(400));
}

/// D6: after failures in a row a request during the run makes the next delay that of a first
/// failure, `backoff(1)`, not that of the count so far.
#[test]
fn a_request_during_a_failing_run_waits_for_the_first_backoff_at_most() {
    let mut sim = in_backoff();
    let run = sim.starts_exactly_at(20_500, "a");
    sim.finish(run, Outcome::Retry);
    let run = sim.starts_exactly_at(60_500, "a");
    assert_eq!(run.attempt, 3);
    sim.request("a", 180_000, 180_000);
    sim.finish(run, Outcome::Retry);
    assert_eq!(sim.state("a"), waiting(20_000));
    assert_eq!(sim.starts_exactly_at(80_500, "a").attempt, 1);
}
