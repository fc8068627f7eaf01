//! A crawler that asks two servers for twelve pages each, never more than two at once and five a
//! second, whatever the number of its tasks.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin throttle_polite_crawler

#![expect(clippy::disallowed_methods, reason = "it prints when each page came")]

use std::{error::Error, num::NonZeroU32, time::Duration};

use axum::{Router, routing::get};
use domain_throttle::{DomainThrottle, Endpoint, Feedback, Limits, ThrottleExt};
use tokio::{net::TcpListener, task::JoinSet, time::Instant};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let limits = Limits {
        max_concurrent: NonZeroU32::new(2).ok_or("zero")?,
        max_per_window: NonZeroU32::new(5).ok_or("zero")?,
        window: Duration::from_secs(1),
    };
    let throttle = DomainThrottle::builder().limits(limits).build();
    // The client wants to know who does its TLS, also where there is none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let mut pages = JoinSet::new();
    let start = Instant::now();
    for address in ["127.0.0.1:0", "127.0.0.2:0"] {
        let site = serve(address).await?;
        for page in 0..12 {
            let (throttle, client) = (throttle.clone(), client.clone());
            let url = format!("{site}/page/{page}");
            pages.spawn(async move { fetch(&throttle, &client, &url, page).await });
        }
    }
    while let Some(page) = pages.join_next().await {
        println!("{:>5} ms  {}", start.elapsed().as_millis(), page??);
    }
    for row in throttle.tallies() {
        let domain = row.domain.ok_or("only two domains were asked")?;
        println!("{domain}: {} requests", row.requests);
        assert_eq!(row.requests, 12);
    }
    // 5 + 5 + 2 pages a server: the last two go when two seconds are over, on both at once.
    assert!(start.elapsed() >= Duration::from_secs(2));
    Ok(())
}

async fn fetch(
    throttle: &DomainThrottle,
    client: &reqwest::Client,
    url: &str,
    page: u32,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let server: Endpoint = url.parse()?;
    let request = async {
        let answer = client.get(url).send().await;
        let feedback = match &answer {
            Ok(answer) if !answer.status().is_server_error() => Feedback::Ok,
            _ => Feedback::Failed,
        };
        (answer, feedback)
    };
    // The key is the page, so that every page is a party of its own.
    let answer = throttle.run(&server, &page.to_string(), request).await??;
    Ok(format!("{} {url}", answer.status()))
}

/// A site on a loopback address of its own, so that it is a domain of its own.
async fn serve(address: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    let listener = TcpListener::bind(address).await?;
    let site = format!("http://{}", listener.local_addr()?);
    let router = Router::new().route("/page/{n}", get(|| async { "a page" }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(site)
}
