#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// Ports and values.
mod arrival;
mod clone_url;
mod error;
mod event_store;
mod git_fetcher;
mod identifier;
mod needs;
mod oid;
mod our_domain;

// The core: no clock, no task, no I/O.
mod candidates;
mod rounds;
mod step;
mod survey;
mod tried;

#[cfg(test)]
mod core_tests;

// The shell.
mod bell;
mod board;
mod builder;
mod clock;
mod config;
mod config_values;
mod defaults;
mod engine;
mod fetching;
mod find;
mod handle;
mod lines;
mod look;
mod memory;
mod metrics;
mod observer;
mod pass;
mod pass_task;
mod release;
mod report;
mod request;
mod restore;
mod slot;
mod snapshot;

#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;

pub use arrival::Arrival;
pub use builder::Builder;
pub use clone_url::{CloneUrl, CloneUrlError};
pub use config::SyncConfig;
pub use config_values::ConfigError;
pub use error::StoreError;
pub use event_store::{EventStore, Released};
pub use git_fetcher::{FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher};
pub use handle::{PurgatorySync, WeakPurgatorySync};
pub use identifier::Identifier;
pub use needs::{Needs, Origin, Target, Want};
pub use observer::{
    EventsReleased, FetchEnded, FetchOutcome, FetchStarted, Observer, PassEnd, PassEnded,
    PassStarted, PassSummary, SyncEvent,
};
pub use oid::{Oid, OidError};
pub use our_domain::{OurDomain, OurDomainError};
pub use request::HeldError;
pub use snapshot::{Activity, IdentifierSnapshot, Snapshot, State};

// The two crates below, in the versions whose types appear in this crate's signatures.
pub use domain_throttle;
pub use keyed_debounce;
