//! What `domain-throttle` promises, one file per behaviour.
#![expect(clippy::disallowed_methods, reason = "tests read the paused clock and move it")]

mod support;
mod waiting;
