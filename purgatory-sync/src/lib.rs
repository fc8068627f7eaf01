#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clone_url;
mod error;
mod event_store;
mod git_fetcher;
mod identifier;
mod needs;
mod oid;

pub use clone_url::{CloneUrl, CloneUrlError};
pub use error::StoreError;
pub use event_store::{EventStore, Released};
pub use git_fetcher::{FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher};
pub use identifier::Identifier;
pub use needs::{Needs, Origin, Target, Want};
pub use oid::{Oid, OidError};

// The two crates below, in the versions whose types appear in this crate's signatures.
pub use domain_throttle;
pub use keyed_debounce;
