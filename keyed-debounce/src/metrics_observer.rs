use metrics::{counter, gauge, histogram};

use crate::{Event, Observer, Outcome, Scheduled};

/// An [`Observer`] that counts with the `metrics` facade. No key is a label; the queue's name is.
///
/// | metric | kind | labels besides `queue` |
/// |---|---|---|
/// | `keyed_debounce_requests_total` | counter | `how`: `new`, `joined`, `after_run`, `full`, `closed` |
/// | `keyed_debounce_keys` | gauge: keys that are not absent | |
/// | `keyed_debounce_running` | gauge | |
/// | `keyed_debounce_runs_total` | counter | `outcome`: `done`, `retry`, `retry_after`, `defer` |
/// | `keyed_debounce_run_seconds` | histogram: how long runs took | |
/// | `keyed_debounce_late_seconds` | histogram: from due to start | |
/// | `keyed_debounce_backoff_seconds` | histogram: delays after outcomes | |
///
/// The gauge of keys follows requests, ends of runs and cancels; take
/// [`counts`](crate::KeyedDebouncer::counts) for the exact numbers of a moment.
#[derive(Clone, Copy, Debug)]
pub struct MetricsObserver {
    queue: &'static str,
}

impl MetricsObserver {
    /// An observer for the queue with this name.
    pub const fn new(queue: &'static str) -> Self {
        Self { queue }
    }

    fn count_request(self, how: &'static str) {
        counter!("keyed_debounce_requests_total", "queue" => self.queue, "how" => how).increment(1);
    }
}

impl<K> Observer<K> for MetricsObserver {
    fn on_event(&self, event: &Event<'_, K>) {
        let queue = self.queue;
        let keys = || gauge!("keyed_debounce_keys", "queue" => queue);
        let running = || gauge!("keyed_debounce_running", "queue" => queue);
        match *event {
            Event::Scheduled { how, .. } => {
                self.count_request(match how {
                    Scheduled::New => "new",
                    Scheduled::Joined => "joined",
                    Scheduled::AfterRun => "after_run",
                });
                if how == Scheduled::New {
                    keys().increment(1);
                }
            }
            Event::Refused { closed, .. } => {
                self.count_request(if closed { "closed" } else { "full" });
            }
            Event::Started { late_by, .. } => {
                running().increment(1);
                histogram!("keyed_debounce_late_seconds", "queue" => queue).record(late_by);
            }
            Event::Finished { outcome, took, due_in, backs_off, .. } => {
                running().decrement(1);
                let outcome = match outcome {
                    Outcome::Done => "done",
                    Outcome::Retry => "retry",
                    Outcome::RetryAfter(_) => "retry_after",
                    Outcome::Defer(_) => "defer",
                };
                counter!("keyed_debounce_runs_total", "queue" => queue, "outcome" => outcome)
                    .increment(1);
                histogram!("keyed_debounce_run_seconds", "queue" => queue).record(took);
                match due_in {
                    None => keys().decrement(1),
                    Some(delay) if backs_off => {
                        histogram!("keyed_debounce_backoff_seconds", "queue" => queue)
                            .record(delay);
                    }
                    Some(_) => {}
                }
            }
            Event::Cancelled { running: false, .. } => keys().decrement(1),
            Event::Cancelled { .. } | Event::Closed => {}
        }
    }
}
