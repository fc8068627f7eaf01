//! A `Throttle` of one's own: the one in memory behind a switch that stops all requests at once.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin throttle_custom

use std::{error::Error, future::pending, sync::Arc};

use async_trait::async_trait;
use domain_throttle::*;
use tokio::sync::watch;

struct Switched {
    on: watch::Receiver<bool>,
    inner: DomainThrottle,
}

/// A permit that is lost when the switch goes off: `run` drops its request then.
struct Hook(Permit, watch::Receiver<bool>);

impl Hook {
    fn guard(permit: Permit, on: &watch::Receiver<bool>) -> Permit {
        Permit::new(permit.endpoint().clone(), Box::new(Self(permit, on.clone())))
    }
}

#[async_trait]
impl PermitHook for Hook {
    fn settle(self: Box<Self>, feedback: Feedback) {
        self.0.finish(feedback);
    }

    async fn lost(&self) {
        switched_off(self.1.clone()).await;
    }
}

#[async_trait]
impl Throttle for Switched {
    async fn check(&self, at: &Endpoint, key: &str) -> Result<(), Denied> {
        let is_on = *self.on.borrow(); // a guard that must not live across an await
        if is_on { self.inner.check(at, key) } else { Err(Denied::Backend("switched off".into())) }
    }

    async fn try_acquire(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied> {
        self.check(at, key).await?;
        Ok(Hook::guard(self.inner.try_acquire(at, key)?, &self.on))
    }

    async fn acquire_any(&self, at: &[Endpoint], key: &str) -> Result<Permit, ThrottleError> {
        loop {
            self.on.clone().wait_for(|on| *on).await.map_err(|_| ThrottleError::Closed)?;
            tokio::select! {
                permit = self.inner.acquire_any(at, key) => return permit.map(|p| Hook::guard(p, &self.on)),
                () = switched_off(self.on.clone()) => {} // out of the line until it is on again
            }
        }
    }
}

async fn switched_off(mut on: watch::Receiver<bool>) {
    if on.wait_for(|on| !on).await.is_err() {
        pending::<()>().await; // nobody can switch any more
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (switch, on) = watch::channel(true);
    let throttle: Arc<dyn Throttle> = Arc::new(Switched { on, inner: DomainThrottle::new() });
    let server: Endpoint = "https://git.example.org".parse()?;
    let stopped = throttle.run(&server, "key", async {
        switch.send_replace(false);
        pending::<((), Feedback)>().await
    });
    assert!(matches!(stopped.await, Err(ThrottleError::Lost)));
    assert!(throttle.check(&server, "key").await.is_err());
    switch.send_replace(true);
    println!("goes again: {:?}", throttle.acquire(&server, "key").await?);
    Ok(())
}
