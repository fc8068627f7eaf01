#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod domain;
mod endpoint;
mod feedback;
mod limits;
mod permit;
mod throttle;

pub use domain::Domain;
pub use endpoint::{Endpoint, EndpointError};
pub use feedback::Feedback;
pub use limits::Limits;
pub use permit::{Permit, PermitHook};
pub use throttle::{Denied, Throttle, ThrottleError};
