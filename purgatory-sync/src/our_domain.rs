use std::{fmt, str::FromStr};

use domain_throttle::{Domain, Endpoint};

use crate::CloneUrl;

/// A name of this service itself, which is never asked for objects: a host, and a port where only
/// that port of the host is ours.
///
/// ```
/// # use purgatory_sync::{CloneUrl, OurDomain};
/// let ours: OurDomain = "git.example.org".parse()?;
/// assert!(ours.serves(&"https://GIT.example.org:8443/a.git".parse::<CloneUrl>()?));
/// assert!(!ours.serves(&"https://notgit.example.org/a.git".parse::<CloneUrl>()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OurDomain {
    domain: Domain,
    port: Option<u16>,
}

impl OurDomain {
    /// Whether the URL leads to this service.
    pub fn serves(&self, url: &CloneUrl) -> bool {
        url.domain() == &self.domain
            && self.port.is_none_or(|port| url.endpoint().port() == Some(port))
    }
}

impl FromStr for OurDomain {
    type Err = OurDomainError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let error = || OurDomainError { input: input.to_owned() };
        if input.contains(|c: char| c.is_whitespace() || "/?#@\\".contains(c)) {
            return Err(error());
        }
        let (host, port) = split_port(input).ok_or_else(error)?;
        let endpoint: Endpoint = format!("http://{host}/").parse().map_err(|_| error())?;
        Ok(Self { domain: endpoint.domain().clone(), port })
    }
}

/// Splits `host:port`; the colons inside an IPv6 address stand in brackets.
fn split_port(input: &str) -> Option<(&str, Option<u16>)> {
    match input.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|&port| digits && port > 0)?;
            Some((host, Some(port)))
        }
        _ => Some((input, None)),
    }
}

impl fmt::Display for OurDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.domain.as_str();
        match (host.contains(':'), self.port) {
            (true, Some(port)) => write!(f, "[{host}]:{port}"),
            (true, None) => write!(f, "[{host}]"),
            (false, Some(port)) => write!(f, "{host}:{port}"),
            (false, None) => f.write_str(host),
        }
    }
}

/// Why a text is no name of a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{input:?} is no name of a service: give a host or host:port, like git.example.org or [::1]:8080"
)]
pub struct OurDomainError {
    input: String,
}
