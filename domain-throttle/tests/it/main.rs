//! What `domain-throttle` promises, one file per behaviour.
#![expect(clippy::disallowed_methods, reason = "tests read the paused clock and move it")]

mod cancel;
mod fairness;
mod model;
mod oracle;
mod pauses;
mod retry_after;
mod spellings;
mod support;
mod twin;
mod waiting;
mod window;
