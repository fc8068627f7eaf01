//! The nostr side of the relay: one task per connection, which reads, answers and passes on.

mod answer;
mod connection;
mod message;
mod negotiation;
mod negotiations;
mod pace;
mod recently_sent;
mod stored;
mod submit;
mod subscriptions;

pub(super) use connection::serve;
pub(super) use negotiation::{from_hex, to_hex};
pub(super) use pace::Pace;
