#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod acquire;
mod address;
mod builder;
mod clock;
mod domain;
mod domain_state;
mod domain_throttle;
mod driver;
mod endpoint;
mod fair_queue;
mod feedback;
mod grant;
mod health;
mod key_name;
mod keys;
mod lanes;
mod limits;
mod moment;
mod overrides;
mod pause;
mod permit;
mod permit_hook;
mod retry_after;
mod shard;
mod shared;
mod slot;
mod store;
mod tally;
mod telemetry;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
mod throttle;
mod throttle_ext;
mod timers;
mod wake;
mod window;

pub use builder::Builder;
pub use domain::{Domain, DomainError};
pub use domain_state::{DomainState, PICK_UP};
pub use domain_throttle::{DomainCounts, DomainThrottle};
pub use endpoint::{Endpoint, EndpointError};
pub use fair_queue::WaiterId;
pub use feedback::Feedback;
pub use grant::{Grant, Refusal, Settled};
pub use limits::Limits;
pub use moment::Moment;
pub use overrides::DomainPattern;
pub use permit::{Permit, PermitHook};
pub use retry_after::{RetryAfterError, retry_after};
pub use tally::DomainTally;
pub use throttle::{Denied, Throttle, ThrottleError};
pub use throttle_ext::ThrottleExt;
