//! A controller loop: objects change, each is reconciled once it settles, and Ctrl-C drains.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin debounce_controller

#![expect(clippy::disallowed_methods, reason = "a program may wait; only cores may not")]

use std::time::Duration;

use keyed_debounce::{Debounce, Drain, KeyedDebouncer, Outcome, Run};
use tokio::time::interval;

const OBJECTS: [&str; 3] = ["deployment/web", "deployment/api", "service/db"];

/// Makes the world as the object says. Long work looks up when its object changes meanwhile.
async fn reconcile(run: Run<&'static str>) {
    let work = tokio::time::sleep(Duration::from_millis(30));
    tokio::select! {
        () = work => println!("reconciled {}", run.key()),
        () = run.scheduled_again() => println!("{} changed meanwhile: it runs again", run.key()),
    }
    run.finish(Outcome::Done);
}

#[tokio::main]
async fn main() {
    let queue = KeyedDebouncer::new();
    let runner = tokio::spawn({
        let queue = queue.clone();
        async move { queue.run(reconcile).await }
    });
    let settled = Debounce::new(Duration::from_millis(50), Duration::from_millis(500));

    println!("watching {} objects, stop with Ctrl-C", OBJECTS.len());
    let mut changes = interval(Duration::from_millis(40));
    let mut objects = OBJECTS.iter().cycle();
    let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            _ = changes.tick() => {
                let object = objects.next().expect("a cycle does not end");
                if let Err(refused) = queue.schedule(*object, settled) {
                    eprintln!("{refused}");
                }
            }
            _ = &mut stop => break,
        }
    }

    println!("draining {} objects", queue.len());
    let left = queue.drain(Drain::All, Duration::from_secs(10)).await;
    if let Err(failed) = runner.await {
        eprintln!("the runner failed: {failed}");
    }
    println!("{} left", left.total());
}
