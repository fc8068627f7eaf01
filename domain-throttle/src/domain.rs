use std::{fmt, sync::Arc};

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
