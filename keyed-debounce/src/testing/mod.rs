//! For those who write a [`Scheduler`](crate::Scheduler): what it must keep, as a test suite.

mod model;
mod strategies;

pub use model::{Expected, Model};
pub use strategies::{Op, debounce, delay, op, ops, outcome, step};
