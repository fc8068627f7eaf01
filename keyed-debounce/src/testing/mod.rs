//! For those who write a [`Scheduler`](crate::Scheduler): what it must keep, as a test suite.
//!
//! Implement [`Backend`] for the scheduler and call [`check`]:
//!
//! ```
//! use std::time::Duration;
//!
//! use async_trait::async_trait;
//! use keyed_debounce::{KeyedDebouncer, testing::{Backend, check}};
//!
//! struct InMemory;
//!
//! #[async_trait]
//! impl Backend for InMemory {
//!     type Key = u32;
//!     type Scheduler = KeyedDebouncer<u32>;
//!
//!     async fn fresh(&self) -> Self::Scheduler {
//!         KeyedDebouncer::new()
//!     }
//!     fn key(&self, number: u32) -> u32 {
//!         number
//!     }
//!     async fn advance(&self, by: Duration) {
//!         tokio::time::advance(by).await;
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! check(&InMemory).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Model`] is the rules said plainly, to compare with in tests of your own; [`ops`] and its
//! neighbours are proptest strategies for such tests.

mod backend;
mod check;
mod model;
mod stories;
mod strategies;
mod trial;
mod violation;

pub use backend::Backend;
pub use check::{check, check_ops};
pub use model::{Expected, Model};
pub use strategies::{Op, debounce, delay, op, ops, outcome, step};
pub use violation::Violation;
