use std::{
    borrow::Cow,
    cmp::Ordering,
    fmt,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    sync::{Arc, OnceLock},
};

use crate::address;

/// A host in its one canonical spelling: what limits count by.
///
/// A domain comes out of an [`Endpoint`](crate::Endpoint). Two spellings of one host (case, a
/// trailing dot, a port, IDN, IPv4 and IPv6 forms) give the same domain.
#[derive(Clone)]
pub struct Domain {
    name: Arc<str>,
    /// Made once, when the name was read, so that no request has to.
    hash: u64,
}

impl Domain {
    pub(crate) fn from_canonical(host: &str) -> Self {
        Self { name: Arc::from(host), hash: hash_of(host) }
    }

    /// The canonical host, without brackets for IPv6.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl Domain {
    #[inline]
    pub(crate) fn shared(&self) -> &Arc<str> {
        &self.name
    }

    /// The hash of its name, see [`hash_of`].
    #[inline]
    pub(crate) fn name_hash(&self) -> u64 {
        self.hash
    }
}

/// Whether a canonical host is an IP address and no name.
pub(crate) fn is_address(host: &str) -> bool {
    host.parse::<std::net::IpAddr>().is_ok()
}

/// The hash of a domain's name. Nobody outside of this process can guess which names collide.
pub(crate) fn hash_of(name: &str) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    STATE.get_or_init(RandomState::new).hash_one(name)
}

impl PartialEq for Domain {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.name == other.name
    }
}

impl Eq for Domain {}

/// By the name's text, as `Borrow<str>` asks for.
impl Hash for Domain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for Domain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Domain {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl std::borrow::Borrow<str> for Domain {
    fn borrow(&self) -> &str {
        &self.name
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
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Domain({})", self.name)
    }
}
