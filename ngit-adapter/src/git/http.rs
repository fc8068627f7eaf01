//! The HTTP client: one GET for what a server can do, POSTs for all else.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use purgatory_sync::{CloneUrl, FetchErrorKind};
use reqwest::{
    Client, Response,
    header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, PRAGMA},
    redirect,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use url::{Host, Url};

use super::{
    AddressPolicy, Limits, Lookup,
    address_lookup::{AddressRefused, CheckedLookup},
    failure::Failure,
    http_answer::{Body, check_status, check_type, location},
    http_error,
    protocol::{Advertisement, NotSupported, Reading},
};

/// Speaks HTTP to strangers' servers.
#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    policy: AddressPolicy,
    limits: Limits,
}

/// A server that answered: where to send requests, and what it can do.
#[derive(Debug)]
pub(super) struct Remote {
    repository: Url,
    pub(super) can: Advertisement,
}

/// What went over the wire for one fetch. Shared, so that it is known also when the fetch is cut off.
#[derive(Debug, Default)]
pub(super) struct Tally {
    requests: AtomicU32,
    bytes: AtomicU64,
}

/// Some forges and the shields in front of them let only those in whose name begins like this.
const USER_AGENT: &str = concat!("git/2.0 (ngit-adapter ", env!("CARGO_PKG_VERSION"), ")");

/// A server may lead elsewhere on itself, from http to https or to another spelling, this often.
const MAX_REDIRECTS: u32 = 3;

const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const REQUEST: &str = "application/x-git-upload-pack-request";
const RESULT: &str = "application/x-git-upload-pack-result";

/// A server may refuse a request before it has read all of it, and then closes the connection, which the next request would
/// notice too late. After a body above this size a new connection is made.
const MAX_REUSED: usize = 8 << 10;

/// Capabilities are a few hundred bytes.
const MAX_ADVERTISEMENT: u64 = 64 << 10;

impl Http {
    /// A client without proxies, cookies, decompression or redirects of its own, which connects only to addresses
    /// that `policy` allows.
    pub(super) fn new(
        limits: Limits,
        policy: AddressPolicy,
        lookup: Arc<dyn Lookup>,
        more_roots: &[CertificateDer<'static>],
    ) -> Result<Self, Failure> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls(more_roots)?)
            .http1_only()
            .dns_resolver(Arc::new(CheckedLookup::new(lookup, policy)))
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(USER_AGENT)
            .connect_timeout(limits.connect_timeout)
            .pool_max_idle_per_host(2)
            .pool_idle_timeout(Duration::from_secs(30))
            .build()
            .map_err(Failure::local("the HTTP client cannot be set up"))?;
        Ok(Self { client, policy, limits })
    }

    /// Asks the server at `url` what it can do.
    pub(super) async fn discover(&self, url: &CloneUrl, tally: &Tally) -> Result<Remote, Failure> {
        let mut repository = url.url().clone();
        for _ in 0..=MAX_REDIRECTS {
            let discovery = discovery_url(&repository);
            let request = self.client.get(discovery.clone()).headers(headers(None));
            let response = self.send(&discovery, request, tally).await?;
            if response.status().is_redirection() {
                repository = location(&discovery, &response)?;
                continue;
            }
            check_status(&response)?;
            check_type(&response, ADVERTISEMENT)?;
            let body = self.body(response, MAX_ADVERTISEMENT, tally);
            return Ok(Remote { repository, can: read_advertisement(body).await? });
        }
        Err(Failure::unsupported("the server redirects in a circle"))
    }

    /// Sends one request to a server, for an answer of at most `most` bytes.
    pub(super) async fn post<'a>(
        &self,
        remote: &Remote,
        body: Vec<u8>,
        most: u64,
        tally: &'a Tally,
    ) -> Result<Body<'a>, Failure> {
        let url = with_path(&remote.repository, "git-upload-pack");
        let mut headers = headers(Some(REQUEST));
        if body.len() > MAX_REUSED {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let request = self.client.post(url.clone()).headers(headers).body(body);
        let response = self.send(&url, request, tally).await?;
        check_status(&response)?;
        check_type(&response, RESULT)?;
        Ok(self.body(response, most, tally))
    }

    async fn send(
        &self,
        url: &Url,
        request: reqwest::RequestBuilder,
        tally: &Tally,
    ) -> Result<Response, Failure> {
        self.check_literal(url)?;
        tally.requests.fetch_add(1, Ordering::Relaxed);
        let patience = self.limits.connect_timeout.saturating_add(self.limits.idle_timeout);
        let failure = match tokio::time::timeout(patience, request.send()).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => http_error::classify(error),
            Err(_) => Failure::new(FetchErrorKind::Timeout, "the server did not answer in time"),
        };
        if failure.nothing_was_sent() {
            tally.requests.fetch_sub(1, Ordering::Relaxed);
        }
        Err(failure)
    }

    /// The HTTP client looks up names only, so a host that is an address is checked here.
    fn check_literal(&self, url: &Url) -> Result<(), Failure> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            _ => return Ok(()),
        };
        if self.policy.allows(address) {
            return Ok(());
        }
        let refused = Failure::new(FetchErrorKind::Refused, "the host's address is refused");
        Err(refused.because(AddressRefused { address }))
    }

    fn body<'a>(&self, response: Response, most: u64, tally: &'a Tally) -> Body<'a> {
        Body::new(response, self.limits.idle_timeout, most, &tally.bytes)
    }
}

impl Tally {
    pub(super) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

async fn read_advertisement(mut body: Body<'_>) -> Result<Advertisement, Failure> {
    let mut reading = Reading::default();
    while let Some(line) = body.packet().await? {
        reading.line(line).map_err(not_supported)?;
    }
    reading.finish().map_err(not_supported)
}

fn not_supported(error: NotSupported) -> Failure {
    Failure::unsupported(error.to_string())
}

fn discovery_url(repository: &Url) -> Url {
    let mut url = with_path(repository, "info/refs");
    url.set_query(Some("service=git-upload-pack"));
    url
}

fn with_path(repository: &Url, path: &str) -> Url {
    let mut url = repository.clone();
    let base = url.path().strip_suffix('/').unwrap_or(url.path());
    let joined = format!("{base}/{path}");
    url.set_path(&joined);
    url
}

fn headers(content_type: Option<&'static str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("git-protocol", HeaderValue::from_static("version=2"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    match content_type {
        Some(sent) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(sent));
            headers.insert(ACCEPT, HeaderValue::from_static(RESULT));
        }
        None => {
            headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
            headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
        }
    }
    headers
}

/// TLS by rustls and ring, with the roots of the system and `more`. HTTP/1.1 only: a fetch is a few
/// requests after each other, and each thing that a server cannot say is one less that can go wrong.
pub(crate) fn tls(more: &[CertificateDer<'static>]) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "some root certificates of this system cannot be read");
    }
    roots.add_parsable_certificates(system.certs);
    for certificate in more {
        roots
            .add(certificate.clone())
            .map_err(Failure::local("an additional root certificate cannot be used"))?;
    }
    if roots.is_empty() {
        tracing::warn!("this system has no root certificates: no https server can be trusted");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Failure::local("TLS cannot be set up"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
