use crate::{Debounce, KeyState, deadlines::Deadlines, due_queue::Position, timestamp::Timestamp};

/// What the schedule knows of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRecord {
    pub(crate) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// In the queue, requested: waiting, or ready once its due has come.
    Waiting(Request),
    /// In the queue, not requested since its last run.
    Backoff { due: Timestamp, order: u64, failures: u32 },
    /// As `Backoff`, but not in the queue: a drain hands out each key once.
    Parked { due: Timestamp, failures: u32 },
    /// Handed out, and not requested since.
    Running { run: u32, failures: u32, cancelled: bool },
    /// Handed out, and requested since.
    Requested { run: u32, request: Request },
    /// Absent; only its last start is kept.
    Remembered,
}

/// The requests since the last run began, as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) deadlines: Deadlines,
    /// The number of the first of them (D11).
    pub(crate) order: u64,
}

impl Request {
    pub(crate) fn first(debounce: Debounce, now: Timestamp, order: u64) -> Self {
        Self { deadlines: Deadlines::first(debounce, now), order }
    }
}

impl KeyRecord {
    pub(crate) fn new(request: Request) -> Self {
        Self { phase: Phase::Waiting(request) }
    }

    /// Where it should be in the queue. Only what waits has a position that means something.
    pub(crate) fn position(&self) -> Position {
        match self.phase {
            Phase::Waiting(Request { deadlines, order })
            | Phase::Requested { request: Request { deadlines, order }, .. } => {
                Position { due: deadlines.due, order }
            }
            Phase::Backoff { due, order, .. } => Position { due, order },
            Phase::Parked { .. } | Phase::Running { .. } | Phase::Remembered => Position::LAST,
        }
    }

    /// Puts the due of what waits off until `earliest`, if it is before.
    pub(crate) fn wait_until(&mut self, earliest: Timestamp) {
        if let Phase::Waiting(Request { deadlines: Deadlines { due, .. }, .. })
        | Phase::Backoff { due, .. } = &mut self.phase
        {
            *due = (*due).max(earliest);
        }
    }

    pub(crate) fn state(&self, now: Timestamp) -> Option<KeyState> {
        let due_in = |due: Timestamp| due.saturating_since(now);
        match self.phase {
            Phase::Remembered => None,
            Phase::Running { .. } => Some(KeyState::Running { requested_again: false }),
            Phase::Requested { .. } => Some(KeyState::Running { requested_again: true }),
            Phase::Parked { due, failures } => {
                Some(KeyState::Backoff { due_in: due_in(due), failures })
            }
            Phase::Waiting(_) | Phase::Backoff { .. } if self.position().due <= now => {
                Some(KeyState::Ready)
            }
            Phase::Waiting(Request { deadlines, .. }) => {
                Some(KeyState::Waiting { due_in: due_in(deadlines.due) })
            }
            Phase::Backoff { due, failures, .. } => {
                Some(KeyState::Backoff { due_in: due_in(due), failures })
            }
        }
    }
}
