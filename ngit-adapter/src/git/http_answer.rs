//! What a server answers: its status, where it leads, and its body, never more of it than was agreed.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use gix_packetline::PacketLineRef;
use purgatory_sync::FetchErrorKind as Kind;
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderName, LOCATION, RETRY_AFTER},
};
use url::Url;

use super::{
    failure::{Failure, quoted},
    http_error,
    protocol::Packets,
};

/// The body of an answer, as packet lines.
#[derive(Debug)]
pub(super) struct Body<'a> {
    response: Response,
    idle: Duration,
    // How many more bytes may come.
    left: u64,
    bytes: &'a AtomicU64,
    packets: Packets,
}

/// How long the end of an answer may take once all of it that matters is here.
const SOON: Duration = Duration::from_millis(200);

/// No server means to be left alone for longer than this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);

impl<'a> Body<'a> {
    pub(super) fn new(response: Response, idle: Duration, most: u64, bytes: &'a AtomicU64) -> Self {
        Self { response, idle, left: most, bytes, packets: Packets::default() }
    }

    /// The next packet line. `None` at the end, if no part of a line is left over.
    pub(super) async fn packet(&mut self) -> Result<Option<PacketLineRef<'_>>, Failure> {
        while !self.packets.has_next().map_err(not_packets)? {
            if !self.receive().await? {
                return match self.packets.is_empty() {
                    true => Ok(None),
                    false => Err(Failure::corrupt("the answer ends within a packet line")),
                };
            }
        }
        self.packets.next().map_err(not_packets)
    }

    /// Reads what is left, so that the connection can be used again. A server that does not end its answer
    /// soon loses the connection, and nothing else: what was wanted of it is here.
    pub(super) async fn finish(mut self) {
        let _ = tokio::time::timeout(SOON, async {
            while let Ok(true) = self.receive().await {
                self.packets = Packets::default();
            }
        })
        .await;
    }

    /// Waits for more bytes. False at the end.
    async fn receive(&mut self) -> Result<bool, Failure> {
        let chunk = tokio::time::timeout(self.idle, self.response.chunk())
            .await
            .map_err(|_| Failure::new(Kind::Timeout, "the server fell silent"))?
            .map_err(http_error::classify)?;
        let Some(chunk) = chunk else { return Ok(false) };
        let length = chunk.len() as u64;
        self.bytes.fetch_add(length, Ordering::Relaxed);
        self.left = self
            .left
            .checked_sub(length)
            .ok_or_else(|| Failure::too_large("the server's answer is too long"))?;
        self.packets.push(&chunk);
        Ok(true)
    }
}

fn not_packets(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::corrupt("the answer is damaged").because(error)
}

/// Whether the status says that the answer is there.
pub(super) fn check_status(response: &Response) -> Result<(), Failure> {
    let status = response.status();
    let kind = match status {
        StatusCode::OK => return Ok(()),
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::PROXY_AUTHENTICATION_REQUIRED
        | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => Kind::Auth,
        StatusCode::NOT_FOUND | StatusCode::GONE => Kind::NotFound,
        StatusCode::TOO_MANY_REQUESTS => Kind::RateLimited,
        StatusCode::REQUEST_TIMEOUT => Kind::Timeout,
        StatusCode::PAYLOAD_TOO_LARGE => Kind::TooLarge,
        status if status.is_server_error() => Kind::ServerError,
        _ => Kind::Unsupported,
    };
    let failure = Failure::new(kind, format!("the server answered {status}"));
    Err(failure.retry_after(retry_after(response)))
}

/// Whether it is what was asked for. Anything else is no smart HTTP server of git: a page, or plain files.
pub(super) fn check_type(response: &Response, wanted: &str) -> Result<(), Failure> {
    if let Some(encoding) = response.headers().get(CONTENT_ENCODING)
        && encoding != "identity"
    {
        return Err(Failure::unsupported(
            "the server compresses its answer, which was not asked for",
        ));
    }
    let sent = response.headers().get(CONTENT_TYPE).map(|sent| sent.as_bytes()).unwrap_or_default();
    let plain = sent.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if plain.eq_ignore_ascii_case(wanted.as_bytes()) {
        return Ok(());
    }
    let what = format!("this is no smart HTTP server of git: it sends {}", quoted(sent));
    Err(Failure::unsupported(what))
}

/// Where a redirected look at `from` leads: to a repository on the same host, or nowhere.
pub(super) fn location(from: &Url, response: &Response) -> Result<Url, Failure> {
    let to = text(response, LOCATION)
        .and_then(|to| from.join(to).ok())
        .ok_or_else(|| Failure::unsupported("the server redirects without saying where to"))?;
    let same_server = from.host() == to.host()
        && to.username().is_empty()
        && to.password().is_none()
        && same_or_safer(from, &to);
    if !same_server {
        return Err(Failure::new(Kind::Refused, "the server redirects to another server"));
    }
    let repository = to
        .path()
        .strip_suffix("/info/refs")
        .filter(|_| to.query() == Some("service=git-upload-pack"))
        .ok_or_else(|| Failure::unsupported("the server redirects to something else than git"))?;
    let mut url = to.clone();
    url.set_path(repository);
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// The same port with the same scheme, or from http to https on the ports that are meant for them.
fn same_or_safer(from: &Url, to: &Url) -> bool {
    let ports = (from.port_or_known_default(), to.port_or_known_default());
    match (from.scheme(), to.scheme()) {
        ("http", "https") => ports == (Some(80), Some(443)),
        (a, b) => a == b && ports.0 == ports.1,
    }
}

/// When the server wants to be asked again: seconds, or a date, which counts from the server's own.
fn retry_after(response: &Response) -> Option<Duration> {
    let asked = text(response, RETRY_AFTER)?.trim();
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let now = text(response, DATE)
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(wall_clock);
    Some(until.duration_since(now).unwrap_or_default().min(MAX_RETRY_AFTER))
}

#[expect(clippy::disallowed_methods, reason = "a date from a server without a clock of its own")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

fn text(response: &Response, name: HeaderName) -> Option<&str> {
    response.headers().get(name)?.to_str().ok()
}
