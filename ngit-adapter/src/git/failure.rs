//! Why a fetch failed, before it becomes the port's error.

use std::{error::Error, fmt, io, time::Duration};

use purgatory_sync::{FetchError, FetchErrorKind};

/// A class, a sentence for people, and a cause.
///
/// The class is chosen where the failure is seen, from what it is: a status, a stage, an exit status. Text
/// of a server only ever goes into the sentence, cut and escaped.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FetchErrorKind,
    what: String,
    retry_after: Option<Duration>,
    nothing_sent: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    pub(crate) fn new(kind: FetchErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), retry_after: None, nothing_sent: false, source: None }
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Corrupt, what)
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Unsupported, what)
    }

    pub(crate) fn too_large(what: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::TooLarge, what)
    }

    /// For `map_err`: something on this side failed.
    pub(crate) fn local<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::new(FetchErrorKind::Local, what).because(source)
    }

    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn retry_after(mut self, after: Option<Duration>) -> Self {
        self.retry_after = after;
        self
    }

    /// Says that it failed before anything was sent.
    pub(crate) fn nothing_sent(mut self) -> Self {
        self.nothing_sent = true;
        self
    }

    /// Whether it failed before anything was sent.
    pub(crate) fn nothing_was_sent(&self) -> bool {
        self.nothing_sent
    }

    /// As the port says it, with what was sent until then.
    pub(crate) fn into_error(self, requests: u32) -> FetchError {
        let error = FetchError::new(self.kind).with_requests(requests);
        match self.retry_after {
            Some(after) => error.with_retry_after(after).with_source(self),
            None => error.with_source(self),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(FetchErrorKind::Local, "the file system or a process failed").because(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Text that a server wrote, so that it can stand in one line of a log: escaped, and cut.
pub(crate) fn quoted(text: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * MOST)]);
    let mut line: String =
        text.trim_end().chars().take(MOST).flat_map(char::escape_debug).collect();
    if line.chars().count() > MOST {
        line = line.chars().take(MOST).collect();
    }
    format!("\"{line}\"")
}
