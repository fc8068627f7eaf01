use std::{borrow::Borrow, fmt, sync::Arc};

/// The name under which a repository's events belong together. Any string; cheap to clone.
///
/// It is a value and nothing else: no part of this crate puts it into a path, a URL or a command.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identifier(Arc<str>);

impl Identifier {
    /// Takes any string as it is.
    pub fn new(identifier: impl Into<Arc<str>>) -> Self {
        Self(identifier.into())
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Identifier {
    fn from(identifier: &str) -> Self {
        Self::new(identifier)
    }
}

impl From<String> for Identifier {
    fn from(identifier: String) -> Self {
        Self::new(identifier)
    }
}

impl AsRef<str> for Identifier {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Identifier {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identifier({:?})", self.as_str())
    }
}
