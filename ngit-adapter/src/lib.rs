#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cli;
mod file_lock;
pub mod git;
pub mod nip34;
mod ref_keeper;
mod ref_name;
pub mod relay;
mod repository_id;
pub mod store;

pub use ref_keeper::{RefError, RefKeeper, StateRefs};
pub use ref_name::{RefName, RefNameError};
pub use repository_id::RepositoryId;

// What appears in this crate's signatures.
pub use nostr;
pub use purgatory_sync;
