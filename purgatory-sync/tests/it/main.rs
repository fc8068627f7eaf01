//! One file per behaviour. Everything runs on tokio's paused clock.
#![allow(clippy::disallowed_methods, reason = "tests read the paused clock and let it pass")]
#![allow(missing_docs, reason = "tests")]

mod common;
mod hostile;
mod lines;
mod proposal;
mod sources;
mod timelines;
