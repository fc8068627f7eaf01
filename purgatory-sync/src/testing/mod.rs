//! What helps to test a port of your own, or a program that uses the engine.
//!
//! | | |
//! |---|---|
//! | [`MemoryStore`] | an [`EventStore`](crate::EventStore) in memory that shows what was held, released and asked |
//! | [`ScriptedFetcher`] | a [`GitFetcher`](crate::GitFetcher) over servers in memory that do what a script says |
//! | [`check_event_store`] | what every event store owes the engine, as a suite |
//! | [`check_git_fetcher`] | what every fetcher owes the engine, as a suite |

mod fetcher_suite;
mod memory_store;
mod scripted_fetcher;
mod store_suite;
mod violation;

pub use fetcher_suite::{FetcherHarness, Site, check_git_fetcher};
pub use memory_store::{HeldEvent, MemoryStore, Trouble};
pub use scripted_fetcher::{FetchRecord, Reply, ScriptedFetcher};
pub use store_suite::{StoreHarness, check_event_store};
pub use violation::Violation;

use crate::{CloneUrl, Oid};

/// An object id that is easy to tell from others: the SHA-1 whose last eight bytes are this number.
pub fn oid(number: u64) -> Oid {
    let mut hash = [0; 20];
    hash[12..].copy_from_slice(&number.to_be_bytes());
    Oid::sha1(hash)
}

/// A clone URL.
///
/// # Panics
///
/// If the text is none.
pub fn url(text: &str) -> CloneUrl {
    match text.parse() {
        Ok(url) => url,
        Err(error) => panic!("{text:?} is no clone URL: {error}"),
    }
}
