//! How it stands with each peer, for the status page and the metrics.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::url::{PeerUrl, Place};
use crate::relay::metrics;

/// The peers there are. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::relay) struct Board(Arc<Mutex<Rows>>);

#[derive(Debug, Default)]
struct Rows {
    peers: BTreeMap<Place, Row>,
    /// Those that were tried in vain for long, and since when.
    resting: HashMap<Place, Instant>,
}

/// How it stands with one peer.
#[derive(Clone, Debug)]
pub(in crate::relay) struct Row {
    pub(in crate::relay) url: PeerUrl,
    pub(in crate::relay) state: PeerState,
    /// New events that came from it.
    pub(in crate::relay) events: u64,
    /// Failures in a row.
    pub(in crate::relay) failures: u32,
}

/// What is done about a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum PeerState {
    /// A connection is being made.
    Connecting,
    /// It is asked for what is not here.
    CatchingUp,
    /// It tells what is new.
    Live,
    /// It is left alone until then.
    Waiting(Instant),
}

impl PeerState {
    pub(in crate::relay) const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::CatchingUp => "catching_up",
            Self::Live => "live",
            Self::Waiting(_) => "waiting",
        }
    }
}

/// So many failures in a row, and a peer comes after those that were not tried.
const MANY_FAILURES: u32 = 12;
/// For how long it does.
const REST: Duration = Duration::from_secs(6 * 60 * 60);

impl Board {
    /// A peer's own row. It goes when this is dropped.
    pub(super) fn seat(&self, url: PeerUrl) -> Seat {
        let place = url.place();
        let row = Row { url, state: PeerState::Connecting, events: 0, failures: 0 };
        metrics::peer_joined(row.state.as_str());
        if let Some(before) = self.rows().peers.insert(place.clone(), row) {
            metrics::peer_left(before.state.as_str());
        }
        Seat { board: self.clone(), place }
    }

    pub(in crate::relay) fn all(&self) -> Vec<Row> {
        self.rows().peers.values().cloned().collect()
    }

    /// Those that were tried in vain for long.
    pub(super) fn resting(&self, now: Instant) -> HashSet<Place> {
        let mut rows = self.rows();
        rows.resting.retain(|_, since| now.saturating_duration_since(*since) < REST);
        rows.resting.keys().cloned().collect()
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One peer's row.
#[derive(Debug)]
pub(super) struct Seat {
    board: Board,
    place: Place,
}

impl Seat {
    pub(super) fn set(&self, state: PeerState) {
        if let Some(row) = self.board.rows().peers.get_mut(&self.place) {
            metrics::peer_left(row.state.as_str());
            metrics::peer_joined(state.as_str());
            row.state = state;
        }
    }

    pub(super) fn count_event(&self) {
        if let Some(row) = self.board.rows().peers.get_mut(&self.place) {
            row.events += 1;
        }
    }

    /// How often it failed in a row by now.
    pub(super) fn failed(&self, failures: u32, now: Instant) {
        let mut rows = self.board.rows();
        if let Some(row) = rows.peers.get_mut(&self.place) {
            row.failures = failures;
        }
        if failures >= MANY_FAILURES {
            rows.resting.entry(self.place.clone()).or_insert(now);
        } else {
            rows.resting.remove(&self.place);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(row) = self.board.rows().peers.remove(&self.place) {
            metrics::peer_left(row.state.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_fails_for_long_rests_for_a_while() {
        #[expect(clippy::disallowed_methods, reason = "a test needs some instant to begin with")]
        let now = Instant::now();
        let board = Board::default();
        let url: PeerUrl = "wss://relay.example.org".parse().unwrap();
        let seat = board.seat(url.clone());
        seat.failed(MANY_FAILURES - 1, now);
        assert!(board.resting(now).is_empty());
        seat.failed(MANY_FAILURES, now);
        assert!(board.resting(now).contains(&url.place()));
        drop(seat);
        assert!(board.all().is_empty());
        assert!(board.resting(now + REST - Duration::from_secs(1)).contains(&url.place()));
        assert!(board.resting(now + REST).is_empty());
    }
}
