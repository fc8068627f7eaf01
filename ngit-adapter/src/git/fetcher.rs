//! The port to strangers' git servers.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use purgatory_sync::{
    CloneUrl, FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher, Identifier, Oid,
};
use tokio_util::task::TaskTracker;

use super::{
    Git, Limits, Repositories, SmartHttpFetcherBuilder,
    attempt::Attempt,
    failure::Failure,
    http::{Http, Tally},
};

/// Fetches named objects from strangers' git servers by smart HTTP, protocol v2. Cheap to clone.
///
/// # What is sent
///
/// One `GET <url>/info/refs?service=git-upload-pack`, then one `POST <url>/git-upload-pack` that asks for all objects with their
/// whole history, but for what the refs of our repository reach. If the server lacks one of them it refuses all: then one more POST
/// asks which ones it has, and a last one asks for those. So a fetch is 2 requests, 4 at most, 3 if nothing is
/// there; a redirect on the same host adds one, three at most. From a server that cannot be asked what it has (git before
/// 2.32), those objects come that its refs name, and the rest is [`Fetched::ask_again`].
///
/// | sent | why |
/// |---|---|
/// | `Git-Protocol: version=2` | any object can be asked for by its name, and refs are not listed unasked |
/// | `User-Agent: git/2.0 (ngit-adapter <version>)` | some servers answer nobody else than git |
/// | `Accept-Encoding: identity` | nothing is unpacked but the pack, under limits; compressed answers are refused |
/// | no cookies, no login, no referer, no `.netrc`, no proxy | nothing of this machine is told, nobody else is asked |
/// | up to 384 `have` lines | tips of our refs and commits behind them, so that only what is new is sent |
/// | `thin-pack`, `ofs-delta`, `no-progress`, `done` | a smaller pack, no text for people, one round |
/// | HTTP/1.1, by TLS 1.2 or 1.3 for https | a few requests after each other need no more |
///
/// # Where it connects
///
/// To addresses that an [`AddressPolicy`](super::AddressPolicy) allows: by default to none in a private network. Names are looked up
/// by a [`Lookup`](super::Lookup) for each connection, all addresses of the answer are checked, and the connection is made to one of
/// that answer. Addresses in URLs are checked as the `url` crate reads them, which is what is connected to. Redirects are followed on the
/// same host only, with the same scheme and port, or from http to https on the standard ports.
///
/// # What is run
///
/// `git index-pack --stdin --fix-thin --strict` reads the pack as it comes, in a quarantine folder beside the repositories;
/// `git rev-list --objects` then checks that nothing is missing behind what was asked for. Only then the pack is linked into the
/// repository, its index last. Both are run as [`Git::command`] says: without the user's or the system's configuration, hooks and
/// variables. No URL, object id or name from outside is among their arguments: object ids go to standard input, in hex.
///
/// | setting | why |
/// |---|---|
/// | `--strict`, with `badTimezone`, `missingSpaceBeforeEmail` and `zeroPaddedFilemode` ignored | hostile trees and commits are refused; these three stand in old and honest history |
/// | `--max-input-size`, and the same count of our own | no endless pack |
/// | `GIT_ALLOC_LIMIT`, `core.bigFileThreshold` out of reach | no object above the limit, streamed or not |
/// | limits on address space, processor time, file size and core dumps, set before the first byte | delta bombs end the child, not us |
/// | `--threads=1`, `core.packedGitWindowSize`, `core.packedGitLimit`, `core.deltaBaseCacheLimit` | memory that the limit can be set for |
/// | a process group of its own, killed when the fetch is dropped | nothing works on for nobody |
/// | the quarantine's lock as standard output | as long as the child lives, also without us, nobody sweeps its folder |
///
/// # Classes of failure
///
/// They come from statuses, exit statuses, stages and types of errors. A server's text is shown in the error's cause,
/// escaped and cut, and decides nothing. `Corrupt` and `TooLarge` of the git that is run are told apart by its last line, which git itself writes
/// as it dies and which holds no text of a pack.
#[derive(Clone)]
pub struct SmartHttpFetcher {
    shared: Arc<Shared>,
}

/// What the fetches of one fetcher share.
pub(super) struct Shared {
    pub(super) repositories: Repositories,
    pub(super) git: Git,
    pub(super) http: Http,
    pub(super) limits: Limits,
    pub(super) progress: Option<ProgressCallback>,
    pub(super) removals: TaskTracker,
}

impl From<Shared> for SmartHttpFetcher {
    fn from(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }
}

pub(super) type ProgressCallback = Arc<dyn Fn(&FetchProgress<'_>) + Send + Sync>;

/// How far one fetch is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FetchProgress<'a> {
    /// What the fetch is for.
    pub identifier: &'a Identifier,
    /// The server that is asked.
    pub url: &'a CloneUrl,
    /// How many bytes of the pack came.
    pub bytes: u64,
    /// How many objects the pack has, by its own words. `None` as long as it has not said so.
    pub objects: Option<u32>,
}

impl SmartHttpFetcher {
    /// A fetcher for the repositories of this folder, with settings to be made.
    pub fn builder(repositories: Repositories) -> SmartHttpFetcherBuilder {
        SmartHttpFetcherBuilder::new(repositories)
    }

    /// The repositories that it fetches into.
    pub fn repositories(&self) -> &Repositories {
        &self.shared.repositories
    }

    /// The git that it runs.
    pub fn git(&self) -> &Git {
        &self.shared.git
    }

    /// Waits until what cancelled fetches left is removed. A fetch that was not cancelled leaves nothing.
    ///
    /// For the end of a program: what is not removed then is removed by the next one. It also waits for fetches that are on.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn cleaned_up(&self) {
        // The tracker is closed only for the wait: each removal that begins until then is waited for.
        self.shared.removals.close();
        self.shared.removals.wait().await;
        self.shared.removals.reopen();
    }
}

#[async_trait]
impl GitFetcher for SmartHttpFetcher {
    async fn missing(&self, id: &Identifier, oids: &[Oid]) -> Result<Vec<Oid>, FetchError> {
        let missing = self.shared.repositories.missing(id, oids).await;
        missing.map_err(|error| FetchError::new(FetchErrorKind::Local).with_source(error))
    }

    async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        let (tally, removals) = (Tally::default(), TaskTracker::new());
        let attempt =
            Attempt { shared: &self.shared, request: &request, tally: &tally, removals: &removals };
        let limit = self.shared.limits.overall_timeout;
        let result = match tokio::time::timeout(limit, attempt.run()).await {
            Ok(result) => result,
            Err(_) => {
                Err(Failure::new(FetchErrorKind::Timeout, "the fetch took longer than it may"))
            }
        };
        // However it ended, nothing of it is left when the caller hears of it.
        removals.close();
        removals.wait().await;
        result.map_err(|failure| failure.into_error(tally.requests()))
    }
}

impl fmt::Debug for SmartHttpFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmartHttpFetcher")
            .field("repositories", &self.shared.repositories)
            .field("git", &self.shared.git)
            .field("limits", &self.shared.limits)
            .finish_non_exhaustive()
    }
}
