//! The routes of the one port.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Request, State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    SmartHttp, health, information, listener::Place, metrics, page, push, shared::Shared, websocket,
};
use crate::RepositoryId;

/// How many pushes are read at once.
const MAX_PUSHES: usize = 16;
/// How many status pages are made at once.
const MAX_PAGES: usize = 4;

/// What the routes have in common.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) shared: Arc<Shared>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
    /// The metrics as text, where somebody collects them.
    pub(super) render: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    pushes: Arc<Semaphore>,
    pages: Arc<Semaphore>,
}

impl Front {
    pub(super) fn new(
        shared: Arc<Shared>,
        stop: CancellationToken,
        tasks: TaskTracker,
        render: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    ) -> Self {
        let pushes = Arc::new(Semaphore::new(MAX_PUSHES));
        let pages = Arc::new(Semaphore::new(MAX_PAGES));
        Self { shared, stop, tasks, render, pushes, pages }
    }

    pub(super) fn into_router(self) -> Router {
        let root = self.shared.repositories().root().to_owned();
        // Only paths that `git` below has written come here: an owner's folder and a repository's in it.
        let fetch = SmartHttp::new(self.shared.fetcher().git().clone(), move |parts| match parts {
            [owner, name] if !owner.contains('/') && !name.contains('/') => {
                Some(root.join(owner).join(name))
            }
            _ => None,
        })
        .into_router()
        .layer(middleware::from_fn_with_state(self.clone(), git));
        Router::new()
            .route("/", get(root_page))
            .route("/metrics", get(metrics_text))
            .route("/healthz", get(healthz))
            .fallback_service(fetch)
            .layer(middleware::from_fn(for_any_origin))
            .with_state(self)
    }
}

/// Nostr for those who upgrade, a document for those who ask for it, a page for everybody else.
async fn root_page(
    State(front): State<Front>,
    place: Option<Extension<Place>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let asks = |name: HeaderName, value: &str| {
        let given = headers.get(name).and_then(|it| it.to_str().ok());
        given.is_some_and(|given| given.to_ascii_lowercase().contains(value))
    };
    if asks(header::UPGRADE, "websocket") {
        return match upgrade {
            Ok(upgrade) => front.talk(upgrade, place.map(|it| it.0)),
            Err(rejection) => rejection.into_response(),
        };
    }
    if asks(header::ACCEPT, "application/nostr+json") {
        let document = information::document(&front.shared).to_string();
        return ([(header::CONTENT_TYPE, "application/nostr+json")], document).into_response();
    }
    let Ok(_turn) = front.pages.try_acquire() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many look at once, try again\n")
            .into_response();
    };
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, Html(page::status(&front.shared).await)).into_response()
}

impl Front {
    fn talk(self, upgrade: WebSocketUpgrade, place: Option<Place>) -> Response {
        // Over our own limit a message is answered with a notice; far over it, it is not read at all.
        let most = 2 * self.shared.limits().message_bytes();
        let Self { shared, stop, tasks, .. } = self;
        upgrade.max_message_size(most).max_frame_size(most).on_upgrade(move |socket| {
            tasks.track_future(async move {
                let _place = place;
                websocket::serve(socket, shared, stop).await;
            })
        })
    }
}

async fn metrics_text(State(front): State<Front>) -> Response {
    metrics::held(front.shared.store().held_count());
    match &front.render {
        Some(render) => {
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render()).into_response()
        }
        None => (StatusCode::NOT_FOUND, "nobody collects metrics here\n").into_response(),
    }
}

async fn healthz(State(front): State<Front>) -> Response {
    let troubles = health::troubles(&front.shared).await;
    if troubles.is_empty() {
        return "ok\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, troubles.join("\n") + "\n").into_response()
}

/// What a git request is about.
struct GitRequest {
    repository: RepositoryId,
    service: &'static str,
    pushes: bool,
}

fn read(method: &Method, uri: &Uri) -> Option<GitRequest> {
    let path = uri.path();
    let asked = |service| {
        let query = uri.query().unwrap_or("");
        query.split('&').any(|part| part.strip_prefix("service=") == Some(service))
    };
    let ends = [
        ("/info/refs", asked("git-receive-pack"), Method::GET),
        ("/git-upload-pack", false, Method::POST),
        ("/git-receive-pack", true, Method::POST),
    ];
    let (service, pushes, path) = ends
        .into_iter()
        .filter(|(_, _, right)| right == method)
        .find_map(|(end, pushes, _)| Some((end, pushes, path.strip_suffix(end)?)))?;
    Some(GitRequest { repository: RepositoryId::from_url_path(path)?, service, pushes })
}

/// Sends pushes to where they are taken, and fetches on to git, if the repository is served.
async fn git(State(front): State<Front>, mut request: Request, next: Next) -> Response {
    let Some(call) = read(request.method(), request.uri()) else { return not_found() };
    metrics::git_request(if call.pushes { "push" } else { "fetch" });
    let shared = &front.shared;
    if call.pushes {
        if call.service == "/info/refs" {
            return push::advertise(shared, &call.repository).await;
        }
        let Ok(slot) = Arc::clone(&front.pushes).try_acquire_owned() else {
            return (StatusCode::SERVICE_UNAVAILABLE, "too many pushes at once\n").into_response();
        };
        return push::receive(Arc::clone(shared), call.repository, slot, request).await;
    }
    match shared.is_served(&call.repository).await {
        Ok(true) => {}
        Ok(false) => return not_found(),
        Err(error) => {
            tracing::warn!(%error, "the database could not be asked");
            return (StatusCode::INTERNAL_SERVER_ERROR, "try again later\n").into_response();
        }
    }
    let Some(uri) = inner_uri(shared, &call, request.uri()) else { return not_found() };
    *request.uri_mut() = uri;
    next.run(request).await
}

/// Where the repository is on disk, as a path of the git server behind this one.
fn inner_uri(shared: &Shared, call: &GitRequest, uri: &Uri) -> Option<Uri> {
    let path = shared.repositories().path(&call.repository);
    let mut parts = path.strip_prefix(shared.repositories().root()).ok()?.iter();
    let mut part =
        || Some(utf8_percent_encode(parts.next()?.to_str()?, NON_ALPHANUMERIC).to_string());
    let (owner, name) = (part()?, part()?);
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("/{owner}/{name}{}{query}", call.service).parse().ok()
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "there is no such repository\n").into_response()
}

/// Pages of any origin may ask: all that is here is public.
async fn for_any_origin(request: Request, next: Next) -> Response {
    let mut response = if request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    allow_any_origin(response.headers_mut());
    response
}

fn allow_any_origin(headers: &mut HeaderMap) {
    let allowed = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "Content-Type, Content-Encoding, Git-Protocol, Accept",
        ),
    ];
    for (name, value) in allowed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G11: whatever a path is made of, it leads to one repository by its owner and identifier, or to none.
    #[test]
    fn a_path_is_an_owner_and_an_identifier_or_nothing() {
        let npub = "npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d";
        let identifier = |path: &str| {
            let uri: Uri =
                format!("/{npub}{path}/info/refs?service=git-upload-pack").parse().ok()?;
            Some(read(&Method::GET, &uri)?.repository.identifier.as_str().to_owned())
        };
        assert_eq!(identifier("/a.git").as_deref(), Some("a"));
        assert_eq!(identifier("/a.git.git").as_deref(), Some("a.git"));
        assert_eq!(identifier("/..%2F..%2Fetc.git").as_deref(), Some("../../etc"));
        assert_eq!(identifier("/a%0Ab%3Ac.git").as_deref(), Some("a\nb:c"));
        assert_eq!(identifier("/.git").as_deref(), Some(""));
        for path in
            ["/a", "/a/b.git", "/../a.git/", "/%2e%2e/a.git", "/a.git/..", "/%ff.git", "", "/"]
        {
            assert_eq!(identifier(path), None, "{path}");
        }
    }
}
