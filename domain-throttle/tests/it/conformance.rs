//! The conformance suite: what is ours passes, what is broken fails with the name of the rule.

use std::{
    collections::BTreeSet,
    future::{Future, poll_fn},
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use domain_throttle::{
    Denied, DomainThrottle, Endpoint, Feedback, Limits, Permit, PermitHook, Throttle,
    ThrottleError, testing,
};

use crate::support::{bounded, settle};

/// How a throttle is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    ThirtyFirstStart,
    SixthPermit,
    LostWakeUp,
    OvertakenWaiter,
    LeakOnCancel,
    BlockedBySleeper,
    KeysNotApart,
    DeafToFeedback,
    UnusedCounts,
    DroppedPermitStays,
    FixedWindow,
}

struct Backend(Fault);

#[async_trait]
impl testing::Backend for Backend {
    async fn throttle(&self, limits: Limits) -> Arc<dyn Throttle> {
        let limits = match self.0 {
            Fault::ThirtyFirstStart => {
                Limits { max_per_window: one_more(limits.max_per_window), ..limits }
            }
            Fault::SixthPermit => {
                Limits { max_concurrent: one_more(limits.max_concurrent), ..limits }
            }
            Fault::FixedWindow => Limits { window: limits.window / 2, ..limits },
            _ => limits,
        };
        let inner = DomainThrottle::builder().limits(limits).build();
        if self.0 == Fault::None {
            return Arc::new(inner);
        }
        Arc::new(Broken { fault: self.0, inner, unique: AtomicU64::new(0), stack: Arc::default() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    async fn advance(&self, by: Duration) {
        if !by.is_zero() {
            tokio::time::sleep(by).await;
        }
        settle().await;
    }
}

fn one_more(limit: NonZeroU32) -> NonZeroU32 {
    limit.saturating_add(1)
}

struct Broken {
    fault: Fault,
    inner: DomainThrottle,
    unique: AtomicU64,
    stack: Arc<Mutex<Vec<Waker>>>,
}

/// Gives a permit back in the way its throttle is broken.
struct BrokenHook {
    fault: Fault,
    permit: Option<Permit>,
    stack: Arc<Mutex<Vec<Waker>>>,
    dropped: bool,
}

#[async_trait]
impl PermitHook for BrokenHook {
    fn settle(mut self: Box<Self>, feedback: Feedback) {
        let permit = self.permit.take().expect("it settles once");
        self.dropped = feedback == Feedback::Failed;
        match self.fault {
            Fault::DeafToFeedback => permit.finish(Feedback::Ok),
            Fault::UnusedCounts => permit.finish(Feedback::Ok),
            Fault::DroppedPermitStays if self.dropped => std::mem::forget(permit),
            _ => permit.finish(feedback),
        }
        if let Some(last) = self.stack.lock().expect("no panic").pop() {
            last.wake();
        }
    }
}

impl Broken {
    fn key(&self, key: &str) -> String {
        match self.fault {
            Fault::KeysNotApart => format!("{key} {}", self.unique.fetch_add(1, Ordering::SeqCst)),
            _ => key.to_owned(),
        }
    }

    fn wrap(&self, permit: Permit) -> Permit {
        let (fault, stack) = (self.fault, self.stack.clone());
        let endpoint = permit.endpoint().clone();
        Permit::new(
            endpoint,
            Box::new(BrokenHook { fault, permit: Some(permit), stack, dropped: false }),
        )
    }
}

/// Forgets instead of dropping.
struct Leaks<T>(Option<T>);

impl<T> Drop for Leaks<T> {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

#[async_trait]
impl Throttle for Broken {
    async fn check(&self, at: &Endpoint, key: &str) -> Result<(), Denied> {
        self.inner.check(at, &self.key(key))
    }

    async fn try_acquire(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied> {
        self.inner.try_acquire(at, &self.key(key)).map(|permit| self.wrap(permit))
    }

    async fn acquire_any(&self, at: &[Endpoint], key: &str) -> Result<Permit, ThrottleError> {
        let key = self.key(key);
        let permit = match self.fault {
            // The last to come is the first to go, and whoever comes in between takes it.
            Fault::OvertakenWaiter => {
                poll_fn(|context| {
                    let mut each = at.iter();
                    match each.find_map(|at| self.inner.try_acquire(at, &key).ok()) {
                        Some(permit) => Poll::Ready(permit),
                        None => {
                            self.stack.lock().expect("no panic").push(context.waker().clone());
                            Poll::Pending
                        }
                    }
                })
                .await
            }
            Fault::LostWakeUp => {
                let mut wait = pin!(self.inner.acquire_any(at, &key));
                poll_fn(|_| wait.as_mut().poll(&mut Context::from_waker(Waker::noop()))).await?
            }
            Fault::LeakOnCancel => {
                let (inner, at) = (self.inner.clone(), at.to_vec());
                let mut wait =
                    Leaks(Some(Box::pin(async move { inner.acquire_any(&at, &key).await })));
                poll_fn(|context| wait.0.as_mut().expect("it is there").as_mut().poll(context))
                    .await?
            }
            // A task of its own takes the permit and holds it until somebody comes for it.
            Fault::BlockedBySleeper => {
                let (inner, at) = (self.inner.clone(), at.to_vec());
                tokio::spawn(async move { inner.acquire_any(&at, &key).await })
                    .await
                    .expect("no panic")?
            }
            _ => self.inner.acquire_any(at, &key).await?,
        };
        Ok(self.wrap(permit))
    }
}

async fn broken_rules(fault: Fault) -> BTreeSet<&'static str> {
    match testing::check(&Backend(fault)).await {
        Ok(()) => BTreeSet::new(),
        Err(violations) => {
            assert!(violations.to_string().contains("breaks"));
            violations.iter().map(|violation| violation.rule).collect()
        }
    }
}

/// L1, L2, L3, L5, L6, L7, L8, L9, L10: the throttle in memory passes.
#[tokio::test(start_paused = true)]
async fn the_throttle_in_memory_passes() {
    bounded();
    testing::check(&Backend(Fault::None)).await.unwrap_or_else(|violations| panic!("{violations}"));
}

/// L1: a throttle that lets a 31st start through fails.
#[tokio::test(start_paused = true)]
async fn a_thirty_first_start_is_found() {
    bounded();
    assert!(broken_rules(Fault::ThirtyFirstStart).await.contains("L1"));
}

/// L1: a throttle whose window is too short fails.
#[tokio::test(start_paused = true)]
async fn a_short_window_is_found() {
    bounded();
    assert!(broken_rules(Fault::FixedWindow).await.contains("L1"));
}

/// L2: a throttle that hands out a sixth permit fails.
#[tokio::test(start_paused = true)]
async fn a_sixth_permit_is_found() {
    bounded();
    assert!(broken_rules(Fault::SixthPermit).await.contains("L2"));
}

/// L3: a throttle that does not tell keys apart fails.
#[tokio::test(start_paused = true)]
async fn a_second_permit_of_a_key_is_found() {
    bounded();
    assert!(broken_rules(Fault::KeysNotApart).await.contains("L3"));
}

/// L6: a throttle that loses a wake-up fails, and does not hang the suite.
#[tokio::test(start_paused = true)]
async fn a_lost_wake_up_is_found() {
    bounded();
    assert!(broken_rules(Fault::LostWakeUp).await.contains("L6"));
}

/// L5, L7: a throttle that lets a waiter be overtaken fails.
#[tokio::test(start_paused = true)]
async fn an_overtaken_waiter_is_found() {
    bounded();
    let found = broken_rules(Fault::OvertakenWaiter).await;
    assert!(found.contains("L5") && found.contains("L7"), "{found:?}");
}

/// L8: a throttle that leaks what a dropped wait had coming fails.
#[tokio::test(start_paused = true)]
async fn a_leak_on_cancel_is_found() {
    bounded();
    assert!(broken_rules(Fault::LeakOnCancel).await.contains("L8"));
}

/// L8: a throttle in which a waiter that is not polled blocks the others fails.
#[tokio::test(start_paused = true)]
async fn a_sleeper_that_blocks_is_found() {
    bounded();
    assert!(broken_rules(Fault::BlockedBySleeper).await.contains("L8"));
}

/// L9: a throttle that keeps the slot of a dropped permit, or counts what was not sent, fails.
#[tokio::test(start_paused = true)]
async fn a_permit_that_does_not_come_back_is_found() {
    bounded();
    assert!(broken_rules(Fault::DroppedPermitStays).await.contains("L9"));
    assert!(broken_rules(Fault::UnusedCounts).await.contains("L9"));
}

/// L10: a throttle that does not listen fails.
#[tokio::test(start_paused = true)]
async fn a_throttle_that_does_not_listen_is_found() {
    bounded();
    assert!(broken_rules(Fault::DeafToFeedback).await.contains("L10"));
}
