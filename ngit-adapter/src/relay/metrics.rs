//! What the relay itself counts, beside the six metrics of the engine. No label comes from a stranger.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use super::peers::Taken;

const CONNECTIONS: &str = "ngit_relay_connections";
const SUBSCRIPTIONS: &str = "ngit_relay_subscriptions";
const EVENTS: &str = "ngit_relay_events_total";
const HELD: &str = "ngit_relay_held_events";
const GIT_REQUESTS: &str = "ngit_relay_git_requests_total";
const PUSHES: &str = "ngit_relay_pushes_total";
const PEERS: &str = "ngit_relay_peers";
const PEER_EVENTS: &str = "ngit_relay_peer_events_total";

/// What became of an event that somebody sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Held,
    Served,
    Duplicate,
    Rejected,
}

pub(super) fn describe() {
    describe_gauge!(CONNECTIONS, "Websocket connections that are open.");
    describe_gauge!(SUBSCRIPTIONS, "Subscriptions that are open, over all connections.");
    describe_counter!(EVENTS, "Events that were sent here, by what became of them.");
    describe_gauge!(HELD, "Events that are held until their data is here.");
    describe_counter!(GIT_REQUESTS, "Git requests over HTTP, by service.");
    describe_counter!(PUSHES, "Pushes that were read to their end, by result.");
    describe_gauge!(PEERS, "Other relays that are heard, by what is done about them.");
    describe_counter!(PEER_EVENTS, "Events that came from other relays, by what became of them.");
    // What has not happened yet is 0, and not missing.
    for fate in [Fate::Held, Fate::Served, Fate::Duplicate, Fate::Rejected] {
        counter!(EVENTS, "result" => fate.as_str()).increment(0);
    }
    for service in ["fetch", "push"] {
        counter!(GIT_REQUESTS, "service" => service).increment(0);
    }
    for result in ["accepted", "refused", "failed"] {
        counter!(PUSHES, "result" => result).increment(0);
    }
    for state in ["connecting", "catching_up", "live", "waiting"] {
        gauge!(PEERS, "state" => state).increment(0);
    }
    for taken in Taken::ALL {
        counter!(PEER_EVENTS, "result" => taken.as_str()).increment(0);
    }
    gauge!(CONNECTIONS).increment(0);
    gauge!(SUBSCRIPTIONS).increment(0);
    gauge!(HELD).set(0);
}

impl Fate {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Served => "served",
            Self::Duplicate => "duplicate",
            Self::Rejected => "rejected",
        }
    }
}

pub(super) fn event(fate: Fate) {
    counter!(EVENTS, "result" => fate.as_str()).increment(1);
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 events are held")]
pub(super) fn held(count: usize) {
    gauge!(HELD).set(count as f64);
}

pub(super) fn git_request(service: &'static str) {
    counter!(GIT_REQUESTS, "service" => service).increment(1);
}

pub(super) fn push(result: &'static str) {
    counter!(PUSHES, "result" => result).increment(1);
}

pub(super) fn peer_joined(state: &'static str) {
    gauge!(PEERS, "state" => state).increment(1);
}

pub(super) fn peer_left(state: &'static str) {
    gauge!(PEERS, "state" => state).decrement(1);
}

pub(super) fn peer_event(result: &'static str) {
    counter!(PEER_EVENTS, "result" => result).increment(1);
}

/// A share of a gauge. It is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    name: &'static str,
    share: u32,
}

impl Counted {
    pub(super) fn connection() -> Self {
        let mut counted = Self { name: CONNECTIONS, share: 0 };
        counted.set(1);
        counted
    }

    pub(super) fn subscriptions() -> Self {
        Self { name: SUBSCRIPTIONS, share: 0 }
    }

    pub(super) fn set(&mut self, share: usize) {
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        if share == self.share {
            return;
        }
        gauge!(self.name).increment(f64::from(share) - f64::from(self.share));
        self.share = share;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}
