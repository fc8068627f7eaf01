//! The port to strangers' git servers.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use purgatory_sync::{
    CloneUrl, FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher, Identifier, Oid,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio_util::task::TaskTracker;

use super::{
    AddressPolicy, Git, GitError, Limits, Lookup, Repositories, SystemLookup,
    attempt::Attempt,
    failure::Failure,
    http::{Http, Tally},
    quarantine,
};

/// Fetches named objects from strangers' git servers by smart HTTP, protocol v2. Cheap to clone.
///
/// # What is sent
///
/// One `GET <url>/info/refs?service=git-upload-pack`, then one `POST <url>/git-upload-pack` that asks for all
/// objects with their whole history, but for what the refs of our repository reach. If the server lacks one of them it refuses all: then
/// one more POST asks which ones it has, and a last one asks for those. So a fetch is 2 requests, 4 at most, 3 if
/// nothing is there; a redirect on the same host adds one, three at most. From a server that cannot be asked what it has
/// (git before 2.32), those objects come that its refs name, and the rest is [`Fetched::ask_again`].
///
/// # What is run
///
/// `git index-pack` reads the pack as it comes, into a folder of its own beside the repositories, and checks it strictly;
/// `git rev-list` checks that nothing is missing behind what was asked for. Only then the pack is linked into the
/// repository. Both are run as [`Git::command`] says, under the [`Limits`].
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

type ProgressCallback = Arc<dyn Fn(&FetchProgress<'_>) + Send + Sync>;

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
        SmartHttpFetcherBuilder {
            repositories,
            git: None,
            policy: AddressPolicy::public_only(),
            lookup: Arc::new(SystemLookup),
            limits: Limits::default(),
            roots: Vec::new(),
            progress: None,
        }
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

/// The settings of a [`SmartHttpFetcher`].
#[must_use = "a builder does nothing until it is built"]
pub struct SmartHttpFetcherBuilder {
    repositories: Repositories,
    git: Option<Git>,
    policy: AddressPolicy,
    lookup: Arc<dyn Lookup>,
    limits: Limits,
    roots: Vec<CertificateDer<'static>>,
    progress: Option<ProgressCallback>,
}

impl SmartHttpFetcherBuilder {
    /// Another git than the first one on `PATH`.
    pub fn git(self, git: Git) -> Self {
        Self { git: Some(git), ..self }
    }

    /// Whether servers in private networks, on this machine included, may be asked. Default: no.
    pub fn allow_private_networks(self, allow: bool) -> Self {
        let policy = if allow { AddressPolicy::any() } else { AddressPolicy::public_only() };
        Self { policy, ..self }
    }

    /// Who turns host names into addresses. Default: the system. Whatever it answers is checked.
    pub fn lookup(self, lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, ..self }
    }

    /// All limits at once.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// How long a connection may take to be there. Default 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.limits.connect_timeout = timeout;
        self
    }

    /// How long a server may be silent. Default 30 s.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.limits.idle_timeout = timeout;
        self
    }

    /// How long a fetch may take in all. Default 10 min.
    pub fn overall_timeout(mut self, timeout: Duration) -> Self {
        self.limits.overall_timeout = timeout;
        self
    }

    /// The most bytes of a pack. Default 2 GiB.
    pub fn pack_limit(mut self, bytes: u64) -> Self {
        self.limits.pack_bytes = bytes;
        self
    }

    /// The most bytes of an object, unpacked. Default 512 MiB.
    pub fn object_limit(mut self, bytes: u64) -> Self {
        self.limits.object_bytes = bytes;
        self
    }

    /// The most bytes of address space of a git that is run. Default 1,000,000 KiB.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.limits.memory_bytes = bytes;
        self
    }

    /// The most processor time of a git that is run, in whole seconds. Default 5 min.
    pub fn cpu_limit(mut self, time: Duration) -> Self {
        self.limits.cpu = time;
        self
    }

    /// Who is told how far a fetch is: at the end of its pack, and before that every 256 KiB. It is called between reads from the
    /// network, so it must not block.
    pub fn on_progress(
        self,
        callback: impl Fn(&FetchProgress<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self { progress: Some(Arc::new(callback)), ..self }
    }

    /// Trusts these root certificates, in PEM, beside those of the system.
    ///
    /// # Errors
    ///
    /// [`StartError::Certificate`] if there is none in it, or one cannot be read.
    pub fn add_root_certificates(mut self, pem: &[u8]) -> Result<Self, StartError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        match read {
            Ok(certificates) if !certificates.is_empty() => self.roots.extend(certificates),
            _ => return Err(StartError::Certificate),
        }
        Ok(self)
    }

    /// The fetcher.
    ///
    /// # Errors
    ///
    /// [`StartError`] if git is missing or too old, or TLS or the folder of repositories cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn build(self) -> Result<SmartHttpFetcher, StartError> {
        let git = match self.git {
            Some(git) => git,
            None => Git::find().await?,
        };
        let http = Http::new(self.limits, self.policy, self.lookup, &self.roots)
            .map_err(|failure| StartError::Setup(Box::new(failure)))?;
        let root = self.repositories.root().to_owned();
        let swept = tokio::task::spawn_blocking(move || quarantine::sweep(&root)).await;
        match swept {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(StartError::Setup(error.into())),
            Err(error) => return Err(StartError::Setup(error.into())),
        }
        let shared = Shared {
            repositories: self.repositories,
            git,
            http,
            limits: self.limits,
            progress: self.progress,
            removals: TaskTracker::new(),
        };
        Ok(SmartHttpFetcher { shared: Arc::new(shared) })
    }
}

impl fmt::Debug for SmartHttpFetcherBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmartHttpFetcherBuilder")
            .field("repositories", &self.repositories)
            .field("git", &self.git)
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Why a fetcher cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Git is missing, too old, or cannot be run.
    #[error("git cannot be used")]
    Git(#[from] GitError),
    /// An additional root certificate cannot be read.
    #[error("there is no certificate in PEM, or one that cannot be read")]
    Certificate,
    /// TLS or the folder of repositories cannot be used.
    #[error("the fetcher cannot be set up")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
}
