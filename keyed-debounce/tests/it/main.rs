//! The rules of the crate, one file per behaviour. Names in capitals (D3, D11) are the rules' names.
#![expect(clippy::disallowed_methods, reason = "tests measure time that they steer themselves")]

mod abandoned;
mod against_the_model;
mod backoff;
mod cancel_safety;
mod conformance;
mod deadlines;
mod driver;
mod foreign;
mod idle;
mod interleavings;
mod observers;
mod order;
mod panics;
mod proposal;
mod rounds;
mod shutdown;
mod sim;
mod state_table;
mod threads;
mod time;
mod traits;
mod traps;
mod workqueue;
