//! What a limit of 30 a minute is worth, and what a thousand who wait cost: ours beside governor and
//! leaky-bucket. Time is simulated, but for governor's waiters, who can only wait in the real one.
//!
//! Run with: `cargo bench -p domain-throttle --bench promises`

#![allow(clippy::disallowed_methods, reason = "tokio's paused clock is moved on")]

use std::{
    cell::Cell,
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use domain_throttle::{
    DomainState, DomainThrottle, Endpoint, Feedback, Limits, Moment, ThrottleExt,
};
use futures::{StreamExt, stream::FuturesUnordered};
use governor::{Quota, RateLimiter, clock::FakeRelativeClock};

/// The adversary asks every 10 ms.
const STEP: Duration = Duration::from_millis(10);
const MINUTE: usize = 6_000;
const MINUTES: usize = 60;
const LIMIT: u32 = 30;
const WAITERS: usize = 1_000;

fn main() {
    println!(
        "| at a limit of 30 in 60 s | most starts in any 60 s | budget used, minute for minute, \
         after the second |\n|---|---|---|"
    );
    row("ours", &ours());
    row("governor", &governor());
    let runtime = paused();
    row("leaky-bucket, 1 every 2 s", &runtime.block_on(leaky(1, 2, 0)));
    // Here he begins a second before the bucket is filled again.
    row("leaky-bucket, 30 every 60 s", &runtime.block_on(leaky(30, 60, MINUTE - 100)));
    println!(
        "\n| {WAITERS} who wait | polls per grant | most polls of one | overtaken by who came \
         later |\n|---|---|---|---|"
    );
    paused().block_on(our_waiters());
    paused().block_on(leaky_waiters());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(governors_waiters());
}

/// `starts[n]`: whether a request went at step `n`.
fn row(name: &str, starts: &[bool]) {
    let in_minute = |from: usize| starts[from..].iter().take(MINUTE).filter(|&&went| went).count();
    let most = (0..starts.len()).map(in_minute).max().unwrap_or(0);
    let steady = starts[2 * MINUTE..].iter().filter(|&&went| went).count();
    let budget = (MINUTES - 2) * LIMIT as usize;
    println!("| {name} | {most} | {:.1} % |", 100.0 * steady as f64 / budget as f64);
}

fn ours() -> Vec<bool> {
    let mut core = DomainState::<()>::new(Limits::default());
    let at: Endpoint = "https://h.example".parse().expect("a URL");
    let each = (0..MINUTE * MINUTES).map(|n| {
        let now = Moment::ZERO.saturating_add(STEP * u32::try_from(n).expect("an hour"));
        let taken = core.try_take(now, &at, "k");
        let settle = |grant| core.settle(now, grant, &at, Feedback::Ok);
        taken.map(settle).is_ok()
    });
    each.collect()
}

fn limit() -> NonZeroU32 {
    NonZeroU32::new(LIMIT).expect("not zero")
}

fn governor() -> Vec<bool> {
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::direct_with_clock(Quota::per_minute(limit()), clock.clone());
    let each = (0..MINUTE * MINUTES).map(|_| {
        let went = limiter.check().is_ok();
        clock.advance(STEP);
        went
    });
    each.collect()
}

async fn leaky(refill: usize, seconds: u64, idle: usize) -> Vec<bool> {
    let limiter = leaky_bucket::RateLimiter::builder()
        .max(LIMIT as usize)
        .initial(LIMIT as usize)
        .refill(refill)
        .interval(Duration::from_secs(seconds))
        .build();
    let mut starts = Vec::new();
    for step in 0..MINUTE * MINUTES {
        starts.push(step >= idle && limiter.try_acquire(1));
        tokio::time::advance(STEP).await;
    }
    starts
}

async fn our_waiters() {
    let throttle = DomainThrottle::new();
    let at: Endpoint = "https://h.example".parse().expect("a URL");
    let keys: Vec<String> = (0..WAITERS).map(|n| n.to_string()).collect();
    let wait = |n: usize| {
        let (throttle, at, key) = (&throttle, &at, &keys[n]);
        async move { throttle.acquire(at, key).await.expect("open").finish(Feedback::Ok) }
    };
    serve("ours", wait).await;
}

async fn leaky_waiters() {
    let interval = Duration::from_secs(2);
    let limiter =
        leaky_bucket::RateLimiter::builder().max(30).initial(30).interval(interval).build();
    serve("leaky-bucket", |_| limiter.acquire_one()).await;
}

/// A token each millisecond, so that it ends within seconds.
async fn governors_waiters() {
    let quota = Quota::with_period(Duration::from_millis(1)).expect("not zero");
    let limiter = Arc::new(RateLimiter::dashmap(quota));
    let key = "h.example".to_owned();
    serve("governor, real time, one a millisecond", |_| limiter.until_key_ready(&key)).await;
}

async fn serve<F: Future>(name: &str, wait: impl Fn(usize) -> F) {
    let polls: Vec<Rc<Cell<usize>>> = (0..WAITERS).map(|_| Rc::default()).collect();
    let counted = (0..WAITERS).map(|n| {
        let (polls, wait) = (polls[n].clone(), Box::pin(wait(n)));
        async move {
            Counted { polls, wait }.await;
            n
        }
    });
    // It polls those who were woken, and nobody else.
    let order: Vec<usize> = counted.collect::<FuturesUnordered<_>>().collect().await;
    let mut latest = 0;
    let overtaken = order.iter().filter(|&&n| {
        latest = latest.max(n);
        n < latest
    });
    let overtaken = overtaken.count();
    let most = polls.iter().map(|polls| polls.get()).max().unwrap_or(0);
    let all: usize = polls.iter().map(|polls| polls.get()).sum();
    println!("| {name} | {:.2} | {most} | {overtaken} |", all as f64 / WAITERS as f64);
}

struct Counted<F> {
    polls: Rc<Cell<usize>>,
    wait: Pin<Box<F>>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.set(self.polls.get() + 1);
        self.wait.as_mut().poll(context)
    }
}

fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}
