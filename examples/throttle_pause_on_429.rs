//! A server says `429 Too Many Requests` with `Retry-After: 1`. The throttle keeps everybody away
//! from it for that second, and nobody asks in vain.
//!
//! Run with: cargo run -p purgatory-sync-examples --bin throttle_pause_on_429

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{
    Router, http::StatusCode, http::header::RETRY_AFTER, response::IntoResponse, routing::get,
};
use domain_throttle::{
    Denied, DomainThrottle, Endpoint, Feedback, Permit, ThrottleExt, retry_after,
};
use tokio::{net::TcpListener, time::Instant};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let seen = Arc::new(AtomicU32::new(0));
    let url = serve(seen.clone()).await?;
    // The client wants to know who does its TLS, also where there is none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (throttle, client) = (DomainThrottle::new(), reqwest::Client::new());
    let server: Endpoint = url.parse()?;

    let permit = throttle.acquire(&server, "alice").await?;
    println!("alice is told {}", ask(permit, &client, &url).await?);
    // Bob has done nothing, but it is the same server: he may not ask now.
    match throttle.try_acquire(&server, "bob") {
        Err(Denied::Paused { .. }) => println!("bob waits, without asking"),
        other => return Err(format!("bob was answered {other:?}").into()),
    }
    #[expect(clippy::disallowed_methods, reason = "it prints how long bob waited")]
    let start = Instant::now();
    let permit = throttle.acquire(&server, "bob").await?;
    let waited = start.elapsed();
    println!("bob is told {} after {} ms", ask(permit, &client, &url).await?, waited.as_millis());
    assert!(waited > Duration::from_millis(500));
    assert_eq!(seen.load(Ordering::Relaxed), 2, "two requests, none in vain");
    Ok(())
}

async fn ask(
    permit: Permit,
    client: &reqwest::Client,
    url: &str,
) -> Result<StatusCode, reqwest::Error> {
    // If this fails, the permit is dropped, which says that the request failed.
    let answer = client.get(url).send().await?;
    let header = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    #[expect(clippy::disallowed_methods, reason = "a date counts from now")]
    let delay = header.and_then(|value| retry_after(value, SystemTime::now()).ok());
    permit.finish(delay.map_or(Feedback::Ok, Feedback::RetryAfter));
    Ok(answer.status())
}

/// Answers the first request with 429, and all others with 200.
async fn serve(seen: Arc<AtomicU32>) -> Result<String, Box<dyn Error + Send + Sync>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let answer = move || async move {
        match seen.fetch_add(1, Ordering::Relaxed) {
            0 => (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "1")]).into_response(),
            _ => "welcome".into_response(),
        }
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(answer))).await });
    Ok(url)
}
