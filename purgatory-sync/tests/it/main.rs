//! One file per behaviour. Everything runs on tokio's paused clock.
#![allow(clippy::disallowed_methods, reason = "tests read the paused clock and let it pass")]
#![allow(missing_docs, reason = "tests")]

mod bounds;
mod common;
mod config;
mod conformance;
mod foreign;
mod hostile;
mod lines;
mod logs;
mod metrics;
mod proposal;
mod shutdown;
mod simulation;
mod sources;
mod threads;
mod timelines;
