//! A relay that serves git data to others, and the parts of it.
//!
//! [`Relay`] is the whole: nostr over websocket and git over smart HTTP on one port. [`SmartHttp`] is a git server for
//! reading, for an application of your own.

mod admit;
mod config;
mod front;
mod health;
mod hub;
mod information;
mod limits;
mod listener;
mod metrics;
mod missing;
mod page;
mod peers;
mod policy;
mod push;
mod recent;
mod service;
mod shared;
mod smart_http;
mod upkeep;
mod websocket;

pub use config::{Backend, RelayConfig};
pub use limits::RelayLimits;
pub use peers::{PeerSettings, PeerUrl, PeerUrlError};
pub use service::{Relay, RelayError};
pub use smart_http::{
    RequestEntry, RequestKind, RequestLog, SmartHttp, SmartHttpLimits, safe_path,
};
