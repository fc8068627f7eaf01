use std::{borrow::Cow, fmt, str::FromStr};

use url::Url;

use crate::{
    Domain,
    address::{self, Address},
};

/// Where a request goes: scheme, host and port.
///
/// It is read from a URL or from `user@host:path`, as git and ssh write it. Two spellings of one
/// server give the same endpoint; user, path, query and fragment do not count.
///
/// ```
/// use domain_throttle::Endpoint;
///
/// let one: Endpoint = "HTTPS://alice@Example.ORG.:443/a?b#c".parse()?;
/// let two: Endpoint = "https://example.org".parse()?;
/// let ssh: Endpoint = "git@example.org:alice/repository".parse()?;
/// assert_eq!(one, two);
/// assert_eq!(ssh.to_string(), "ssh://example.org:22");
/// assert_eq!(ssh.domain(), two.domain());
/// # Ok::<(), domain_throttle::EndpointError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    scheme: Cow<'static, str>,
    domain: Domain,
    port: Option<u16>,
}

impl Endpoint {
    /// The endpoint of a parsed URL.
    ///
    /// # Errors
    ///
    /// [`EndpointError`] if the URL names no server.
    pub fn from_url(url: &Url) -> Result<Self, EndpointError> {
        Address::from_url(url).map(Self::from).map_err(|why| EndpointError::new(url.as_str(), why))
    }

    /// The domain whose limits count for this endpoint.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The scheme, in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The port, the scheme's own where none was given.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl From<Address> for Endpoint {
    fn from(address: Address) -> Self {
        let Address { scheme, host, port } = address;
        Self { scheme, domain: Domain::from_canonical(&host), port }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        Address::parse(input).map(Self::from).map_err(|why| EndpointError::new(input, why))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.domain.as_str().contains(':') {
            write!(f, "{}://[{}]", self.scheme, self.domain)?;
        } else {
            write!(f, "{}://{}", self.scheme, self.domain)?;
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

/// Why a text is no endpoint: the text, cut and without its user, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{input:?} names no server: {why}")]
pub struct EndpointError {
    input: String,
    why: &'static str,
}

impl EndpointError {
    fn new(input: &str, why: &'static str) -> Self {
        Self { input: address::for_errors(input), why }
    }
}
