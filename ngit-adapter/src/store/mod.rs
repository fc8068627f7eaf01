//! Where events wait until their data is here.
//!
//! [`NostrEventStore`] takes signed events ([`admit`](NostrEventStore::admit)), holds states, pull
//! requests and their updates back, tells the engine what they wait for, and lets each go the
//! moment its objects are here: refs set, saved in the database, told, forgotten, in this order.

mod admission;
mod admit;
mod authority;
mod builder;
mod clock;
mod config;
mod deletion;
mod durable;
mod event_store;
mod expiry;
mod gates;
mod held;
mod journal;
mod known;
mod listing;
mod lmdb;
mod look;
mod needs;
mod observer;
mod placeholders;
mod purgatory;
mod push;
mod record;
mod release;
mod remembered;
mod settle;
mod shelf;
mod stored;
mod version;

pub use admission::{Admission, AdmitError, Full, Outcome, Wake};
pub use builder::NostrEventStoreBuilder;
pub use config::StoreConfig;
pub use event_store::NostrEventStore;
pub use expiry::GivenUp;
pub use listing::{HeldEvent, HeldReason};
pub use observer::StoreObserver;
pub use placeholders::Placeholder;
pub use purgatory_sync::Arrival;
pub use push::RightfulState;
