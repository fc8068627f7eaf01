use purgatory_sync::OidError;

/// Why a text or an event is not used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// It is too large.
    #[error("the event has {bytes} bytes, at most {most} are taken")]
    TooManyBytes {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        most: usize,
    },
    /// It has too many tags.
    #[error("the event has {tags} tags, at most {most} are taken")]
    TooManyTags {
        /// How many it has.
        tags: usize,
        /// How many it may have.
        most: usize,
    },
    /// It is no JSON, or not that of an event.
    #[error("this is no nostr event: {0}")]
    NotAnEvent(String),
    /// The id is not the hash of the event.
    #[error("the id is not that of the event: it was changed after it was signed")]
    Id,
    /// The signature is not that of the author.
    #[error("the signature is not that of the author")]
    Signature,
}

/// Why a signed event cannot be used for what its kind says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Nip34Error {
    /// An announcement or a state has no `d`.
    #[error("it has no `d` tag, which names the repository")]
    NoIdentifier,
    /// The identifier is too long.
    #[error("the identifier has {0} bytes, at most {MAX_IDENTIFIER_BYTES} are taken")]
    IdentifierTooLong(usize),
    /// A pull request has no `a` that names a repository.
    #[error("it has no usable `a` tag: it takes 30617:<owner, 64 hex digits>:<identifier>")]
    NoRepository,
    /// A pull request has no `c`.
    #[error("it has no `c` tag, which names its commit")]
    NoTip,
    /// A pull request's `c` is no object id.
    #[error("its `c` tag is no commit: {0}")]
    BadTip(OidError),
    /// It names objects by SHA-256.
    #[error("SHA-256 is not supported: an object id here has 40 hex digits (SHA-1)")]
    Sha256,
}

/// The most bytes an identifier may have.
pub(super) const MAX_IDENTIFIER_BYTES: usize = 8_192;
