//! D13: idle costs nothing.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use keyed_debounce::{Debounce, KeyedDebouncer, Outcome};
use tokio::time::sleep;

use crate::sim::{bounded, ms, secs};

/// Counts how often a future is polled, which is how often its task wakes up.
async fn counted<F: Future>(future: F, polls: &AtomicUsize) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        polls.fetch_add(1, Ordering::SeqCst);
        future.as_mut().poll(cx)
    })
    .await
}

fn waiters(queue: &KeyedDebouncer<u32>, count: usize) -> Arc<AtomicUsize> {
    let polls = Arc::new(AtomicUsize::new(0));
    for _ in 0..count {
        let (queue, polls) = (queue.clone(), Arc::clone(&polls));
        tokio::spawn(async move {
            while let Ok(run) = counted(queue.next(), &polls).await {
                run.finish(Outcome::Done);
            }
        });
    }
    polls
}

/// D13: in an idle minute, with keys that are due later, nobody wakes up.
#[tokio::test(start_paused = true)]
async fn no_wake_up_in_an_idle_minute() {
    bounded();
    let queue = KeyedDebouncer::builder().min_gap(ms(10)).min_interval(ms(10)).build();
    let polls = waiters(&queue, 8);
    queue.schedule(1, Debounce::immediate()).unwrap();
    queue.schedule(2, Debounce::after(secs(3600))).unwrap();
    sleep(secs(1)).await;
    polls.store(0, Ordering::SeqCst);
    sleep(secs(60)).await;
    assert_eq!(polls.load(Ordering::SeqCst), 0);
}

/// D13: requests that do not move the head wake nobody; one that does wakes one, not all.
#[tokio::test(start_paused = true)]
async fn a_request_wakes_at_most_one() {
    bounded();
    let queue = KeyedDebouncer::new();
    let polls = waiters(&queue, 8);
    queue.schedule(0, Debounce::after(secs(10))).unwrap();
    sleep(secs(1)).await;
    polls.store(0, Ordering::SeqCst);
    for key in 1..1000 {
        queue.schedule(key, Debounce::after(secs(20))).unwrap();
        queue.schedule(0, Debounce::after(secs(20))).unwrap();
    }
    sleep(ms(1)).await;
    assert_eq!(polls.load(Ordering::SeqCst), 0);
    queue.schedule(1000, Debounce::after(secs(5))).unwrap();
    sleep(ms(1)).await;
    assert_eq!(polls.load(Ordering::SeqCst), 1);
}

/// D13: eight waiters and 1,000 keys: about two polls per run, no stampede.
#[tokio::test(start_paused = true)]
async fn there_is_no_stampede() {
    bounded();
    let queue = KeyedDebouncer::new();
    let polls = waiters(&queue, 8);
    for key in 0..1000 {
        queue.schedule(key, Debounce::after(ms(u64::from(key)))).unwrap();
    }
    sleep(secs(2)).await;
    assert!(queue.is_empty());
    let polls = polls.load(Ordering::SeqCst);
    assert!(polls <= 3 * 1000 + 16, "{polls}");
}

/// D13: that thousands of keys were put off, the last first, wakes nobody when the old dues come.
#[tokio::test(start_paused = true)]
async fn no_wake_up_at_dues_that_were_put_off() {
    bounded();
    let queue = KeyedDebouncer::new();
    let polls = waiters(&queue, 2);
    let quiet = Debounce::new(secs(120), secs(3600));
    for key in 0..5000 {
        queue.schedule(key, quiet).unwrap();
    }
    sleep(secs(100)).await;
    for key in (0..5000).rev() {
        queue.schedule(key, quiet).unwrap();
    }
    sleep(secs(1)).await;
    polls.store(0, Ordering::SeqCst);
    sleep(secs(60)).await;
    assert_eq!(polls.load(Ordering::SeqCst), 0);
    sleep(secs(60)).await;
    assert!(queue.is_empty());
}
