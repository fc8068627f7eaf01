use std::{error::Error, fmt};

/// Why a store could not answer. The event stays held and the engine tries again later.
#[derive(Debug)]
pub struct StoreError {
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// An error that says what failed.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the event store failed: {}", self.what)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
