use crate::{KeyState, deadlines::Deadlines, due_queue::Position, timestamp::Timestamp};

/// What the schedule knows of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRecord {
    pub(crate) phase: Phase,
    /// Of the requests since the last run began; meaningless while it runs unrequested.
    pub(crate) deadlines: Deadlines,
    /// The number of the first request since the last run began (D11).
    pub(crate) order: u64,
    /// Where it is in the queue, if it is in it.
    pub(crate) position: Position,
    /// D16: its last start plus the interval.
    pub(crate) not_before: Timestamp,
    pub(crate) failures: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// In the queue, requested: waiting, or ready once its position has come.
    Waiting,
    /// In the queue, not requested since its last run.
    Backoff,
    /// As `Backoff`, but not in the queue: a drain hands out each key once.
    Parked,
    /// Handed out.
    Running { run: u64, requested: bool, cancelled: bool },
    /// Absent; only its last start is kept.
    Remembered,
}

impl KeyRecord {
    pub(crate) fn new(deadlines: Deadlines, order: u64) -> Self {
        Self {
            phase: Phase::Waiting,
            deadlines,
            order,
            position: Position { due: deadlines.due, order },
            not_before: Timestamp::ORIGIN,
            failures: 0,
        }
    }

    /// Its place among the keys that wait for nothing but their interval.
    pub(crate) fn held_position(&self) -> Position {
        Position { due: self.not_before, order: self.order }
    }

    pub(crate) fn state(&self, now: Timestamp) -> Option<KeyState> {
        let due_in = self.position.due.saturating_since(now);
        match self.phase {
            Phase::Remembered => None,
            Phase::Running { requested, .. } => {
                Some(KeyState::Running { requested_again: requested })
            }
            Phase::Parked => Some(KeyState::Backoff {
                due_in: self.deadlines.due.saturating_since(now),
                failures: self.failures,
            }),
            Phase::Waiting | Phase::Backoff if self.position.due <= now => Some(KeyState::Ready),
            Phase::Waiting => Some(KeyState::Waiting { due_in }),
            Phase::Backoff => Some(KeyState::Backoff { due_in, failures: self.failures }),
        }
    }
}
