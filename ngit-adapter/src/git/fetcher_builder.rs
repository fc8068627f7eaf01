//! The settings of a fetcher, and its start.

use std::{fmt, sync::Arc, time::Duration};

use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio_util::task::TaskTracker;

use super::{
    AddressPolicy, FetchProgress, Git, GitError, Limits, Lookup, Repositories, SmartHttpFetcher,
    SystemLookup,
    fetcher::{ProgressCallback, Shared},
    http::Http,
    quarantine,
};

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
    pub(super) fn new(repositories: Repositories) -> Self {
        Self {
            repositories,
            git: None,
            policy: AddressPolicy::public_only(),
            lookup: Arc::new(SystemLookup),
            limits: Limits::default(),
            roots: Vec::new(),
            progress: None,
        }
    }

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
        Ok(shared.into())
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
