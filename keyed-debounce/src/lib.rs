#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod debounce;
mod outcome;
mod run;
mod scheduler;

pub use debounce::Debounce;
pub use outcome::Outcome;
pub use run::{Run, RunHook};
pub use scheduler::{ScheduleError, Scheduled, Scheduler, SchedulerError};
