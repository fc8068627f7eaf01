//! What the libraries next door test for the same promises, in their words where they have some.

use domain_throttle::{Denied, DomainThrottle, Feedback, Throttle, ThrottleError, ThrottleExt};
use tokio::time::Instant;

use crate::support::{Calls, Waiting, at, bounded, endpoints, limits, poll, secs, settle};

/// L1, governor: the first cell of each key is accepted, the next rejected, at a limit of one.
#[test]
fn accepts_the_first_and_rejects_too_many() {
    let throttle = DomainThrottle::builder().limits(limits(9, 1, secs(60))).build();
    for n in 0..100 {
        let server = at(&format!("https://h{n}.example"));
        throttle.try_acquire(&server, "k").expect("the first").finish(Feedback::Ok);
        assert!(matches!(throttle.try_acquire(&server, "k"), Err(Denied::Window { .. })));
    }
}

/// L1, leaky-bucket and bottleneck: an hour of rest saves nothing up.
#[tokio::test(start_paused = true)]
async fn idle_time_saves_nothing_up() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(100, 30, secs(60))).build();
    let server = at("https://h.example");
    for _ in 0..3 {
        tokio::time::sleep(secs(3_600)).await;
        let granted = (0..100).map(|n| throttle.try_acquire(&server, &n.to_string()));
        assert_eq!(granted.filter(Result::is_ok).count(), 30);
    }
}

/// L6, leaky-bucket: a thousand tasks on a bucket of ten all come to an end, in time.
#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_all_come_to_an_end() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(3, 10, secs(1))).build();
    let start = Instant::now();
    let tasks: Vec<_> = (0..1_000)
        .map(|n| {
            let throttle = throttle.clone();
            tokio::spawn(async move {
                let permit = throttle.acquire(&at("https://h.example"), &n.to_string()).await;
                permit.expect("open").finish(Feedback::Ok);
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(start.elapsed(), secs(99));
}

/// L8, leaky-bucket and tower: of three waiters for one slot the one in the middle goes away.
#[tokio::test(start_paused = true)]
async fn of_multiple_waiters_one_goes_away() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    let servers = endpoints(&["https://h.example"]);
    let permit = throttle.try_acquire(&servers[0], "x").expect("open");
    let calls = [Calls::new(), Calls::new(), Calls::new()];
    let keys = ["1", "2", "3"];
    let mut waiting: Vec<Waiting<'_>> =
        keys.iter().map(|key| throttle.acquire_any(&servers, key)).collect();
    for (one, calls) in waiting.iter_mut().zip(&calls) {
        assert!(poll(one, calls).is_none());
    }
    drop(waiting.remove(1));
    drop(permit);
    assert_eq!(calls.each_ref().map(|calls| calls.count()), [1, 0, 0]);
    drop(poll(&mut waiting[0], &calls[0]).expect("the first"));
    assert_eq!(calls.each_ref().map(|calls| calls.count()), [1, 0, 1]);
    assert!(poll(&mut waiting[1], &calls[2]).is_some());
}

/// L9, tower: an error, a dropped response and an aborted one release capacity all the same.
#[tokio::test(start_paused = true)]
async fn however_a_request_ends_it_releases_capacity() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).build();
    let server = at("https://h.example");
    let ok = throttle.run(&server, "a", async { (Ok::<_, String>(()), Feedback::Ok) });
    ok.await.expect("open").expect("fine");
    let failed = throttle.run(&server, "a", async { (Err::<(), _>("no"), Feedback::Failed) });
    assert_eq!(failed.await.expect("open"), Err("no"));
    let endless = throttle.run(&server, "a", std::future::pending::<((), Feedback)>());
    assert!(tokio::time::timeout(secs(1), endless).await.is_err());
    assert!(throttle.try_acquire(&server, "a").is_ok());
}

/// L1, tower: what is left of a window is there again when it is over, and not before.
#[tokio::test(start_paused = true)]
async fn what_is_left_gets_reset() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(9, 3, secs(10))).build();
    let server = at("https://h.example");
    throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
    tokio::time::sleep(secs(9)).await;
    for _ in 0..2 {
        throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
    }
    let start = Instant::now();
    for _ in 0..3 {
        throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Ok);
    }
    // One more after 1 s, when the first start is 10 s old; the others 9 s later.
    assert_eq!(start.elapsed(), secs(10));
}

/// L12, bottleneck: a queue that is full refuses, and `stop` lets nobody hang.
#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_stopping_ends_it() {
    bounded();
    let throttle = DomainThrottle::builder().limits(limits(1, 30, secs(60))).max_waiters(1).build();
    let server = at("https://h.example");
    let _on = throttle.try_acquire(&server, "a").expect("open");
    let first = tokio::spawn({
        let (throttle, server) = (throttle.clone(), server.clone());
        async move { throttle.acquire(&server, "b").await.map(drop) }
    });
    settle().await;
    let refused = throttle.acquire(&server, "c").await;
    assert!(matches!(refused, Err(ThrottleError::TooManyWaiters)));
    throttle.close();
    assert!(matches!(first.await.expect("no panic"), Err(ThrottleError::Closed)));
}
