//! A grant and its release, and a denial, beside what a check costs in governor and leaky-bucket, in
//! one run: every round times each of them in turn, so that what else the machine does hits all.
//!
//! Run with: `cargo bench -p domain-throttle --bench speed [-- WORD]`; a WORD runs only the rows it is in.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::{
    collections::HashMap,
    hint::black_box,
    num::NonZeroU32,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use domain_throttle::{DomainThrottle, Endpoint, Feedback, Limits};
use governor::{Quota, RateLimiter, clock::MonotonicClock};

const ROUNDS: usize = 801;
/// So few that a round is mostly over before a busy machine takes the core away.
const STEPS: usize = 250;

/// The work of a keyed limiter of governor, whatever its store and its clock.
macro_rules! governor {
    ($names:expr, $limiter:expr) => {{
        let (limiter, names) = ($limiter, $names.to_vec());
        for name in &names {
            (0..30).for_each(|_| drop(black_box(limiter.check_key(name))));
        }
        Box::new(move |thread: usize, steps: usize| {
            each(names.len(), thread, steps, |at| drop(black_box(limiter.check_key(&names[at]))));
        })
    }};
}

fn main() {
    let word = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!(
        "Nanoseconds, median of {ROUNDS} rounds of {STEPS}, and ours in parts of the others': the \
         median of each round's ratio, and what half of the rounds lie between.\n"
    );
    println!(
        "| | ours | DashMap | HashMap | DashMap, std's clock | leaky-bucket | ours / DashMap | ours / \
         HashMap | ours / DashMap, std's clock | ours / leaky-bucket |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    );
    for what in [What::Grant, What::Denial] {
        for domains in [1, 1_000, 100_000] {
            for threads in [1, 2] {
                let row = format!("{what:?}, {domains} domains, {threads} threads");
                if row.contains(&word) {
                    println!("| {row} {}", compare(what, domains, threads));
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// Every request is granted and comes back.
    Grant,
    /// The window is full: every request is denied.
    Denial,
}

/// Does so many steps, of the thread of this number.
type Work = Box<dyn Fn(usize, usize) + Sync>;

fn compare(what: What, domains: usize, threads: usize) -> String {
    let names: Vec<String> = (0..domains).map(|n| format!("h{n:05}.example")).collect();
    let contenders: [Work; 5] = [
        ours(what, &names),
        governor!(names, RateLimiter::dashmap(quota(what))),
        governor!(names, RateLimiter::hashmap(quota(what))),
        // With the clock that ours has to read, too: tokio's, which is that of std.
        governor!(names, RateLimiter::dashmap_with_clock(quota(what), MonotonicClock)),
        leaky(what, &names),
    ];
    let mut times = vec![Vec::new(); contenders.len()];
    for round in 0..ROUNDS + 10 {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let time = timed(contender, threads);
            // The first rounds warm up.
            if round >= 10 {
                times.push(time);
            }
        }
    }
    let mut cells: Vec<String> =
        times.iter().map(|times| format!("{:.0}", quartiles(times)[1])).collect();
    for others in &times[1..] {
        let ratios: Vec<f64> = times[0].iter().zip(others).map(|(ours, its)| ours / its).collect();
        let [low, middle, high] = quartiles(&ratios);
        cells.push(format!("{middle:.2} ({low:.2} to {high:.2})"));
    }
    format!("| {} |", cells.join(" | "))
}

/// Nanoseconds per step.
fn timed(work: &Work, threads: usize) -> f64 {
    let start = Barrier::new(threads);
    let run = |thread: usize| {
        start.wait();
        let begin = Instant::now();
        work(thread, STEPS);
        begin.elapsed()
    };
    let longest = match threads {
        1 => run(0),
        _ => thread::scope(|scope| {
            let run = &run;
            let all: Vec<_> = (0..threads).map(|n| scope.spawn(move || run(n))).collect();
            all.into_iter().map(|one| one.join().expect("no panic")).max().expect("a thread")
        }),
    };
    longest.as_secs_f64() * 1e9 / STEPS as f64
}

fn quartiles(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| sorted[sorted.len() * quarter / 4])
}

/// Calls `step` for domains in an order that no cache can guess.
fn each(domains: usize, thread: usize, steps: usize, mut step: impl FnMut(usize)) {
    let mut state = 1 + thread;
    for _ in 0..steps {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        step(((state >> 32) * domains) >> 32);
    }
}

fn count(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).expect("not zero")
}

fn ours(what: What, names: &[String]) -> Work {
    // Thirty starts in a window that is soon over: each start drops older ones, none is denied.
    let window = match what {
        What::Grant => Duration::from_nanos(500),
        What::Denial => Duration::from_secs(3_600),
    };
    let limits = Limits { window, ..Limits::default() };
    let throttle = DomainThrottle::builder().limits(limits).build();
    let endpoints: Vec<Endpoint> =
        names.iter().map(|name| format!("https://{name}").parse().expect("a URL")).collect();
    let keys = ["alice/project", "bob/another"];
    for endpoint in &endpoints {
        for _ in 0..30 {
            if let Ok(permit) = throttle.try_acquire(endpoint, keys[0]) {
                permit.finish(Feedback::Ok);
            }
        }
    }
    Box::new(move |thread, steps| {
        each(endpoints.len(), thread, steps, |at| {
            match throttle.try_acquire(&endpoints[at], keys[thread]) {
                Ok(permit) => permit.finish(Feedback::Ok),
                Err(denied) => {
                    black_box(denied);
                }
            }
        });
    })
}

fn quota(what: What) -> Quota {
    match what {
        What::Grant => Quota::with_period(Duration::from_nanos(1))
            .expect("not zero")
            .allow_burst(count(1_000_000)),
        What::Denial => Quota::per_hour(count(30)),
    }
}

/// One bucket per domain, in a map that nobody changes: the least a user could write.
fn leaky(what: What, names: &[String]) -> Work {
    let bucket = || match what {
        What::Grant => {
            let full = 1_000_000_000;
            leaky_bucket::RateLimiter::builder().max(full).initial(full).build()
        }
        What::Denial => leaky_bucket::RateLimiter::builder()
            .max(30)
            .initial(0)
            .interval(Duration::from_secs(3_600))
            .build(),
    };
    let names = names.to_vec();
    let buckets: HashMap<String, leaky_bucket::RateLimiter> =
        names.iter().map(|name| (name.clone(), bucket())).collect();
    Box::new(move |thread, steps| {
        each(names.len(), thread, steps, |at| {
            black_box(buckets[&names[at]].try_acquire(1));
        });
    })
}
