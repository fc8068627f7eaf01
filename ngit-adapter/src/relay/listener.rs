//! From the socket to the routes.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long the head of a request may take: a client that drips it is not waited for.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// The most bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;
/// How long requests that are on have to end once the relay stops.
const GRACE: Duration = Duration::from_secs(5);
/// The wait after a failure to accept: mostly, too many files are open.
const BREATH: Duration = Duration::from_millis(100);

/// The place of a connection among those that there may be. It goes along with what the connection becomes.
#[derive(Clone)]
pub(super) struct Place(#[expect(dead_code, reason = "held, not read")] Arc<OwnedSemaphorePermit>);

/// Takes connections until `stop`. Over `most` at once, new ones wait in the system's queue.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    most: usize,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) {
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    loop {
        let next = async {
            // It is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((place, listener.accept().await))
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = next => accepted,
        };
        match accepted {
            None => return,
            Some((place, Ok((stream, _)))) => {
                let place = Place(Arc::new(place));
                tasks.spawn(serve(stream, router.clone(), place, stop.clone()));
            }
            Some((_, Err(error))) => {
                tracing::warn!(%error, "a connection could not be taken");
                breathe().await;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell file: there is nothing else to wait for")]
async fn breathe() {
    tokio::time::sleep(BREATH).await;
}

async fn serve(stream: TcpStream, router: Router, place: Place, stop: CancellationToken) {
    // Answers are small and wanted at once. Without it they come a little later.
    let _ = stream.set_nodelay(true);
    let inner = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(place.clone());
        inner.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
