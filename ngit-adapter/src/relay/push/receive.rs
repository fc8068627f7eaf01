//! A push as HTTP: from its first request to its answer.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use tokio::{sync::OwnedSemaphorePermit, time};
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::shared::Shared, advertisement::advertisement, body::RequestBody, commands::Commands,
    packets::Packets, report, take::Push,
};
use crate::RepositoryId;

/// How often a client that waits is told that there is still somebody.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// What lies around the pack: commands.
const HEAD_BYTES: u64 = 16 << 20;

/// Answers whether and what one may push: the refs that are here.
pub(in super::super) async fn advertise(shared: &Shared, repository: &RepositoryId) -> Response {
    if let Err(response) = announced(shared, repository).await {
        return response;
    }
    match shared.repositories().refs(repository).await {
        Ok(refs) => {
            let body = Body::from(advertisement(&refs));
            answer("application/x-git-receive-pack-advertisement", body)
        }
        Err(error) => failed(&error),
    }
}

/// Takes a push.
pub(in super::super) async fn receive(
    shared: Arc<Shared>,
    repository: RepositoryId,
    slot: OwnedSemaphorePermit,
    request: Request,
) -> Response {
    if let Err(response) = announced(&shared, &repository).await {
        return response;
    }
    let gzip = match encoding(&request) {
        Ok(gzip) => gzip,
        Err(refusal) => return refusal.into_response(),
    };
    let limits = *shared.git_limits();
    let most = limits.pack_bytes.saturating_add(HEAD_BYTES);
    let body = RequestBody::new(request.into_body(), gzip, most, limits.idle_timeout);
    let mut packets = Packets::new(body);
    let commands = match time::timeout(limits.overall_timeout, Commands::read(&mut packets)).await {
        Ok(Ok(commands)) => commands,
        Ok(Err(error)) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
        Err(_) => return (StatusCode::REQUEST_TIMEOUT, "too slow\n").into_response(),
    };
    if commands.all.is_empty() {
        return answer(RESULT, Body::empty());
    }
    let bands = commands.bands;
    let push = Push { shared, repository, commands };
    // A task of its own, so that the report does not wait for the client to read what came before. It ends with the answer.
    let work = AbortOnDropHandle::new(tokio::spawn(async move {
        let _slot = slot;
        push.run(packets).await
    }));
    answer(RESULT, Body::from_stream(said(work, bands)))
}

const RESULT: &str = "application/x-git-receive-pack-result";

/// The report once it is there, and signs of life before.
fn said(
    work: AbortOnDropHandle<Vec<u8>>,
    bands: bool,
) -> impl futures::Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(Some(work), move |work| async move {
        let mut work = work?;
        let wait = if bands { KEEP_ALIVE } else { Duration::from_secs(24 * 60 * 60) };
        match time::timeout(wait, &mut work).await {
            Ok(Ok(report)) => Some((Ok(Bytes::from(report)), None)),
            Ok(Err(error)) => Some((Err(io::Error::other(error)), None)),
            Err(_) => Some((Ok(Bytes::from_static(report::keep_alive())), Some(work))),
        }
    })
    .boxed()
}

async fn announced(shared: &Shared, repository: &RepositoryId) -> Result<(), Response> {
    match shared.store().is_announced(repository).await {
        Ok(true) => Ok(()),
        Ok(false) => Err((
            StatusCode::NOT_FOUND,
            "there is no such repository: publish its announcement first\n",
        )
            .into_response()),
        Err(error) => Err(failed(&error)),
    }
}

fn encoding(request: &Request) -> Result<bool, (StatusCode, &'static str)> {
    let header = |name| request.headers().get(name).and_then(|it| it.to_str().ok()).map(str::trim);
    if header(header::CONTENT_TYPE) != Some("application/x-git-receive-pack-request") {
        return Err((
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the content type has to be application/x-git-receive-pack-request\n",
        ));
    }
    match header(header::CONTENT_ENCODING) {
        None | Some("identity") => Ok(false),
        Some("gzip" | "x-gzip") => Ok(true),
        Some(_) => Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the only content encoding is gzip\n")),
    }
}

fn answer(kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, max-age=0, must-revalidate"),
    );
    response
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Response {
    tracing::warn!(error, "a push could not be answered");
    (StatusCode::INTERNAL_SERVER_ERROR, "something failed on this side, try again later\n")
        .into_response()
}
