use std::{fmt, str::FromStr, sync::Arc};

use url::{Host, Url};

use crate::Domain;

/// Where a request goes: scheme, host and port.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    scheme: Arc<str>,
    domain: Domain,
    port: Option<u16>,
}

impl Endpoint {
    /// The endpoint of a parsed URL.
    ///
    /// # Errors
    ///
    /// [`EndpointError`] if the URL has no host.
    pub fn from_url(url: &Url) -> Result<Self, EndpointError> {
        let host = match url.host() {
            Some(Host::Domain(name)) => name.trim_end_matches('.').to_ascii_lowercase(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => match address.to_ipv4_mapped() {
                Some(mapped) => mapped.to_string(),
                None => address.to_string(),
            },
            None => String::new(),
        };
        if host.is_empty() {
            return Err(EndpointError { input: url.to_string(), why: "it has no host" });
        }
        Ok(Self {
            scheme: Arc::from(url.scheme()),
            domain: Domain::from_canonical(&host),
            port: url.port_or_known_default(),
        })
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

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(input).map_err(|_| EndpointError {
            input: input.to_owned(),
            why: "it is not an absolute URL",
        })?;
        Self::from_url(&url)
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

/// Why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{input:?} names no server: {why}")]
pub struct EndpointError {
    input: String,
    why: &'static str,
}
