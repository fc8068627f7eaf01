use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::{DashMap, mapref::entry::Entry as Slot};
use keyed_debounce::Outcome;
use tokio::sync::Notify;

use crate::{
    Activity, Identifier, IdentifierSnapshot, PassSummary, State, memory::SharedMemory, metrics,
};

/// What this engine knows of every identifier that is queued or running. The scheduler decides; the
/// board follows, for the snapshot, for the wake-ups and for what is kept from pass to pass.
///
/// It never loses a queued identifier and never keeps one that is not: a call of the scheduler and
/// the pass that may answer it are put in order by counting the passes that began ([`Ticket`]).
///
/// No guard of the map leaves this file, and nothing is called or awaited under one.
#[derive(Debug, Default)]
pub(crate) struct Board {
    entries: DashMap<Identifier, Entry>,
    len: AtomicUsize,
}

#[derive(Debug, Default)]
struct Entry {
    /// A run will come that has not begun.
    queued: bool,
    running: bool,
    /// Calls of the scheduler for this identifier that have not returned.
    calls: usize,
    /// Passes that began.
    passes: u64,
    activity: Option<Activity>,
    parked: Option<Parked>,
    due_by: Option<Instant>,
    attempt: u32,
    held: usize,
    missing: usize,
    last_pass: Option<PassSummary>,
    wake: Arc<Notify>,
    memory: Arc<SharedMemory>,
}

#[derive(Clone, Copy, Debug)]
enum Parked {
    Backoff(Instant),
    Paused(Instant),
}

/// A call of the scheduler that is on.
#[derive(Debug)]
#[must_use = "every call that began has to be accepted or refused"]
pub(crate) struct Ticket {
    passes: u64,
}

/// What a pass gets when it begins.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) wake: Arc<Notify>,
    pub(crate) memory: Arc<SharedMemory>,
}

impl Board {
    /// The scheduler is about to be asked for a run of `id`.
    pub(crate) fn calling(&self, id: &Identifier) -> Ticket {
        self.enter(id, |entry| {
            entry.calls += 1;
            entry.memory.signal();
            Ticket { passes: entry.passes }
        })
    }

    /// The scheduler took the request. Says false if a pass began meanwhile, so that nobody can tell whether
    /// the request is answered: it has to be made again.
    pub(crate) fn accepted(&self, id: &Identifier, ticket: &Ticket, due: Option<Instant>) -> bool {
        let Some(mut entry) = self.entries.get_mut(id) else { return false };
        entry.calls -= 1;
        if entry.passes != ticket.passes {
            return false;
        }
        entry.queued = true;
        entry.parked = None;
        entry.due_by = match (entry.due_by, due) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        true
    }

    /// The scheduler did not take the request.
    pub(crate) fn refused(&self, id: &Identifier) {
        if let Some(mut entry) = self.entries.get_mut(id) {
            entry.calls -= 1;
        }
        self.forget_if_unused(id);
    }

    /// Wakes the pass of `id` that waits, if one does.
    pub(crate) fn wake(&self, id: &Identifier) {
        let wake =
            self.entries.get(id).filter(|entry| entry.running).map(|entry| Arc::clone(&entry.wake));
        if let Some(wake) = wake {
            wake.notify_one();
        }
    }

    /// A pass begins.
    pub(crate) fn started(&self, id: &Identifier, attempt: u32) -> Seat {
        self.enter(id, |entry| {
            entry.queued = false;
            entry.running = true;
            entry.passes += 1;
            entry.activity = Some(Activity::Looking);
            entry.parked = None;
            entry.due_by = None;
            entry.attempt = attempt;
            // A wake-up that no pass took is not for this one.
            entry.wake = Arc::new(Notify::new());
            Seat { wake: Arc::clone(&entry.wake), memory: Arc::clone(&entry.memory) }
        })
    }

    /// What the pass does.
    pub(crate) fn does(&self, id: &Identifier, activity: Activity) {
        if let Some(mut entry) = self.entries.get_mut(id) {
            entry.activity = Some(activity);
        }
    }

    /// What the pass saw.
    pub(crate) fn saw(&self, id: &Identifier, held: usize, missing: usize) {
        if let Some(mut entry) = self.entries.get_mut(id) {
            (entry.held, entry.missing) = (held, missing);
        }
    }

    /// The pass ended; the scheduler is told after this. `again`: the scheduler was asked for another
    /// run during this one. `backoff` is the wait that a retry brings.
    pub(crate) fn ended(&self, id: &Identifier, end: Ending) {
        let Ending { outcome, again, backoff, now, summary } = end;
        if let Some(mut entry) = self.entries.get_mut(id) {
            entry.running = false;
            entry.activity = None;
            entry.last_pass = Some(summary);
            entry.queued |= again;
            let until = |wait| now.checked_add(wait).unwrap_or(now);
            if !entry.queued {
                entry.parked = match outcome {
                    Outcome::Done => None,
                    Outcome::Defer(wait) => Some(Parked::Paused(until(wait))),
                    Outcome::RetryAfter(wait) => Some(Parked::Backoff(until(wait))),
                    Outcome::Retry => Some(Parked::Backoff(until(backoff))),
                };
            }
        }
        self.forget_if_unused(id);
    }

    /// How many identifiers are queued or running.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    pub(crate) fn contains(&self, id: &Identifier) -> bool {
        self.entries.contains_key(id)
    }

    /// Every identifier, each seen whole.
    pub(crate) fn snapshot(&self) -> Vec<IdentifierSnapshot> {
        self.entries.iter().map(|each| each.value().snapshot(each.key())).collect()
    }

    /// Forgets everything: the engine has ended.
    pub(crate) fn clear(&self) {
        let mut forgotten = 0;
        self.entries.retain(|_, _| {
            forgotten += 1;
            false
        });
        self.len.fetch_sub(forgotten, Ordering::SeqCst);
        metrics::queue_shrank(forgotten);
    }

    fn enter<R>(&self, id: &Identifier, work: impl FnOnce(&mut Entry) -> R) -> R {
        let (result, grew) = match self.entries.entry(id.clone()) {
            Slot::Occupied(mut entry) => (work(entry.get_mut()), false),
            Slot::Vacant(vacant) => {
                self.len.fetch_add(1, Ordering::SeqCst);
                (work(&mut vacant.insert(Entry::default())), true)
            }
        };
        if grew {
            metrics::queue_grew();
        }
        result
    }

    fn forget_if_unused(&self, id: &Identifier) {
        if self.entries.remove_if(id, |_, entry| entry.is_unused()).is_some() {
            self.len.fetch_sub(1, Ordering::SeqCst);
            metrics::queue_shrank(1);
        }
    }
}

/// How a pass ended.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    pub(crate) again: bool,
    pub(crate) backoff: Duration,
    pub(crate) now: Instant,
    pub(crate) summary: PassSummary,
}

impl Entry {
    fn is_unused(&self) -> bool {
        !self.queued && !self.running && self.calls == 0 && self.parked.is_none()
    }

    fn snapshot(&self, id: &Identifier) -> IdentifierSnapshot {
        let state = match (&self.activity, self.parked) {
            (Some(activity), _) if self.running => State::Running(activity.clone()),
            (_, Some(Parked::Backoff(until))) => State::Backoff { until },
            (_, Some(Parked::Paused(until))) => State::Paused { until },
            _ => State::Waiting { by: self.due_by },
        };
        IdentifierSnapshot {
            identifier: id.clone(),
            state,
            requested_again: self.running && self.queued,
            attempt: self.attempt,
            held: self.held,
            missing: self.missing,
            last_pass: self.last_pass.clone(),
        }
    }
}
