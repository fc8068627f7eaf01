use std::time::Duration;

use keyed_debounce::{Debounce, Drain, KeyState, KeyedDebouncer, Outcome, Scheduled};
use tokio::time::{Instant, timeout};

const QUIET: Duration = Duration::from_millis(500);

#[tokio::test(start_paused = true)]
async fn a_burst_runs_once() {
    let queue = KeyedDebouncer::new();
    let debounce = Debounce::new(QUIET, Duration::from_secs(5));
    let start = Instant::now();
    for _ in 0..10 {
        queue.schedule("a", debounce).unwrap();
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    let run = queue.next().await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(590));
    assert_eq!(queue.state(&"a"), Some(KeyState::Running { requested_again: false }));
    assert_eq!(queue.schedule("a", debounce).unwrap(), Scheduled::AfterRun);
    run.scheduled_again().await;
    run.finish(Outcome::Done);
    queue.next().await.unwrap().finish(Outcome::Done);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn waiters_are_woken() {
    let queue = KeyedDebouncer::new();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.unwrap().finish(Outcome::Done) })
        })
        .collect();
    tokio::task::yield_now().await;
    for key in 0..3 {
        queue.schedule(key, Debounce::after(QUIET)).unwrap();
    }
    for waiter in waiting {
        timeout(QUIET * 2, waiter).await.unwrap().unwrap();
    }
    let runner = tokio::spawn({
        let queue = queue.clone();
        async move { queue.run(|run| async move { run.finish(Outcome::Done) }).await }
    });
    queue.schedule(9, Debounce::after(QUIET)).unwrap();
    assert_eq!(queue.drain(Drain::All, QUIET).await.total(), 0);
    runner.await.unwrap();
}
