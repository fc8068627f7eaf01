//! Git over smart HTTP, read only.

mod call;
mod feed;
mod request_log;
mod upload_pack;

use std::{
    fmt,
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::git::Git;

pub use request_log::{RequestEntry, RequestKind, RequestLog};

use call::{Call, NOT_FOUND, Refusal, Service};
use feed::{FeedError, feed};
use request_log::InFlight;
use upload_pack::{Chunk, UploadPack};

/// A read-only git server for an axum application: clone and fetch, nothing else.
///
/// It answers `GET /<repository>/info/refs?service=git-upload-pack` and
/// `POST /<repository>/git-upload-pack` by running `git upload-pack`, with all protocol versions that git has.
/// Requests and answers are streamed, in both directions at once. When the client goes, or at the deadline,
/// every process that worked for it is ended.
///
/// ```no_run
/// # async fn serve() -> std::io::Result<()> {
/// use ngit_adapter::{git::Git, relay::SmartHttp};
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// let git = Git::find().await.map_err(std::io::Error::other)?;
/// axum::serve(listener, SmartHttp::folder(git, "/srv/git").into_router()).await
/// # }
/// ```
pub struct SmartHttp {
    locate: Box<Locate>,
    log: RequestLog,
    limits: SmartHttpLimits,
    git: Git,
}

type Locate = dyn Fn(&[String]) -> Option<PathBuf> + Send + Sync;

/// What one [`SmartHttp`] gives to its clients. Over a limit the answer is an error, not a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmartHttpLimits {
    /// How many requests may be on at once. Over it: 503. Default 64.
    pub at_once: NonZeroU32,
    /// The most bytes of a request's body, after it was inflated. Over it: 413. Default 16 MiB.
    pub body_bytes: u64,
    /// How long one request may take. After it the answer is cut off. Default 10 min.
    pub deadline: Duration,
}

impl Default for SmartHttpLimits {
    fn default() -> Self {
        Self {
            at_once: NonZeroU32::MIN.saturating_add(63),
            body_bytes: 16 << 20,
            deadline: Duration::from_secs(600),
        }
    }
}

impl SmartHttp {
    /// Serves the repository that `locate` finds for a path.
    ///
    /// It is handed the parts of the URL's path before `/info/refs` or `/git-upload-pack`, decoded. A part is
    /// never empty, `.` or `..`, and has no NUL, but may have a slash that was written as `%2F`: a part is a value,
    /// see [`safe_path`] for turning parts into a path. `locate` runs on an async worker and must not block.
    pub fn new(
        git: Git,
        locate: impl Fn(&[String]) -> Option<PathBuf> + Send + Sync + 'static,
    ) -> Self {
        Self {
            locate: Box::new(locate),
            log: RequestLog::default(),
            limits: SmartHttpLimits::default(),
            git,
        }
    }

    /// Serves every repository below `root`, under its path below it.
    pub fn folder(git: Git, root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self::new(git, move |parts| safe_path(&root, parts))
    }

    /// Counts the requests in `log`.
    #[must_use]
    pub fn with_log(self, log: RequestLog) -> Self {
        Self { log, ..self }
    }

    /// Other limits than the default ones.
    #[must_use]
    pub fn with_limits(self, limits: SmartHttpLimits) -> Self {
        Self { limits, ..self }
    }

    /// The routes. They answer every path: nest or merge them where git is to be served.
    pub fn into_router(self) -> Router {
        let permits = usize::try_from(self.limits.at_once.get()).unwrap_or(usize::MAX);
        let slots = Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Router::new().fallback(handle).with_state(Arc::new(Server { settings: self, slots }))
    }
}

impl fmt::Debug for SmartHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmartHttp").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The path below `root` that these parts name, if each of them is a plain file name that is not hidden.
pub fn safe_path(root: &Path, parts: &[String]) -> Option<PathBuf> {
    let plain = |part: &String| {
        !part.is_empty() && !part.starts_with('.') && !part.contains(['/', '\\', '\0'])
    };
    (!parts.is_empty() && parts.iter().all(plain)).then(|| {
        let mut path = root.to_path_buf();
        path.extend(parts);
        path
    })
}

struct Server {
    settings: SmartHttp,
    slots: Arc<Semaphore>,
}

async fn handle(State(server): State<Arc<Server>>, request: Request) -> Response {
    let in_flight = server.settings.log.begin(request.uri().path());
    if call::asks_for_advertisement(request.uri().path()) {
        in_flight.set_kind(RequestKind::Advertisement);
    }
    match server.answer(request, in_flight).await {
        Ok(response) => response,
        Err((status, why)) => {
            (status, [(header::CACHE_CONTROL, "no-cache")], format!("{why}\n")).into_response()
        }
    }
}

impl Server {
    async fn answer(&self, request: Request, in_flight: InFlight) -> Result<Response, Refusal> {
        let call = self.settings.understand(request.method(), request.uri(), request.headers())?;
        let slot = Arc::clone(&self.slots)
            .try_acquire_owned()
            .map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "too many requests at once"))?;
        if !tokio::fs::try_exists(call.repository.join("HEAD")).await.unwrap_or(false) {
            return Err(NOT_FOUND);
        }

        let settings = &self.settings;
        let mut upload_pack = UploadPack::spawn(
            &settings.git,
            &call.repository,
            call.protocol,
            call.service == Service::Advertise,
            settings.limits.deadline,
        )
        .map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "git could not be started"))?;
        if call.service == Service::UploadPack {
            let stdin = upload_pack.take_stdin();
            let in_flight = in_flight.clone();
            upload_pack.feed_with(feed(
                request.into_body(),
                call.gzip,
                settings.limits.body_bytes,
                stdin,
                move |kind| in_flight.set_kind(kind),
            ));
        }
        respond(call, upload_pack, in_flight, slot).await
    }
}

/// Waits for the first bytes, so that a bad request still gets its status, then streams the rest.
async fn respond(
    call: Call,
    mut upload_pack: UploadPack,
    in_flight: InFlight,
    slot: OwnedSemaphorePermit,
) -> Result<Response, Refusal> {
    let first = upload_pack.next_chunk().await.map_err(|error| match error {
        Chunk::Feed(FeedError::TooLarge) => {
            (StatusCode::PAYLOAD_TOO_LARGE, "the request's body is too large")
        }
        Chunk::Feed(FeedError::NotGzip) => (StatusCode::BAD_REQUEST, "the body is not valid gzip"),
        Chunk::Feed(_) => (StatusCode::BAD_REQUEST, "the request's body could not be read"),
        Chunk::Deadline => (StatusCode::GATEWAY_TIMEOUT, "the request took too long"),
        Chunk::Read(_) => (StatusCode::INTERNAL_SERVER_ERROR, "git could not be read"),
    })?;

    let (kind, head) = match call.service {
        Service::Advertise => (
            "application/x-git-upload-pack-advertisement",
            // Protocol v2 has no service line.
            if call.protocol == Some("version=2") {
                ""
            } else {
                "001e# service=git-upload-pack\n0000"
            },
        ),
        Service::UploadPack => ("application/x-git-upload-pack-result", ""),
    };
    let going = first.is_some().then_some((upload_pack, in_flight, slot));
    let start = [Bytes::from_static(head.as_bytes()), first.unwrap_or_default()];
    let start = stream::iter(start.into_iter().filter(|bytes| !bytes.is_empty()).map(Ok));
    let rest = stream::unfold(going, |state| async move {
        let (mut upload_pack, in_flight, slot) = state?;
        match upload_pack.next_chunk().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some((upload_pack, in_flight, slot)))),
            Ok(None) => None,
            // An error cuts the connection: an answer that is half must not look whole.
            Err(error) => Some((Err(error), None)),
        }
    });
    let body = Body::from_stream(stream::StreamExt::chain(start, rest));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, max-age=0, must-revalidate"),
    );
    Ok(response)
}
