//! Two parties share one domain. One comes with a hundred requests at once, the other with three;
//! they take turns, so the three are done long before the hundred.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin throttle_two_parties

use std::{error::Error, time::Duration};

use domain_throttle::{DomainThrottle, Endpoint, Feedback, Limits, ThrottleExt};
use tokio::{sync::mpsc, task::yield_now, time::sleep};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limits = Limits { window: Duration::from_millis(100), ..Limits::default() };
    let throttle = DomainThrottle::builder().limits(limits).build();
    let server: Endpoint = "https://git.example.org/".parse()?;
    let (done, mut order) = mpsc::channel(103);
    for (party, requests) in [("a mirror", 100), ("a person", 3)] {
        for n in 1..=requests {
            let (throttle, server, done) = (throttle.clone(), server.clone(), done.clone());
            tokio::spawn(async move {
                let Ok(permit) = throttle.acquire(&server, party).await else { return };
                request().await;
                permit.finish(Feedback::Ok);
                // The channel has room for all of them.
                let _ = done.send((party, n)).await;
            });
        }
        // The mirror is in line before the person comes.
        yield_now().await;
    }
    drop(done);
    let mut served = Vec::new();
    while let Some((party, n)) = order.recv().await {
        if party == "a person" {
            println!("request {n} of {party} was number {}", served.len() + 1);
        }
        served.push(party);
    }
    assert_eq!(served.len(), 103);
    let last = served.iter().rposition(|&party| party == "a person").ok_or("nobody was served")?;
    println!("the mirror's last request was number {}", served.len());
    assert!(last < 10, "the person waited for the mirror");
    Ok(())
}

/// Stands for a request that takes a moment.
async fn request() {
    #[expect(clippy::disallowed_methods, reason = "it stands for a request")]
    sleep(Duration::from_millis(2)).await;
}
