//! The git side: repositories, their objects and refs.

mod adopt;
mod closure;
mod create;
mod error;
mod lock;
mod objects;
pub(crate) mod paths;
mod ref_keeper;
mod refs;
mod repositories;
mod siblings;
mod whole;
mod work_folder;

pub use adopt::CheckedPack;
pub use error::RepositoryError;
pub use lock::RepositoryLock;
pub use repositories::{FetchTarget, Repositories};
