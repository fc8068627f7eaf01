//! L14: a throttle over a store of one's own: how its permits behave, and what any throttle must be.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use async_trait::async_trait;
use domain_throttle::{
    Denied, DomainThrottle, Endpoint, Feedback, Permit, PermitHook, Throttle, ThrottleError,
    ThrottleExt,
};
use tokio::sync::Notify;

use crate::support::{at, bounded, settle};

/// A lease that can be lost.
#[derive(Debug, Default)]
struct Lease {
    settled: Mutex<Vec<Feedback>>,
    gone: AtomicBool,
    changed: Notify,
}

struct Hook(Arc<Lease>);

#[async_trait]
impl PermitHook for Hook {
    fn settle(self: Box<Self>, feedback: Feedback) {
        self.0.settled.lock().expect("no panic").push(feedback);
    }

    async fn lost(&self) {
        while !self.0.gone.load(Ordering::SeqCst) {
            self.0.changed.notified().await;
        }
    }
}

/// A throttle that grants everything, with leases.
struct Foreign(Arc<Lease>);

#[async_trait]
impl Throttle for Foreign {
    async fn check(&self, _: &Endpoint, _: &str) -> Result<(), Denied> {
        Ok(())
    }

    async fn try_acquire(&self, at: &Endpoint, _: &str) -> Result<Permit, Denied> {
        Ok(Permit::new(at.clone(), Box::new(Hook(self.0.clone()))))
    }

    async fn acquire_any(&self, at: &[Endpoint], key: &str) -> Result<Permit, ThrottleError> {
        let first = at.first().ok_or(ThrottleError::NoEndpoint)?;
        self.try_acquire(first, key)
            .await
            .map_err(|denied| ThrottleError::Backend(Box::new(denied)))
    }
}

/// L14: a permit settles once: on `finish`, or with `Failed` when it is dropped.
#[tokio::test]
async fn a_permit_settles_once() {
    let lease = Arc::new(Lease::default());
    let throttle = Foreign(lease.clone());
    let server = at("https://h.example");
    throttle.acquire(&server, "a").await.expect("open").finish(Feedback::Unused);
    drop(throttle.acquire(&server, "a").await.expect("open"));
    assert_eq!(*lease.settled.lock().expect("no panic"), [Feedback::Unused, Feedback::Failed]);
}

/// L14: `lost` tells the holder that the lease is gone, and `run` stops the request then.
#[tokio::test(start_paused = true)]
async fn a_lost_permit_stops_the_request() {
    bounded();
    let lease = Arc::new(Lease::default());
    let throttle = Foreign(lease.clone());
    let server = at("https://h.example");
    let polls = AtomicUsize::new(0);
    let request = async {
        loop {
            polls.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        #[expect(unreachable_code, reason = "it says what the request would end with")]
        ((), Feedback::Ok)
    };
    let mut run = Box::pin(throttle.run(&server, "a", request));
    tokio::select! {
        _ = &mut run => panic!("the request has no end"),
        () = tokio::time::sleep(std::time::Duration::from_millis(2_500)) => {}
    }
    assert_eq!(polls.load(Ordering::SeqCst), 3);
    lease.gone.store(true, Ordering::SeqCst);
    lease.changed.notify_waiters();
    assert!(matches!(run.await, Err(ThrottleError::Lost)));
    assert_eq!(*lease.settled.lock().expect("no panic"), [Feedback::Failed]);
}

/// L14: a permit in memory is never lost.
#[tokio::test(start_paused = true)]
async fn a_permit_in_memory_is_never_lost() {
    bounded();
    let throttle = DomainThrottle::new();
    let permit = throttle.try_acquire(&at("https://h.example"), "a").expect("open");
    tokio::select! {
        () = permit.lost() => panic!("it was lost"),
        () = tokio::time::sleep(std::time::Duration::from_secs(86_400)) => {}
    }
}

/// L14: a throttle is used as `dyn Throttle`, and all that is public crosses threads and prints.
#[tokio::test]
async fn what_is_public_crosses_threads_and_is_object_safe() {
    fn crosses<T: Send + Sync + std::fmt::Debug>() {}
    crosses::<DomainThrottle>();
    crosses::<domain_throttle::Builder>();
    crosses::<Permit>();
    crosses::<Endpoint>();
    crosses::<domain_throttle::Domain>();
    crosses::<domain_throttle::DomainPattern>();
    crosses::<domain_throttle::DomainState<std::task::Waker>>();
    crosses::<domain_throttle::Grant>();
    crosses::<domain_throttle::Limits>();
    crosses::<Denied>();
    crosses::<ThrottleError>();
    crosses::<domain_throttle::EndpointError>();
    let each: [Arc<dyn Throttle>; 2] =
        [Arc::new(DomainThrottle::new()), Arc::new(Foreign(Arc::default()))];
    for throttle in each {
        let task =
            tokio::spawn(
                async move { throttle.acquire(&at("https://h.example"), "a").await.map(drop) },
            );
        task.await.expect("no panic").expect("open");
    }
    settle().await;
}
