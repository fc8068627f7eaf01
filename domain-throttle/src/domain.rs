use std::{borrow::Cow, fmt, sync::Arc};

use crate::address;

/// A host in its one canonical spelling: what limits count by.
///
/// A domain comes out of an [`Endpoint`](crate::Endpoint). Two spellings of one host (case, a
/// trailing dot, a port, IDN, IPv4 and IPv6 forms) give the same domain.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain(Arc<str>);

impl Domain {
    pub(crate) fn from_canonical(host: &str) -> Self {
        Self(Arc::from(host))
    }

    /// The canonical host, without brackets for IPv6.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Domain {
    #[cfg(feature = "metrics")]
    pub(crate) fn shared(&self) -> Arc<str> {
        self.0.clone()
    }

    /// Whether it is an IP address and no name.
    pub(crate) fn is_address(&self) -> bool {
        self.0.parse::<std::net::IpAddr>().is_ok()
    }
}

impl std::borrow::Borrow<str> for Domain {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Domain {
    type Err = DomainError;

    /// Reads a bare host: `example.org`, `192.0.2.1`, `[2001:db8::1]` or `2001:db8::1`.
    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let host = input.trim();
        if host.is_empty() {
            return Err(DomainError::new(input, "it is empty"));
        }
        let is_bare_ipv6 = host.parse::<std::net::Ipv6Addr>().is_ok();
        let host = if is_bare_ipv6 { Cow::Owned(format!("[{host}]")) } else { Cow::Borrowed(host) };
        match address::canonical_host(&host) {
            Ok(host) => Ok(Self::from_canonical(&host)),
            Err(_) if host.contains(['/', ':', '@']) => Err(DomainError::new(
                input,
                "give the host alone, without scheme, user, port or path",
            )),
            Err(why) => Err(DomainError::new(input, why)),
        }
    }
}

/// Why a text is no domain: the text and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{input:?} is no domain: {why}")]
pub struct DomainError {
    input: String,
    why: &'static str,
}

impl DomainError {
    pub(crate) fn new(input: &str, why: &'static str) -> Self {
        Self { input: address::for_errors(input), why }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Domain({})", self.0)
    }
}
