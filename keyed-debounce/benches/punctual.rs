//! How late runs start, with 10,000 keys due a second, on tokio's clock.
//!
//! `cargo bench -p keyed-debounce --bench punctual [-- SECONDS]`. All keys wait from the start.
#![expect(clippy::disallowed_methods, reason = "a bench looks at its end from time to time")]

use std::{
    env,
    sync::{Arc, Mutex},
    time::Duration,
};

use keyed_debounce::{Debounce, Drain, Event, KeyedDebouncer, Outcome, Run};

const A_SECOND: u32 = 10_000;

fn main() {
    let seconds = env::args().find_map(|argument| argument.parse().ok()).unwrap_or(10);
    let late = lateness(seconds * A_SECOND);
    println!("{} starts, {A_SECOND} due a second; later than due by", late.len());
    for share in [50.0, 90.0, 99.0, 99.9, 100.0] {
        println!("  {share:5} %  at most {:?}", percentile(&late, share));
    }
    let mut least = Duration::ZERO;
    for most in [250, 500, 1000, 1500, 2000, 4000, 8000, 16_000, u64::MAX] {
        let most = Duration::from_micros(most);
        let here = late.iter().filter(|&&late| late >= least && late < most).count();
        let bar = "#".repeat(here * 60 / late.len());
        println!("  from {least:>8.2?} {here:8} {bar}");
        least = most;
    }
    let within = late.iter().filter(|&&late| late <= Duration::from_millis(2)).count();
    println!("  within 2 ms: {:.2} %", percent(within, late.len()));
}

/// Sorted.
fn lateness(keys: u32) -> Vec<Duration> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime");
    let late = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&late);
    let queue = KeyedDebouncer::builder()
        .observer(move |event: &Event<'_, u32>| {
            if let Event::Started { late_by, .. } = event {
                told.lock().expect("nobody panics").push(*late_by);
            }
        })
        .build();
    for key in 0..keys {
        let delay = Duration::from_secs(1) + Duration::from_secs(1) / A_SECOND * key;
        queue.schedule(key, Debounce::after(delay)).expect("open");
    }
    runtime.block_on(async {
        let running = queue.clone();
        let runner = tokio::spawn(async move {
            running.run(|run: Run<u32>| async move { run.finish(Outcome::Done) }).await;
        });
        while !queue.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        queue.drain(Drain::Running, Duration::from_secs(10)).await;
        runner.await.expect("no panic");
    });
    let mut late = std::mem::take(&mut *late.lock().expect("nobody panics"));
    late.sort_unstable();
    late
}

fn percentile(sorted: &[Duration], share: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let at = (sorted.len() as f64 * share / 100.0).ceil() as usize;
    sorted[at.clamp(1, sorted.len()) - 1]
}

#[expect(clippy::cast_precision_loss, reason = "a share to print")]
fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole as f64
}
