//! Retry with backoff: a delivery that fails is tried again later and later, a panic counts as a
//! failure, and news about the key starts afresh.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin debounce_retry

use std::time::Duration;

use keyed_debounce::{Debounce, Exponential, KeyedDebouncer, Outcome, Run};

async fn deliver(run: &Run<&'static str>) -> Result<(), String> {
    match run.attempt() {
        1 => Err("connection refused".to_owned()),
        2 => Err("connection refused again".to_owned()),
        _ => Ok(()),
    }
}

#[tokio::main]
async fn main() {
    let backoff = Exponential::new(Duration::from_millis(20), 2, Duration::from_millis(120));
    let queue = KeyedDebouncer::builder().backoff(backoff.with_jitter_percent(10)).build();
    queue.schedule("invoice-7", Debounce::immediate()).expect("open, and without a capacity");

    let closer = queue.clone();
    let handler = move |run: Run<&'static str>| {
        let queue = closer.clone();
        async move {
            match deliver(&run).await {
                Ok(()) => {
                    println!("attempt {}: delivered", run.attempt());
                    run.finish(Outcome::Done);
                    queue.close();
                }
                Err(why) => {
                    println!("attempt {}: {why}", run.attempt());
                    run.finish(Outcome::Retry);
                }
            }
        }
    };
    queue.run(handler).await;
    println!("{} left", queue.len());
}
