//! The git side: repositories, their objects and refs, and how what is missing comes from strangers.

mod address;
mod address_lookup;
mod adopt;
mod attempt;
mod child;
mod closure;
mod command;
mod connectivity;
mod create;
mod error;
mod failure;
mod fetcher;
mod http;
mod http_answer;
mod http_error;
mod index_pack;
mod intake;
mod limits;
mod lock;
mod negotiation;
mod objects;
pub(crate) mod paths;
mod protocol;
mod quarantine;
mod ref_keeper;
mod refs;
mod repositories;
mod siblings;
mod version;
mod whole;
mod work_folder;

pub use address::AddressPolicy;
pub use address_lookup::{Lookup, LookupError, SystemLookup};
pub use adopt::CheckedPack;
pub use command::{Git, GitError};
pub use error::RepositoryError;
pub use fetcher::{FetchProgress, SmartHttpFetcher, SmartHttpFetcherBuilder, StartError};
pub use limits::Limits;
pub use lock::RepositoryLock;
pub use repositories::{FetchTarget, Repositories};
pub use version::GitVersion;

use quarantine::Quarantine;
