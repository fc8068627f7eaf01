//! A burst of webhooks: each repository is indexed once, when its burst is over.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin debounce_webhooks

use std::time::Duration;

use keyed_debounce::{Debounce, Drain, KeyedDebouncer, Outcome, Scheduled};

#[tokio::main]
async fn main() {
    let queue = KeyedDebouncer::new();
    let runner = tokio::spawn({
        let queue = queue.clone();
        async move {
            let index = |run: keyed_debounce::Run<&'static str>| async move {
                println!("index {}", run.key());
                run.finish(Outcome::Done);
            };
            queue.run(index).await;
        }
    });

    // Quiet for half a second, but never later than five seconds after the first webhook.
    let settled = Debounce::new(Duration::from_millis(500), Duration::from_secs(5));
    let (mut new, mut joined) = (0, 0);
    for webhook in 0..30 {
        let repository = ["alpha", "beta", "gamma"][webhook % 3];
        match queue.schedule(repository, settled) {
            Ok(Scheduled::New) => new += 1,
            Ok(_) => joined += 1,
            Err(refused) => eprintln!("webhook for {repository} refused: {refused}"),
        }
    }
    println!("{new} new, {joined} joined what was waiting");

    let left = queue.drain(Drain::All, Duration::from_secs(10)).await;
    if let Err(failed) = runner.await {
        eprintln!("the runner failed: {failed}");
    }
    println!("{} left", left.total());
}
