use std::time::Duration;

/// How a request went, as its sender says it with [`Permit::finish`](crate::Permit::finish).
///
/// Nobody can switch a host off for others with it: see the rule L10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// The server answered, whatever it said.
    Ok,
    /// A refused connection, a timeout, a server error, a look-up without answer. Never pauses anything.
    Failed,
    /// The server asked to come back after this long (429, or 503 with `Retry-After`).
    RetryAfter(Duration),
    /// The endpoint cannot work: no such name, or its TLS is broken.
    Broken,
    /// Nothing was sent. The start is taken out of the window.
    Unused,
}
