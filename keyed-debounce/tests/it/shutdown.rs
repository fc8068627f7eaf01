//! D15: close and drain.

use std::{sync::Arc, time::Duration};

use keyed_debounce::{
    Debounce, Drain, KeyState, KeyedDebouncer, Outcome, Run, ScheduleError, SchedulerError,
};
use tokio::{
    sync::Mutex,
    task::{JoinHandle, yield_now},
    time::{Instant, sleep},
};

use crate::sim::{bounded, ms, secs};

const NOW: Debounce = Debounce::immediate();
const LATER: Debounce = Debounce::after(secs(180));

fn queue() -> KeyedDebouncer<&'static str> {
    KeyedDebouncer::new()
}

/// Runs each key for 100 ms, fails those whose name begins with "fails", and notes all.
fn runner(queue: &KeyedDebouncer<&'static str>) -> (Arc<Mutex<Vec<&'static str>>>, JoinHandle<()>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (queue, notes) = (queue.clone(), Arc::clone(&log));
    let handle = tokio::spawn(async move {
        let handler = move |run: Run<&'static str>| {
            let notes = Arc::clone(&notes);
            async move {
                notes.lock().await.push(*run.key());
                sleep(ms(100)).await;
                let failed = run.key().starts_with("fails");
                run.finish(if failed { Outcome::Retry } else { Outcome::Done });
            }
        };
        queue.run(handler).await;
    });
    (log, handle)
}

/// D15: close wakes every waiter, refuses requests, and twice is fine.
#[tokio::test(start_paused = true)]
async fn close_wakes_every_waiter_and_twice_is_fine() {
    bounded();
    let queue = queue();
    queue.schedule("a", LATER).unwrap();
    let waiters: Vec<_> = (0..5)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.unwrap_err() })
        })
        .collect();
    yield_now().await;
    queue.close();
    queue.close();
    for waiter in waiters {
        assert!(matches!(waiter.await.unwrap(), SchedulerError::Closed));
    }
    assert!(matches!(queue.schedule("b", NOW), Err(ScheduleError::Closed("b"))));
    assert!(matches!(queue.next().await, Err(SchedulerError::Closed)));
    assert_eq!(queue.counts().waiting, 1, "what waited is left");
}

/// D15, D5: a run that is on goes on after close and is settled.
#[tokio::test(start_paused = true)]
async fn a_run_outlives_close() {
    bounded();
    let queue = queue();
    queue.schedule("a", NOW).unwrap();
    let run = queue.next().await.unwrap();
    queue.close();
    assert_eq!(queue.state(&"a"), Some(KeyState::Running { requested_again: false }));
    run.finish(Outcome::Done);
    assert!(queue.is_empty());
}

/// D15: `Drain::Running` waits for running keys and starts nothing.
#[tokio::test(start_paused = true)]
async fn drain_running_waits_for_what_runs() {
    bounded();
    let queue = queue();
    let (log, runner) = runner(&queue);
    queue.schedule("a", NOW).unwrap();
    yield_now().await;
    sleep(ms(10)).await;
    queue.schedule("b", Debounce::after(ms(10))).unwrap();
    let start = Instant::now();
    let left = queue.drain(Drain::Running, secs(10)).await;
    assert_eq!(start.elapsed(), ms(90));
    assert_eq!((left.total(), left.running), (1, 0));
    runner.await.unwrap();
    assert_eq!(*log.lock().await, ["a"]);
}

/// D15: `Drain::Ready` also runs what is ready, not what waits.
#[tokio::test(start_paused = true)]
async fn drain_ready_runs_what_is_ready() {
    bounded();
    let queue = queue();
    for key in ["a", "b", "fails"] {
        queue.schedule(key, NOW).unwrap();
    }
    queue.schedule("waits", LATER).unwrap();
    let (log, runner) = runner(&queue);
    let left = queue.drain(Drain::Ready, secs(10)).await;
    runner.await.unwrap();
    assert_eq!(*log.lock().await, ["a", "b", "fails"]);
    assert_eq!((left.total(), left.waiting, left.backoff), (2, 1, 1));
}

/// D15: `Drain::All` runs all that waits, at once and each key once, also those in backoff.
#[tokio::test(start_paused = true)]
async fn drain_all_runs_what_waits() {
    bounded();
    let queue = queue();
    queue.schedule("fails", NOW).unwrap();
    queue.next().await.unwrap().finish(Outcome::RetryAfter(secs(3600)));
    queue.schedule("waits", LATER).unwrap();
    queue.schedule("never", Debounce::after(Duration::MAX)).unwrap();
    let (log, runner) = runner(&queue);
    yield_now().await;
    let start = Instant::now();
    let left = queue.drain(Drain::All, secs(10)).await;
    assert_eq!(start.elapsed(), ms(100));
    runner.await.unwrap();
    assert_eq!(*log.lock().await, ["waits", "fails", "never"]);
    assert_eq!((left.total(), left.backoff), (1, 1), "what failed once more is left");
    assert!(queue.cancel(&"fails"));
    assert!(queue.is_empty());
}

/// D15, D16: a drain keeps the least interval between starts.
#[tokio::test(start_paused = true)]
async fn drain_all_keeps_the_interval() {
    bounded();
    let queue = KeyedDebouncer::builder().min_interval(secs(2)).build();
    for key in 0..100 {
        queue.schedule(key, NOW).unwrap();
        queue.next().await.unwrap().finish(Outcome::Done);
        queue.schedule(key, NOW).unwrap();
    }
    queue.schedule(100, LATER).unwrap();
    let start = Instant::now();
    let runner = tokio::spawn({
        let queue = queue.clone();
        async move { queue.run(|run| async move { run.finish(Outcome::Done) }).await }
    });
    assert_eq!(queue.drain(Drain::All, secs(10)).await.total(), 0);
    assert_eq!(start.elapsed(), secs(2));
    runner.await.unwrap();
}

/// D15: after the deadline it closes and says what is left.
#[tokio::test(start_paused = true)]
async fn drain_ends_at_the_deadline() {
    bounded();
    let queue = queue();
    for key in ["a", "b", "c"] {
        queue.schedule(key, NOW).unwrap();
    }
    let run = queue.next().await.unwrap();
    let start = Instant::now();
    let left = queue.drain(Drain::Ready, secs(3)).await;
    assert_eq!(start.elapsed(), secs(3));
    assert_eq!((left.running, left.ready), (1, 2));
    assert!(matches!(queue.next().await, Err(SchedulerError::Closed)));
    run.finish(Outcome::Done);
}

/// D15: draining what is empty is over at once, also twice, also after close.
#[tokio::test(start_paused = true)]
async fn draining_an_empty_queue_is_over_at_once() {
    bounded();
    for what in [Drain::Running, Drain::Ready, Drain::All] {
        let queue = queue();
        let start = Instant::now();
        assert_eq!(queue.drain(what, secs(9)).await.total(), 0);
        queue.close();
        assert_eq!(queue.drain(what, secs(9)).await.total(), 0);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}

/// D15, D6: a key that is requested during its run is run again by a drain.
#[tokio::test(start_paused = true)]
async fn drain_runs_a_key_that_was_requested_during_its_run() {
    bounded();
    for (what, again) in [(Drain::Ready, NOW), (Drain::All, LATER)] {
        let queue = queue();
        queue.schedule("a", NOW).unwrap();
        let run = queue.next().await.unwrap();
        queue.schedule("a", again).unwrap();
        let (log, runner) = runner(&queue);
        let drain = tokio::spawn({
            let queue = queue.clone();
            async move { queue.drain(what, secs(9)).await }
        });
        sleep(ms(10)).await;
        run.finish(Outcome::Done);
        assert_eq!(drain.await.unwrap().total(), 0);
        runner.await.unwrap();
        assert_eq!(*log.lock().await, ["a"]);
    }
}

/// D15: a drain that is dropped goes on, and can be made to run more.
#[tokio::test(start_paused = true)]
async fn a_dropped_drain_can_be_taken_up() {
    bounded();
    let queue = queue();
    queue.schedule("a", NOW).unwrap();
    queue.schedule("waits", LATER).unwrap();
    let drain = tokio::time::timeout(ms(1), queue.drain(Drain::Ready, secs(9))).await;
    assert!(drain.is_err());
    assert!(matches!(queue.schedule("b", NOW), Err(ScheduleError::Closed("b"))));
    let (log, runner) = runner(&queue);
    assert_eq!(queue.drain(Drain::All, secs(9)).await.total(), 0);
    runner.await.unwrap();
    assert_eq!(*log.lock().await, ["a", "waits"]);
}
