//! Futures that were polled and then left lying about.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use keyed_debounce::{Debounce, KeyedDebouncer};
use tokio::time::{sleep, timeout};

use crate::sim::{bounded, ms, secs};

/// D4, D19: a `next()` that was woken and is neither polled nor dropped does not hold up others for
/// ever: a second later the next call wakes another.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_nobody_polls_is_passed_over() {
    bounded();
    let queue = KeyedDebouncer::new();
    let mut abandoned = [pin!(queue.next()), pin!(queue.next())];
    for next in &mut abandoned {
        assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { *queue.next().await.expect("open").key() }
    });
    tokio::task::yield_now().await;
    queue.schedule(1, Debounce::immediate()).unwrap();
    // Each call after a second passes one of the two over.
    for _ in 0..2 {
        sleep(ms(1001)).await;
        assert!(!other.is_finished());
        queue.schedule(2, Debounce::after(secs(3600))).unwrap();
    }
    assert_eq!(timeout(secs(1), other).await.expect("it was woken").unwrap(), 1);
    // Those who come back late have lost nothing.
    queue.schedule(3, Debounce::immediate()).unwrap();
    let [first, _second] = &mut abandoned;
    match first.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(run) => assert_eq!(*run.expect("open").key(), 3),
        Poll::Pending => panic!("there is a key for it"),
    }
}
