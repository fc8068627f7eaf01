//! What `domain-throttle` promises, one file per behaviour.
#![expect(clippy::disallowed_methods, reason = "tests read the paused clock and move it")]

mod cancel;
#[cfg(feature = "testing")]
mod conformance;
mod fairness;
mod foreign;
mod interleavings;
mod memory;
mod model;
mod neighbours;
mod oracle;
mod overrides;
mod pauses;
mod proposal;
mod retry_after;
mod spellings;
mod support;
#[cfg(all(feature = "metrics", feature = "tracing"))]
mod telemetry;
mod threads;
mod twin;
mod waiting;
mod window;
