//! Relays that hear from each other.

#![allow(dead_code, reason = "each test uses a part of this")]

use nostr::event::Event;
use serde_json::json;

use crate::{
    e2e_support::announcement_on,
    serve_support::{Client, RelayProcess},
    support_events::Person,
};

/// Settings under which a relay hunts at once, for events of clients too.
pub(crate) const EAGER: [&str; 2] = ["--sync-default-delay-secs=1", "--sync-loop-interval-ms=50"];

/// A relay whose peers are these, beside those that announcements name.
pub(crate) fn relay_with_peers(peers: &[String]) -> RelayProcess {
    let bootstrap = format!("--bootstrap-relay-url={}", peers.join(","));
    RelayProcess::start_with(&[&[bootstrap.as_str()], &EAGER[..]].concat(), &[])
}

/// An announcement that lists all of these relays, and then these clone URLs.
pub(crate) fn announcement_for(
    relays: &[&RelayProcess],
    owner: &Person,
    identifier: &str,
    urls: &[&str],
) -> Event {
    let urls: Vec<_> = urls.iter().map(|url| (*url).to_owned()).collect();
    announcement_on(relays, owner, identifier, &urls, 0)
}

/// Waits until the relay serves this event.
pub(crate) async fn served(relay: &RelayProcess, event: &Event) {
    let mut client = Client::connect(relay).await;
    let id = event.id.to_hex();
    // First the subscription, so that it is told if it comes later.
    if !client.request("served", json!({"ids": [id]})).await.contains(&id) {
        assert_eq!(client.live("served").await, id);
    }
}
