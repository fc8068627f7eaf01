//! A scheduler of your own: this one wraps another and gives each run a lease. Work that takes
//! longer is told by `lost()` that it should stop.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin debounce_custom_scheduler

#![expect(clippy::disallowed_methods, reason = "a program may wait; only cores may not")]

use std::time::Duration;

use async_trait::async_trait;
use keyed_debounce::{
    Debounce, KeyedDebouncer, Outcome, Run, RunHook, ScheduleError, Scheduled, Scheduler,
    SchedulerError,
};
use tokio::time::{Instant, sleep, sleep_until};

struct Leased<S> {
    inner: S,
    lease: Duration,
}

/// What is under the runs that `Leased` hands out.
struct Lease {
    inner: Run<String>,
    until: Instant,
}

#[async_trait]
impl RunHook for Lease {
    fn settle(self: Box<Self>, outcome: Outcome) {
        self.inner.finish(outcome);
    }
    async fn scheduled_again(&self) {
        self.inner.scheduled_again().await;
    }
    async fn lost(&self) {
        sleep_until(self.until).await;
    }
}

#[async_trait]
impl<S: Scheduler<String>> Scheduler<String> for Leased<S> {
    async fn schedule(
        &self,
        key: String,
        at: Debounce,
    ) -> Result<Scheduled, ScheduleError<String>> {
        self.inner.schedule(key, at).await
    }
    async fn next(&self) -> Result<Run<String>, SchedulerError> {
        let inner = self.inner.next().await?;
        let (key, attempt) = (inner.key().clone(), inner.attempt());
        let until = Instant::now() + self.lease;
        Ok(Run::new(key, attempt, Box::new(Lease { inner, until })))
    }
    async fn cancel(&self, key: &String) -> Result<bool, SchedulerError> {
        self.inner.cancel(key).await
    }
    async fn close(&self) {
        self.inner.close().await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = Leased { inner: KeyedDebouncer::new(), lease: Duration::from_millis(50) };
    for key in ["quick", "slow"] {
        queue.schedule(key.to_owned(), Debounce::immediate()).await?;
    }
    for work in [Duration::from_millis(1), Duration::from_secs(60)] {
        let run = queue.next().await?;
        tokio::select! {
            () = sleep(work) => println!("{}: done", run.key()),
            () = run.lost() => println!("{}: lease lost, stopped", run.key()),
        }
        run.finish(Outcome::Done);
    }
    Ok(())
}
