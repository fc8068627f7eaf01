#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
mod builder;
mod clock;
mod deadlines;
mod debounce;
mod debouncer;
mod drain;
mod driver;
mod due_queue;
mod ending;
mod hand_out;
mod hold;
mod intake;
mod intervals;
mod key_bucket;
mod key_record;
mod key_state;
mod key_store;
mod key_table;
#[cfg(feature = "metrics")]
mod metrics_observer;
mod next;
mod observer;
mod outcome;
mod rounds;
mod run;
pub mod schedule;
mod scheduler;
mod shared;
mod shelf_index;
mod shelves;
mod slab;
#[cfg(feature = "testing")]
pub mod testing;
mod timestamp;
#[cfg(feature = "tracing")]
mod tracing_observer;
mod waiters;
mod wake;

pub use backoff::{Backoff, Exponential};
pub use builder::Builder;
pub use debounce::Debounce;
pub use debouncer::KeyedDebouncer;
pub use driver::drive;
pub use intake::Drain;
pub use key_state::{Counts, KeyState};
#[cfg(feature = "metrics")]
pub use metrics_observer::MetricsObserver;
pub use observer::{Event, Observer};
pub use outcome::Outcome;
pub use run::{Run, RunHook};
pub use scheduler::{ScheduleError, Scheduled, Scheduler, SchedulerError};
#[cfg(feature = "tracing")]
pub use tracing_observer::TracingObserver;
