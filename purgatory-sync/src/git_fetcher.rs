use std::{error::Error, fmt, time::Duration};

use async_trait::async_trait;

use crate::{CloneUrl, Identifier, Oid, Target};

/// The port to whatever brings objects here.
///
/// Git is what it was made for, but nothing in it is about git: objects are named by a hash, and a
/// URL may have them.
///
/// # What an implementation owes
///
/// - It does not limit how often a server is asked: the engine does. One call of
///   [`fetch`](GitFetcher::fetch) is one try of one URL, without retries of its own.
/// - It checks what comes before it counts: an object is here only with all that it reaches, and
///   what fails the checks leaves nothing behind.
/// - No method blocks the thread.
///
/// A method that panics ends that fetch as failed; the engine goes on.
#[async_trait]
pub trait GitFetcher: Send + Sync {
    /// Which of `oids` are not here, for any repository of `id`. Local: no request is made.
    ///
    /// The answer holds only OIDs that were asked for. An object is here if everything it reaches
    /// is here too.
    ///
    /// # Errors
    ///
    /// [`FetchError`] with [`FetchErrorKind::Local`] if the objects cannot be looked at. The pass
    /// ends and is retried after a backoff.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe: it only reads.
    async fn missing(&self, id: &Identifier, oids: &[Oid]) -> Result<Vec<Oid>, FetchError>;

    /// One try to bring `request.oids` here from `request.url`.
    ///
    /// An object that the server does not have is data, not an error: it is just not in
    /// [`Fetched::received`]. Partial success is success.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if the try failed as a whole. What it brought here before that may stay, if it was checked.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe: when the future is dropped (a deadline, a shutdown) the work ends with it, and
    /// leaves nothing behind that is half.
    async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError>;
}

/// One try: which objects, from where, for whom.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FetchRequest<'a> {
    /// The identifier that the objects belong to.
    pub identifier: &'a Identifier,
    /// The server to ask.
    pub url: &'a CloneUrl,
    /// The objects to ask for: none twice, none that is here, at least one.
    pub oids: &'a [Oid],
    /// Where the data belongs: the targets of the wants that `oids` come from, none twice.
    pub targets: &'a [Target],
}

impl<'a> FetchRequest<'a> {
    /// A request. The engine makes them; tests of a fetcher do too.
    pub fn new(
        identifier: &'a Identifier,
        url: &'a CloneUrl,
        oids: &'a [Oid],
        targets: &'a [Target],
    ) -> Self {
        Self { identifier, url, oids, targets }
    }
}

/// What a try brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Which of the requested objects are here now, checked.
    pub received: Vec<Oid>,
    /// Which of the requested objects the fetcher wants to be asked for again, from the same URL, as a request
    /// of its own. Must be smaller than what was asked for. Empty where the server could be probed.
    pub ask_again: Vec<Oid>,
    /// How many requests were made on the wire.
    pub requests: u32,
    /// How many bytes came.
    pub bytes: u64,
}

/// Why a try failed as a whole.
#[derive(Debug)]
pub struct FetchError {
    kind: FetchErrorKind,
    retry_after: Option<Duration>,
    requests: u32,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The class of a failure. It comes from structure (an HTTP status, a stage, an exit status), never from
/// words that a stranger can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The connection was refused, reset or cut, or a name look-up had no answer.
    Network,
    /// The host name does not exist.
    Dns,
    /// TLS could not be set up: a bad certificate, no common version.
    Tls,
    /// A time limit was reached.
    Timeout,
    /// The server wants a login, or forbids.
    Auth,
    /// There is no such repository.
    NotFound,
    /// The server asked to come back later.
    RateLimited,
    /// The server failed.
    ServerError,
    /// A limit on size, memory or CPU was reached.
    TooLarge,
    /// What came was damaged, incomplete or failed a check.
    Corrupt,
    /// The server has only part of the history.
    Shallow,
    /// The server speaks no protocol that is supported here.
    Unsupported,
    /// Our own policy refuses the address or the URL. Nothing was sent.
    Refused,
    /// Something on this side failed: disk full, permissions, a missing program.
    Local,
    /// The fetcher panicked.
    Panicked,
}

impl FetchErrorKind {
    /// A short name for logs and metrics, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Auth => "auth",
            Self::NotFound => "not_found",
            Self::RateLimited => "rate_limited",
            Self::ServerError => "server_error",
            Self::TooLarge => "too_large",
            Self::Corrupt => "corrupt",
            Self::Shallow => "shallow",
            Self::Unsupported => "unsupported",
            Self::Refused => "refused",
            Self::Local => "local",
            Self::Panicked => "panicked",
        }
    }
}

impl FetchError {
    /// An error of this class.
    pub fn new(kind: FetchErrorKind) -> Self {
        Self { kind, retry_after: None, requests: 0, source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with the time after which the server wants to be asked again.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// The same error with the number of requests that were made on the wire.
    #[must_use]
    pub fn with_requests(mut self, requests: u32) -> Self {
        self.requests = requests;
        self
    }

    /// The class of the failure.
    pub fn kind(&self) -> FetchErrorKind {
        self.kind
    }

    /// When the server wants to be asked again, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// How many requests were made on the wire before it failed.
    pub fn requests(&self) -> u32 {
        self.requests
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            FetchErrorKind::Network => "the connection failed",
            FetchErrorKind::Dns => "the host name does not exist",
            FetchErrorKind::Tls => "TLS could not be set up",
            FetchErrorKind::Timeout => "a time limit was reached",
            FetchErrorKind::Auth => "the server wants a login",
            FetchErrorKind::NotFound => "there is no such repository",
            FetchErrorKind::RateLimited => "the server asked to come back later",
            FetchErrorKind::ServerError => "the server failed",
            FetchErrorKind::TooLarge => "a limit on size, memory or CPU was reached",
            FetchErrorKind::Corrupt => "what came failed a check",
            FetchErrorKind::Shallow => "the server has only part of the history",
            FetchErrorKind::Unsupported => "the server speaks no supported protocol",
            FetchErrorKind::Refused => "our policy refuses the address",
            FetchErrorKind::Local => "something on this side failed",
            FetchErrorKind::Panicked => "the fetcher panicked",
        })
    }
}

impl Error for FetchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
