//! Real threads, real time; nothing here depends on how fast they are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use keyed_debounce::{Debounce, Drain, KeyedDebouncer, Outcome, Run};
use tokio::time::timeout;

use crate::sim::secs;

const KEYS: usize = 64;

/// D4, D5, D6: four threads without a runtime request, a runtime with two threads runs; no key runs
/// twice at once, and each key's last request is followed by a run that begins after it.
#[test]
fn requests_from_plain_threads_are_never_lost() {
    let queue = KeyedDebouncer::new();
    let requested: Arc<Vec<AtomicU32>> = Arc::new((0..KEYS).map(|_| AtomicU32::new(0)).collect());
    let served: Arc<Vec<AtomicU32>> = Arc::new((0..KEYS).map(|_| AtomicU32::new(0)).collect());
    let on: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let runner = runtime.spawn({
        let (queue, requested) = (queue.clone(), Arc::clone(&requested));
        let (served, on) = (Arc::clone(&served), Arc::clone(&on));
        async move {
            let handler = move |run: Run<usize>| {
                let (requested, served, on) =
                    (Arc::clone(&requested), Arc::clone(&served), Arc::clone(&on));
                async move {
                    let key = *run.key();
                    assert_eq!(on[key].fetch_add(1, Ordering::SeqCst), 0, "{key} twice at once");
                    let version = requested[key].load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    served[key].store(version, Ordering::SeqCst);
                    on[key].fetch_sub(1, Ordering::SeqCst);
                    run.finish(if version % 7 == 0 { Outcome::Retry } else { Outcome::Done });
                }
            };
            queue.run(handler).await;
        }
    });
    let producers: Vec<_> = (0..4)
        .map(|thread| {
            let (queue, requested) = (queue.clone(), Arc::clone(&requested));
            thread::spawn(move || {
                for step in 0..5000_usize {
                    let key = (step * 31 + thread * 17) % KEYS;
                    requested[key].fetch_add(1, Ordering::SeqCst);
                    queue.schedule(key, Debounce::immediate()).unwrap();
                    if step % 100 == 0 {
                        let _counts = queue.counts();
                        let _state = queue.state(&key);
                    }
                }
            })
        })
        .collect();
    for producer in producers {
        producer.join().unwrap();
    }
    let left = runtime.block_on(queue.drain(Drain::Ready, secs(60)));
    runtime.block_on(runner).unwrap();
    assert_eq!((left.running, left.ready, left.waiting), (0, 0, 0));
    for key in 0..KEYS {
        let (requested, served) = (&requested[key], &served[key]);
        assert_eq!(requested.load(Ordering::SeqCst), served.load(Ordering::SeqCst), "{key}");
    }
}

/// D4, D19: calls of `next` that are dropped all the time, beside threads that request and cancel:
/// what was requested last is run, whoever gave up meanwhile.
#[test]
fn dropped_waiters_and_cancels_lose_no_request() {
    let queue = KeyedDebouncer::<usize>::new();
    let requested: Arc<Vec<AtomicU32>> = Arc::new((0..KEYS).map(|_| AtomicU32::new(0)).collect());
    let served: Arc<Vec<AtomicU32>> = Arc::new((0..KEYS).map(|_| AtomicU32::new(0)).collect());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let (queue, requested) = (queue.clone(), Arc::clone(&requested));
            let served = Arc::clone(&served);
            runtime.spawn(async move {
                loop {
                    // How long it really waits does not matter: some give up, some do not.
                    let Ok(next) = timeout(Duration::from_micros(50), queue.next()).await else {
                        continue;
                    };
                    let Ok(run) = next else { return };
                    let version = requested[*run.key()].load(Ordering::SeqCst);
                    served[*run.key()].store(version, Ordering::SeqCst);
                    run.finish(Outcome::Done);
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..4)
        .map(|thread| {
            let (queue, requested) = (queue.clone(), Arc::clone(&requested));
            thread::spawn(move || {
                // Each has keys of its own, so that the last that happens to a key is a request.
                for step in 0..4000_usize {
                    let key = (step * 4 + thread) % KEYS;
                    if step % 5 == 0 {
                        queue.cancel(&key);
                    }
                    requested[key].fetch_add(1, Ordering::SeqCst);
                    queue.schedule(key, Debounce::immediate()).unwrap();
                }
            })
        })
        .collect();
    for producer in producers {
        producer.join().unwrap();
    }
    let left = runtime.block_on(queue.drain(Drain::Ready, secs(60)));
    for waiter in waiters {
        runtime.block_on(waiter).unwrap();
    }
    assert_eq!(left.total(), 0);
    for key in 0..KEYS {
        let (requested, served) = (&requested[key], &served[key]);
        assert_eq!(requested.load(Ordering::SeqCst), served.load(Ordering::SeqCst), "{key}");
    }
}
