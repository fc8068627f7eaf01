use std::{fmt, sync::Arc};

use crate::{CloneUrl, Oid};

/// What the held events of one identifier wait for, in one consistent look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// How many events are held, whether or not they want anything. Zero ends the hunt.
    pub held: usize,
    /// What they wait for and where it may be.
    pub wants: Vec<Want>,
}

/// Objects that belong together: those of one owner's states, or of one pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The objects that held events wait for. It may name objects that are here already.
    pub oids: Vec<Oid>,
    /// Where the repository's announcement says they are, in its order.
    pub urls: Vec<CloneUrl>,
    /// Where whoever opened the pull request says they are. Asked last, and only for `oids`.
    pub own_urls: Vec<CloneUrl>,
    /// Who asks for them. An owner's wants come first.
    pub origin: Origin,
    /// Where the data belongs. The engine hands it to the fetcher unread.
    pub target: Target,
}

/// Who asks for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The repository's owner or a maintainer.
    Owner,
    /// Anyone: whoever opened a pull request.
    Contributor,
}

/// Where fetched data belongs: a name that the store gives and the fetcher understands.
///
/// The engine compares it and passes it on, and never looks inside. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target(Arc<str>);

impl Target {
    /// Takes any string as it is.
    pub fn new(target: impl Into<Arc<str>>) -> Self {
        Self(target.into())
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({:?})", self.as_str())
    }
}
