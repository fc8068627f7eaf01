use std::sync::{Arc, Mutex, PoisonError};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use tokio::time::{Instant, sleep};

use super::{
    books::Books,
    hosts::{Host, REST, SLOWNESS},
    now,
};

/// Puts the manners of `host` and its books in front of a git server.
pub(super) fn gated(server: Router, host: Host, books: Books) -> Router {
    let gate = Gate { host, books, open_from: Mutex::new(None) };
    server.layer(middleware::from_fn_with_state(Arc::new(gate), pass))
}

struct Gate {
    host: Host,
    books: Books,
    /// From when on the strict server serves, once it was asked.
    open_from: Mutex<Option<Instant>>,
}

/// No repository of the demo has more, packed.
const MAX_ANSWER: usize = 16 << 20;

/// The answer is complete before its first byte goes: what is counted as on ends before anybody can have seen the end
/// of it, so that the count is never above what is on.
async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let starts_a_fetch = request.uri().path().ends_with("/info/refs");
    let _on_now = gate.books.came(starts_a_fetch);
    match gate.host {
        Host::Slow => pause().await,
        Host::Strict if starts_a_fetch && gate.is_shut() => {
            gate.books.sent_away();
            let later = [(header::RETRY_AFTER, REST.as_secs().to_string())];
            return (StatusCode::TOO_MANY_REQUESTS, later).into_response();
        }
        _ => {}
    }
    let (head, body) = next.run(request).await.into_parts();
    match to_bytes(body, MAX_ANSWER).await {
        Ok(whole) => Response::from_parts(head, Body::from(whole)),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl Gate {
    /// The first that comes is sent away, and whoever comes before the rest is over.
    fn is_shut(&self) -> bool {
        let at = now();
        let mut open_from = self.open_from.lock().unwrap_or_else(PoisonError::into_inner);
        at < *open_from.get_or_insert(at + REST)
    }
}

#[expect(clippy::disallowed_methods, reason = "a slow server takes its time")]
async fn pause() {
    sleep(SLOWNESS).await;
}
