//! Bytes of heap per domain, 100,000 domains, beside governor's and leaky-bucket's.
//!
//! Run with: `cargo bench -p domain-throttle --bench memory`

#![allow(clippy::disallowed_methods, reason = "tokio's paused clock is moved on")]

use std::{alloc::System, collections::HashMap, num::NonZeroU32, time::Duration};

use domain_throttle::{DomainThrottle, Endpoint, Feedback, Limits};
use governor::{Quota, RateLimiter};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const DOMAINS: usize = 100_000;
const STARTS: u32 = 30;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    println!(
        "| bytes per domain, {DOMAINS} domains, names of {} characters | |\n|---|---|",
        name(0).len()
    );
    for (starts, what) in [(STARTS, "a full window of 30"), (1, "one start")] {
        runtime.block_on(ours(starts, what));
    }
    let quota = Quota::per_hour(NonZeroU32::new(STARTS).expect("not zero"));
    let region = Region::new(ALLOCATOR);
    let limiter = RateLimiter::dashmap(quota);
    (0..DOMAINS).for_each(|n| drop(limiter.check_key(&name(n))));
    println!("| governor, DashMap | {} |", per_domain(&region));
    drop(limiter);
    let region = Region::new(ALLOCATOR);
    let limiter = RateLimiter::hashmap(quota);
    (0..DOMAINS).for_each(|n| drop(limiter.check_key(&name(n))));
    println!("| governor, HashMap | {} |", per_domain(&region));
    drop(limiter);
    let region = Region::new(ALLOCATOR);
    let bucket = || leaky_bucket::RateLimiter::builder().max(30).initial(30).build();
    let buckets: HashMap<String, leaky_bucket::RateLimiter> =
        (0..DOMAINS).map(|n| (name(n), bucket())).collect();
    println!("| leaky-bucket in a HashMap | {} |", per_domain(&region));
    drop(buckets);
}

/// In use, and when the hand that forgets has gone round: it takes back what an idle domain keeps to
/// be fast.
async fn ours(starts: u32, what: &str) {
    let limits = Limits { window: Duration::from_secs(3_600), ..Limits::default() };
    let region = Region::new(ALLOCATOR);
    let throttle = DomainThrottle::builder().limits(limits).build();
    for n in 0..DOMAINS {
        let endpoint: Endpoint = format!("https://{}", name(n)).parse().expect("a URL");
        for _ in 0..starts {
            throttle.try_acquire(&endpoint, "alice/project").expect("open").finish(Feedback::Ok);
        }
    }
    println!("| ours, {what}, just used | {} |", per_domain(&region));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(throttle.domains(), DOMAINS);
    println!("| ours, {what}, ten minutes later | {} |", per_domain(&region));
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(throttle.domains(), 0);
    println!("| ours, {what}, forgotten | {} |", per_domain(&region));
}

fn name(n: usize) -> String {
    format!("h{n:05}.example")
}

fn per_domain(region: &Region<'_, System>) -> usize {
    let change = region.change();
    (change.bytes_allocated.saturating_sub(change.bytes_deallocated)) / DOMAINS
}
