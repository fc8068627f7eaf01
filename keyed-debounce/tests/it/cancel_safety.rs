//! D19: dropping what waits loses nothing. The futures are polled by hand, so that they can be
//! dropped at each point at which they may wait.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll},
};

use futures::{FutureExt, task::noop_waker};
use keyed_debounce::{Debounce, KeyState, KeyedDebouncer, Outcome};
use proptest::prelude::*;
use tokio::{
    task::yield_now,
    time::{Instant, advance, timeout},
};

use crate::sim::{bounded, ms, secs};

const SOON: Debounce = Debounce::after(ms(100));

/// D19: dropped before the first poll, after it, after the timer was armed, when it went off, when
/// the head moved: the key stays, in its place, counts no failure, and the next caller gets it.
#[tokio::test(start_paused = true)]
async fn next_may_be_dropped_after_any_number_of_polls() {
    bounded();
    for polls in 0..6 {
        let queue = KeyedDebouncer::new();
        queue.schedule("first", SOON).unwrap();
        queue.schedule("second", SOON).unwrap();
        {
            let mut next = pin!(queue.next());
            let mut cx = Context::from_waker(futures::task::noop_waker_ref());
            for poll in 0..polls {
                if let Poll::Ready(run) = next.as_mut().poll(&mut cx) {
                    // Reached the caller: from here on it is the caller's.
                    run.unwrap().finish(Outcome::Done);
                    break;
                }
                if poll == 1 {
                    queue.schedule("sooner", Debounce::after(ms(10))).unwrap();
                }
                advance(ms(40)).await;
            }
        }
        let mut left = Vec::new();
        while let Ok(run) = timeout(secs(1), queue.next()).await {
            let run = run.unwrap();
            assert_eq!(run.attempt(), 1);
            left.push(*run.key());
            run.finish(Outcome::Done);
        }
        let expected: &[_] = match polls {
            0 | 1 => &["first", "second"],
            2 => &["sooner", "first", "second"],
            _ => &["first", "second"],
        };
        assert_eq!(left, expected, "after {polls} polls");
    }
}

/// D19: the waiter that was woken for a key and is dropped before it looked passes the wake-up on.
#[tokio::test(start_paused = true)]
async fn a_wake_up_is_passed_on() {
    bounded();
    let queue = KeyedDebouncer::new();
    let mut woken = Box::pin(queue.next());
    assert!((&mut woken).now_or_never().is_none());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.unwrap().finish(Outcome::Done) }
    });
    yield_now().await;
    // Wakes the first, which keeps the timer, and it never looks.
    queue.schedule("a", Debounce::immediate()).unwrap();
    yield_now().await;
    assert_eq!(queue.state(&"a"), Some(KeyState::Ready));
    drop(woken);
    timeout(ms(1), other).await.unwrap().unwrap();
    assert!(queue.is_empty());
}

/// D19: the same for the timer.
#[tokio::test(start_paused = true)]
async fn the_timer_is_passed_on() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("a", SOON).unwrap();
    let mut keeper = Box::pin(queue.next());
    assert!((&mut keeper).now_or_never().is_none());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.unwrap().finish(Outcome::Done) }
    });
    yield_now().await;
    let start = Instant::now();
    drop(keeper);
    other.await.unwrap();
    assert_eq!(start.elapsed(), ms(100));
}

/// D19: a dropped wait for another request leaves no trace and takes nothing from others.
#[tokio::test(start_paused = true)]
async fn scheduled_again_may_be_dropped() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("a", Debounce::immediate()).unwrap();
    let run = queue.next().await.unwrap();
    let mut dropped = Box::pin(run.scheduled_again());
    let mut kept = Box::pin(run.scheduled_again());
    let waker = noop_waker();
    let mut cx = Context::from_waker(&waker);
    assert!(dropped.as_mut().poll(&mut cx).is_pending());
    assert!(kept.as_mut().poll(&mut cx).is_pending());
    drop(dropped);
    queue.schedule("a", SOON).unwrap();
    assert!(kept.as_mut().poll(&mut cx).is_ready());
}

/// D19: a cancel during a run also takes back what `scheduled_again` would say.
#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_not_said_again() {
    bounded();
    let queue = KeyedDebouncer::new();
    queue.schedule("a", Debounce::immediate()).unwrap();
    let run = queue.next().await.unwrap();
    queue.schedule("a", SOON).unwrap();
    assert!(queue.cancel(&"a"));
    assert!(run.scheduled_again().now_or_never().is_none());
    run.finish(Outcome::Done);
    assert!(queue.is_empty());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Schedule(u8, u64),
    Wait,
    Poll(usize),
    Drop(usize),
    Advance(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..8_u8, 0..50_u64).prop_map(|(key, delay)| Step::Schedule(key, delay)),
        Just(Step::Wait),
        any::<usize>().prop_map(Step::Poll),
        any::<usize>().prop_map(Step::Drop),
        (0..30_u64).prop_map(Step::Advance),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// D13, D19: whatever waiters do, poll, stall and vanish, a waiter that is polled when it is
    /// woken gets what is due, when it is due, once those before it have gone.
    #[test]
    fn no_wake_up_is_lost(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let queue = KeyedDebouncer::new();
            let mut waiters = Vec::new();
            let mut cx = Context::from_waker(futures::task::noop_waker_ref());
            let mut requested = std::collections::BTreeSet::new();
            for step in steps {
                match step {
                    Step::Schedule(key, delay) => {
                        queue.schedule(key, Debounce::after(ms(delay))).unwrap();
                        requested.insert(key);
                    }
                    Step::Wait => waiters.push(Box::pin(queue.next())),
                    Step::Poll(which) if !waiters.is_empty() => {
                        let which = which % waiters.len();
                        if let Poll::Ready(run) = waiters[which].as_mut().poll(&mut cx) {
                            let run = run.unwrap();
                            assert_eq!(run.attempt(), 1);
                            requested.remove(run.key());
                            run.finish(Outcome::Done);
                            drop(waiters.swap_remove(which));
                        }
                    }
                    Step::Drop(which) if !waiters.is_empty() => {
                        let which = which % waiters.len();
                        drop(waiters.swap_remove(which));
                    }
                    Step::Advance(by) => advance(ms(by)).await,
                    Step::Poll(_) | Step::Drop(_) => {}
                }
            }
            // From here on all who are left are polled when they are woken, as tasks are, and only
            // then. One more is added, so that there is one.
            let deadline = Instant::now() + ms(60);
            waiters.push(Box::pin(queue.next()));
            let mut tasks = futures::stream::FuturesUnordered::from_iter(waiters);
            while !requested.is_empty() {
                let run = tokio::time::timeout_at(deadline, futures::StreamExt::next(&mut tasks))
                    .await
                    .expect("nobody was woken")
                    .unwrap()
                    .unwrap();
                assert!(requested.remove(run.key()));
                run.finish(Outcome::Done);
                tasks.push(Box::pin(queue.next()));
            }
            assert!(queue.is_empty());
        });
    }
}
