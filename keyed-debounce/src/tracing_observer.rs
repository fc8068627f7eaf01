use std::fmt;

use crate::{Event, Observer};

/// An [`Observer`] that writes a `tracing` event, level `DEBUG`, for each [`Event`].
///
/// The target is `keyed_debounce`. Each event has the field `queue`; those about a key have `key`
/// (by `Debug`); runs have `attempt`, `late_ms`, `took_ms`, `outcome`, `due_in_ms`, `failures`.
#[derive(Clone, Copy, Debug)]
pub struct TracingObserver {
    queue: &'static str,
}

impl TracingObserver {
    /// An observer for the queue with this name.
    pub const fn new(queue: &'static str) -> Self {
        Self { queue }
    }
}

impl<K: fmt::Debug> Observer<K> for TracingObserver {
    fn on_event(&self, event: &Event<'_, K>) {
        let queue = self.queue;
        match *event {
            Event::Scheduled { key, how } => {
                tracing::debug!(target: "keyed_debounce", queue, ?key, ?how, "scheduled");
            }
            Event::Refused { key, closed } => {
                tracing::debug!(target: "keyed_debounce", queue, ?key, closed, "refused");
            }
            Event::Started { key, attempt, late_by } => {
                let late_ms = millis(late_by);
                tracing::debug!(target: "keyed_debounce", queue, ?key, attempt, late_ms, "started");
            }
            Event::Finished { key, outcome, took, due_in, failures, .. } => {
                let (took_ms, due_in_ms) = (millis(took), due_in.map(millis));
                tracing::debug!(
                    target: "keyed_debounce",
                    queue, ?key, ?outcome, took_ms, due_in_ms, failures, "finished"
                );
            }
            Event::Cancelled { key, running } => {
                tracing::debug!(target: "keyed_debounce", queue, ?key, running, "cancelled");
            }
            Event::Closed => tracing::debug!(target: "keyed_debounce", queue, "closed"),
        }
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
