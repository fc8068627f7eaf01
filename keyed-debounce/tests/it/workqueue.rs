//! The promises that client-go's workqueue and kube-runtime's scheduler test, kept here too. The
//! first half is named after what the workqueue promises, the second after the scheduler's.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use keyed_debounce::{
    Debounce, Drain, KeyState, KeyedDebouncer, Outcome, Run, Scheduled, SchedulerError,
};
use tokio::time::{Instant, sleep, timeout};

use crate::sim::{bounded, ms, secs};

const NOW: Debounce = Debounce::immediate();

/// D5, D6: 50 producers, 10 workers: every key is worked on after it was last added, and none by
/// two workers at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_producers_and_workers() {
    let queue = KeyedDebouncer::builder().max_parallel(10.try_into().unwrap()).build();
    let busy: Arc<Mutex<HashMap<u32, bool>>> = Arc::default();
    let added: Arc<Mutex<HashMap<u32, u32>>> = Arc::default();
    let seen: Arc<Mutex<HashMap<u32, u32>>> = Arc::default();
    let workers = tokio::spawn({
        let (queue, busy) = (queue.clone(), Arc::clone(&busy));
        let (added, seen) = (Arc::clone(&added), Arc::clone(&seen));
        async move {
            let handler = move |run: Run<u32>| {
                let (busy, added, seen) =
                    (Arc::clone(&busy), Arc::clone(&added), Arc::clone(&seen));
                async move {
                    let key = *run.key();
                    assert_eq!(busy.lock().unwrap().insert(key, true), None, "{key} twice at once");
                    let version = added.lock().unwrap().get(&key).copied();
                    tokio::task::yield_now().await;
                    seen.lock().unwrap().insert(key, version.unwrap());
                    busy.lock().unwrap().remove(&key);
                    run.finish(Outcome::Done);
                }
            };
            queue.run(handler).await;
        }
    });
    let producers: Vec<_> = (0..50)
        .map(|_| {
            let (queue, added) = (queue.clone(), Arc::clone(&added));
            tokio::spawn(async move {
                for key in 0..50 {
                    *added.lock().unwrap().entry(key).or_insert(0) += 1;
                    queue.schedule(key, NOW).unwrap();
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    assert_eq!(queue.drain(Drain::All, secs(60)).await.total(), 0);
    workers.await.unwrap();
    assert!(busy.lock().unwrap().is_empty());
    assert_eq!(*seen.lock().unwrap(), *added.lock().unwrap(), "every last addition was seen");
}

/// D6: add while processing: re-queued once, at the end, however often it was added.
#[tokio::test(start_paused = true)]
async fn a_key_added_while_it_is_processed_runs_once_more() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("foo", NOW).unwrap();
    let run = queue.next().await.unwrap();
    for _ in 0..3 {
        assert_eq!(queue.schedule("foo", NOW).unwrap(), Scheduled::AfterRun);
    }
    assert!(timeout(secs(1), queue.next()).await.is_err(), "not before the run ends");
    run.finish(Outcome::Done);
    queue.next().await.unwrap().finish(Outcome::Done);
    assert!(queue.is_empty());
}

/// D2: an immediate add of a delayed key is one run, not two.
#[tokio::test(start_paused = true)]
async fn a_delayed_and_an_immediate_add_are_one_run() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("foo", Debounce::after(secs(60))).unwrap();
    queue.schedule("foo", NOW).unwrap();
    queue.next().await.unwrap().finish(Outcome::Done);
    assert!(timeout(secs(3600), queue.next()).await.is_err());
}

/// D15: shut down drains what is processed; a dirty key is run again before it ends.
#[tokio::test(start_paused = true)]
async fn drain_waits_for_a_dirty_key_and_runs_it() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("foo", NOW).unwrap();
    let run = queue.next().await.unwrap();
    queue.schedule("foo", NOW).unwrap();
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.drain(Drain::Ready, secs(60)).await }
    });
    sleep(ms(1)).await;
    run.finish(Outcome::Done);
    let again = queue.next().await.unwrap();
    assert!(!drain.is_finished());
    again.finish(Outcome::Done);
    assert_eq!(drain.await.unwrap().total(), 0);
}

/// D15: whoever waits for a key is told of the shutdown; nobody waits for ever.
#[tokio::test(start_paused = true)]
async fn shutdown_tells_those_who_come_later_too() {
    bounded();
    let queue = KeyedDebouncer::<u32>::new();
    queue.close();
    for _ in 0..3 {
        assert!(matches!(queue.next().await, Err(SchedulerError::Closed)));
    }
}

/// D18: what was taken is not kept by a slot of the queue.
#[tokio::test(start_paused = true)]
async fn no_reference_stays_in_a_slot() {
    bounded();
    let queue = KeyedDebouncer::new();
    let mut alive = Vec::new();
    for number in 0..300_u32 {
        let key = Arc::new(number);
        alive.push(Arc::downgrade(&key));
        queue.schedule(key, NOW).unwrap();
    }
    for _ in 0..300 {
        queue.next().await.unwrap().finish(Outcome::Done);
    }
    assert!(alive.iter().all(|key| key.upgrade().is_none()));
}

/// D7, D8: failures count per key, one by one, and a request forgets them.
#[tokio::test(start_paused = true)]
async fn failures_are_counted_per_key_and_forgotten() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("a", NOW).unwrap();
    queue.schedule("b", NOW).unwrap();
    for attempt in 1..4 {
        let run = queue.next().await.unwrap();
        assert_eq!((*run.key(), run.attempt()), ("a", attempt));
        run.finish(Outcome::RetryAfter(Duration::ZERO));
        if attempt == 1 {
            let run = queue.next().await.unwrap();
            assert_eq!((*run.key(), run.attempt()), ("b", 1));
            run.finish(Outcome::Done);
        }
    }
    queue.schedule("a", NOW).unwrap();
    assert_eq!(queue.next().await.unwrap().attempt(), 1);
}

/// D4
#[tokio::test(start_paused = true)]
async fn scheduler_should_hold_and_release_items() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule(1, Debounce::after(secs(4))).unwrap();
    assert!(timeout(ms(3999), queue.next()).await.is_err());
    assert_eq!(*timeout(ms(1), queue.next()).await.unwrap().unwrap().key(), 1);
}

/// D2
#[tokio::test(start_paused = true)]
async fn scheduler_dedupe_should_keep_earlier_item() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule(1, Debounce::after(secs(1))).unwrap();
    queue.schedule(1, Debounce::after(secs(3))).unwrap();
    let start = Instant::now();
    queue.next().await.unwrap().finish(Outcome::Done);
    assert_eq!(start.elapsed(), secs(1));
    assert!(queue.is_empty());
}

/// D2
#[tokio::test(start_paused = true)]
async fn scheduler_dedupe_should_replace_later_item() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule(1, Debounce::after(secs(3))).unwrap();
    queue.schedule(1, Debounce::after(secs(1))).unwrap();
    let start = Instant::now();
    queue.next().await.unwrap().finish(Outcome::Done);
    assert_eq!(start.elapsed(), secs(1));
    assert!(queue.is_empty());
}

/// D4
#[tokio::test(start_paused = true)]
async fn scheduler_should_not_wait_for_what_was_there_when_something_sooner_comes() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule(1, Debounce::after(secs(100))).unwrap();
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { *queue.next().await.unwrap().key() }
    });
    sleep(secs(1)).await;
    let start = Instant::now();
    queue.schedule(2, Debounce::after(secs(1))).unwrap();
    assert_eq!(waiting.await.unwrap(), 2);
    assert_eq!(start.elapsed(), secs(1));
}

/// D5
#[tokio::test(start_paused = true)]
async fn runner_should_never_run_two_instances_at_once() {
    bounded();
    let queue = KeyedDebouncer::new();
    let (on, runs) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let runner = tokio::spawn({
        let (queue, on, runs) = (queue.clone(), Arc::clone(&on), Arc::clone(&runs));
        async move {
            let handler = move |run: Run<u32>| {
                let (on, runs) = (Arc::clone(&on), Arc::clone(&runs));
                async move {
                    assert_eq!(on.fetch_add(1, Ordering::SeqCst), 0);
                    sleep(secs(2)).await;
                    on.fetch_sub(1, Ordering::SeqCst);
                    runs.fetch_add(1, Ordering::SeqCst);
                    run.finish(Outcome::Done);
                }
            };
            queue.run(handler).await;
        }
    });
    for _ in 0..5 {
        queue.schedule(1, NOW).unwrap();
        sleep(ms(500)).await;
    }
    assert_eq!(queue.drain(Drain::All, secs(60)).await.total(), 0);
    runner.await.unwrap();
    // 0 to 2 s with four requests in it, then one more with the last.
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

/// D5
#[tokio::test(start_paused = true)]
async fn runner_should_run_different_keys_in_parallel() {
    bounded();
    let queue = KeyedDebouncer::new();
    for key in 0..10 {
        queue.schedule(key, NOW).unwrap();
    }
    let start = Instant::now();
    let handler = |run: Run<i32>| async move {
        sleep(secs(1)).await;
        run.finish(Outcome::Done);
    };
    tokio::join!(queue.run(handler), queue.drain(Drain::All, secs(60)));
    assert_eq!(start.elapsed(), secs(1));
}

/// D15
#[tokio::test(start_paused = true)]
async fn runner_should_end_when_the_scheduler_is_closed_and_idle() {
    bounded();
    let queue = KeyedDebouncer::<u32>::new();
    let runner = tokio::spawn({
        let queue = queue.clone();
        async move { queue.run(|run| async move { run.finish(Outcome::Done) }).await }
    });
    sleep(secs(1)).await;
    queue.close();
    timeout(ms(1), runner).await.unwrap().unwrap();
}

/// D5, D6: a key that is due again while it runs is not handed to a free worker.
#[tokio::test(start_paused = true)]
async fn a_free_worker_does_not_get_a_key_that_runs() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("a", NOW).unwrap();
    let run = queue.next().await.unwrap();
    queue.schedule("a", NOW).unwrap();
    assert!(timeout(secs(60), queue.next()).await.is_err());
    assert_eq!(queue.state(&"a"), Some(KeyState::Running { requested_again: true }));
    run.finish(Outcome::Done);
    assert_eq!(queue.state(&"a"), Some(KeyState::Ready));
}
