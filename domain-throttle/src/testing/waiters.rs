use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use crate::{Endpoint, Permit, Throttle, ThrottleError, testing::Backend};

type Wait = Pin<Box<dyn Future<Output = Result<Permit, ThrottleError>> + Send>>;

/// Waits that are polled only when they were woken.
pub(super) struct Waiters {
    waits: Vec<(&'static str, Wait, Arc<Woken>)>,
    /// Who got a permit, in order.
    pub(super) served: Vec<(&'static str, Permit)>,
}

/// A waker that remembers that it was called.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Waiters {
    pub(super) fn new() -> Self {
        Self { waits: Vec::new(), served: Vec::new() }
    }

    /// Lets somebody wait; it is polled with the next [`settle`](Self::settle).
    pub(super) fn add(
        &mut self,
        name: &'static str,
        throttle: &Arc<dyn Throttle>,
        at: &[Endpoint],
        key: &str,
    ) {
        let (throttle, at, key) = (throttle.clone(), at.to_vec(), key.to_owned());
        let wait = Box::pin(async move { throttle.acquire_any(&at, &key).await });
        self.waits.push((name, wait, Arc::new(Woken(AtomicBool::new(true)))));
    }

    /// Lets the first wait of this name go, in whatever state it is.
    pub(super) fn cancel(&mut self, name: &str) {
        if let Some(at) = self.waits.iter().position(|(other, ..)| *other == name) {
            drop(self.waits.remove(at));
        }
    }

    pub(super) fn is_woken(&self, name: &str) -> bool {
        self.waits.iter().any(|(other, _, woken)| *other == name && woken.0.load(Ordering::SeqCst))
    }

    /// Polls everybody who was woken, until nobody is.
    pub(super) async fn settle(&mut self, backend: &dyn Backend) -> Result<(), String> {
        self.settle_but("", backend).await
    }

    /// As [`settle`](Self::settle), but one is not polled although it is woken.
    pub(super) async fn settle_but(
        &mut self,
        sleeper: &str,
        backend: &dyn Backend,
    ) -> Result<(), String> {
        for _ in 0..1_000 {
            backend.advance(Duration::ZERO).await;
            let ready = |(name, _, woken): &(&str, Wait, Arc<Woken>)| {
                *name != sleeper && woken.0.load(Ordering::SeqCst)
            };
            let Some(at) = self.waits.iter().position(ready) else { return Ok(()) };
            self.poll(at)?;
        }
        Err("a wait wakes itself again and again".to_owned())
    }

    fn poll(&mut self, at: usize) -> Result<(), String> {
        let (name, wait, woken) = &mut self.waits[at];
        woken.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(woken.clone());
        match wait.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(permit)) => {
                self.served.push((name, permit));
                drop(self.waits.remove(at));
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(format!("the wait of {name} failed: {error}")),
        }
    }

    /// The names of those who were served, in order.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.served.iter().map(|(name, _)| *name).collect()
    }
}
