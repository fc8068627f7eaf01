//! Where events wait until their data is here.
//!
//! [`NostrEventStore`] takes signed events ([`admit`](NostrEventStore::admit)), holds states, pull
//! requests and their updates back, tells the engine what they wait for, and lets each go the
//! moment its objects are here: refs set, saved in the database, told, forgotten, in this order.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use ngit_adapter::{git::Repositories, store::{Arrival, NostrEventStore, Wake}};
//!
//! let folder = tempfile::tempdir()?;
//! let refs = Arc::new(Repositories::open(folder.path().join("git"))?);
//! let store = NostrEventStore::on_lmdb(&folder.path().join("store"), refs).await?.build().await?;
//!
//! let line = br#"{"kind":30617,"id":"5f","pubkey":"79","tags":[["d","demo"]]}"#;
//! match store.admit_json(line, Arrival::Submitted).await {
//!     Ok(admission) => assert_ne!(admission.wake(), Wake::Nothing),
//!     Err(error) => assert!(error.is_rejection()), // this one: half of it is missing
//! }
//! # Ok(()) }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! How a relay puts it to use, in 30 lines: [`existing_relay`].
//!
//! # What is durable, and what is not
//!
//! | | where | when |
//! |---|---|---|
//! | what is held, and until when | the journal | before [`admit`](NostrEventStore::admit) returns |
//! | commits that came before their event | the journal | before [`place`](NostrEventStore::place) returns |
//! | ids that were given up, for 7 days | the journal | before [`expire`](NostrEventStore::expire) returns |
//! | what is served, deletions | the database, as durable as that is | before it is told |
//! | which repositories were looked for in vain | the journal | with the next change that waits for the disk |
//! | why an event stayed though its objects were here | memory | found again by the next release |
//! | who was told | nowhere: an event may be told again after a crash | |
//!
//! Deadlines are times of the wall clock, so downtime counts. A kill at any moment leaves an event
//! held, or saved with its refs set; the next release of it does the rest. Without a journal
//! ([`builder`](NostrEventStore::builder) without [`journal`](NostrEventStoreBuilder::journal))
//! nothing that is held outlives the process.
//!
//! # Another database
//!
//! What is served lies in any [`NostrDatabase`](nostr_database::NostrDatabase): give yours to
//! [`NostrEventStore::builder`], and a path to [`journal`](NostrEventStoreBuilder::journal). A relay
//! gives the one that it has. What the store asks of it:
//!
//! - [`save_event`](nostr_database::NostrDatabase::save_event) is durable when it returns, and says
//!   honestly whether it saved. Only `Success`, and `Duplicate` of an event that was held here, are told.
//! - It replaces addressable events as NIP-01 says, of the same second the one with the lower id stays.
//! - Look-ups by id, by author and kind, and by kind and tag are indexed. The database in memory
//!   scans for the last of these; it is for tests and for small runs.
//!
//! LMDB, the default of the program, cuts the names of repositories in its index after 182 bytes: of
//! one author's events, two whose names begin alike for that long take each other's place. The
//! second then stays held, with the reason.
//!
//! # Who has a say, and what moves
//!
//! - A state is released for an owner's repository if its author is the owner or a maintainer, through
//!   the maintainers' own announcements in any depth. An announcement that is held counts, too.
//! - Of one author's states for a repository the newest is held. One that is older than what is held
//!   or served of its author is not taken. If the newest has no refs, an older one that came later is
//!   not taken either, though the newest moves nothing.
//! - An owner's refs follow the newest served state that names refs, of all authors with a say. When
//!   an announcement changes who that is, they follow at once.
//! - A pull request to several owners repeats `a`; other identifiers than the first one's are passed over.
//! - A deletion (kind 5) takes its author's own events, held or served, in whichever order they come.
//!   The ref of a pull request that was served stays.
//!
//! # Limits
//!
//! [`StoreConfig`] bounds everything that a stranger can send. Where there is no room for another event, one of least
//! standing gives way to one of more, and of equals one of the author who has most of them, if that author has two more
//! than the other one. From the most to the least: what an author with a say over a served repository sent;
//! pull requests to a served repository; what is about a repository whose announcement is held; all else, strangers'
//! announcements included. So what costs nothing to make, any number of keys and announcements, keeps out nobody whose
//! repository has data here. Of all that is held, an author who has more than a tenth gives way to anybody. In
//! the same way commits that wait for their pull requests give way, by repository.
//!
//! A held state costs its JSON and about
//! 600 bytes of memory, other events some hundred bytes more for each clone URL; looks, arrivals and deadlines cost the same with 100,000 held events as with 100.
//!
//! # Why a journal, and not a second database?
//!
//! What is held changes all the time and is small: an append and one write to the disk for all who
//! wait is less than a transaction each. It works with any database, also one that is far away or
//! that must not hold what is not served. And a person can read it: one line per change. It is
//! written anew beside the old one when two thirds of it are of no use any more, and a line that a
//! crash cut off is dropped: it was never acknowledged.

#[doc = include_str!("existing_relay.md")]
pub mod existing_relay {}

mod admission;
mod admit;
mod again;
mod authority;
mod builder;
mod clock;
mod config;
mod deletion;
mod durable;
mod event_store;
mod expiry;
mod followers;
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
mod reach;
mod record;
mod release;
mod remembered;
mod room;
mod settle;
mod shares;
mod shelf;
mod standing;
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
