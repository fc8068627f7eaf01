use std::{error::Error, fmt};

/// Why the folder of repositories, or one repository in it, could not be used. Something on this side
/// failed: the disk, permissions, a damaged repository, a missing program.
#[derive(Debug)]
pub struct RepositoryError {
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl RepositoryError {
    /// An error that says what failed.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// For `map_err`: what failed, and its cause.
    pub(crate) fn because<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl fmt::Display,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::new(what.to_string()).with_source(source)
    }
}

impl fmt::Display for RepositoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for RepositoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
