//! D14: far and past instants, jumps, clocks that start anywhere.

use std::time::Duration;

use keyed_debounce::{
    Debounce, KeyState, KeyedDebouncer, Outcome,
    schedule::{Ending, Schedule, Settings, Timestamp},
};
use tokio::time::{Instant, advance, timeout};

use crate::sim::{Sim, at, bounded, ms, secs};

/// 2^36 ms, where the timer wheels of others end.
const WHEEL_END: Duration = Duration::from_millis(1 << 36);

/// D14: the same story at each start of the clock.
#[test]
fn clocks_may_start_anywhere() {
    let year = secs(365 * 24 * 60 * 60);
    for start in [
        Duration::ZERO,
        Duration::from_nanos(1),
        WHEEL_END - ms(1),
        WHEEL_END,
        WHEEL_END * 3,
        Timestamp::MAX.since_origin() - year,
        Timestamp::MAX.since_origin() - secs(1),
    ] {
        let start = Timestamp::from_origin(start);
        let mut schedule = Schedule::new(Settings::default());
        schedule.schedule("a", Debounce::after(ms(500)), start).unwrap();
        assert!(schedule.pop_due(start + ms(499)).is_none());
        let run = schedule.pop_due(start + ms(500)).unwrap();
        let ending = Ending::new(Outcome::RetryAfter(ms(100)), 1, &|_, _| ms(0), 0);
        schedule.finish(run.ticket, ending, start + ms(500));
        assert!(schedule.pop_due(start + ms(599)).is_none());
        assert!(schedule.pop_due(start + ms(600)).is_some());
    }
}

/// D14: endless delays are never due, do not disturb others, and can be brought forward.
#[test]
fn endless_delays_saturate() {
    let mut sim = Sim::new();
    sim.at(5).try_request("never", Debounce::after(Duration::MAX)).unwrap();
    sim.try_request("quiet", Debounce::new(Duration::MAX, ms(10))).unwrap();
    sim.request("a", 20, 20);
    assert_eq!(sim.schedule.next_wake(), Some(at(15)));
    assert_eq!(sim.at(1 << 40).take_all(), ["quiet", "a"]);
    assert_eq!(sim.schedule.next_wake(), Some(Timestamp::MAX));
    sim.request("never", 0, 0);
    let run = sim.start("never");
    sim.finish(run, Outcome::RetryAfter(Duration::MAX));
    assert_eq!(sim.schedule.next_wake(), Some(Timestamp::MAX));
    assert!(sim.cancel("never"));
}

/// D14: at the end of time all deadlines are one, and the order is that of the first requests.
#[test]
fn the_end_of_time_is_an_instant_like_others() {
    let mut sim = Sim::new();
    sim.now = Timestamp::MAX;
    sim.request("a", 500, 5000);
    sim.request("b", 0, 0);
    assert_eq!(sim.take_all(), ["a", "b"]);
}

/// D14: a jump forward releases all that is due, once, in order.
#[test]
fn a_jump_releases_all_that_is_due_once() {
    let mut sim = Sim::new();
    sim.request("a", 30, 30);
    sim.request("b", 10, 10);
    sim.request("c", 1 << 39, 1 << 39);
    assert_eq!(sim.at(1 << 38).take_all(), ["b", "a"]);
    assert_eq!(sim.take_all(), [""; 0]);
}

/// D14: a clock that goes back stands still.
#[test]
fn time_does_not_run_backwards() {
    let mut sim = Sim::new();
    sim.at(1000).request("a", 500, 500);
    sim.at(10).request("b", 500, 500);
    assert_eq!(sim.state("b"), Some(KeyState::Waiting { due_in: ms(500) }));
    assert_eq!(sim.at(1500).take_all(), ["a", "b"]);
}

/// D14: timestamps saturate both ways.
#[test]
fn timestamps_saturate() {
    assert_eq!(Timestamp::from_origin(Duration::MAX), Timestamp::MAX);
    assert_eq!(at(5) + Duration::MAX, Timestamp::MAX);
    assert_eq!(at(5).saturating_since(at(9)), Duration::ZERO);
    assert_eq!(at(9).saturating_since(at(5)), ms(4));
    assert_eq!(at(9).since_origin(), ms(9));
}

/// D14: the shell with delays beyond the reach of any timer, and a clock that jumps 2^37 ms.
#[tokio::test(start_paused = true)]
async fn the_shell_takes_any_delay() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("never", Debounce::after(Duration::MAX)).unwrap();
    queue.schedule("far", Debounce::after(WHEEL_END * 2)).unwrap();
    assert!(timeout(WHEEL_END, queue.next()).await.is_err());
    let run = queue.next().await.unwrap();
    assert_eq!(*run.key(), "far");
    run.finish(Outcome::RetryAfter(Duration::MAX));
    advance(WHEEL_END * 2).await;
    assert!(timeout(secs(1), queue.next()).await.is_err());
    assert_eq!(queue.len(), 2);
}

/// D14: a far key starts when it is due although the timer sleeps in parts.
#[tokio::test(start_paused = true)]
async fn a_delay_of_years_ends_on_time() {
    bounded();
    let queue = KeyedDebouncer::new();
    let start = Instant::now();
    let years = secs(3 * 366 * 24 * 60 * 60);
    queue.schedule("a", Debounce::after(years)).unwrap();
    let _run = queue.next().await.unwrap();
    assert_eq!(start.elapsed(), years);
}
