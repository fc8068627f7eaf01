use std::time::Duration;

use crate::timestamp::Timestamp;

/// D13: hand-outs in rounds that begin at least a gap apart. Without a gap there are no rounds.
#[derive(Debug)]
pub(crate) struct Rounds {
    gap: Option<Duration>,
    /// When the last round began.
    start: Option<Timestamp>,
}

impl Rounds {
    pub(crate) fn new(gap: Option<Duration>) -> Self {
        Self { gap: gap.filter(|gap| !gap.is_zero()), start: None }
    }

    /// Whether a key with this due may go now. Begins the next round if that is what it takes.
    pub(crate) fn admit(&mut self, due: Timestamp, now: Timestamp) -> bool {
        if self.opens(due) > now {
            return false;
        }
        if self.gap.is_some() && self.start.is_none_or(|start| due > start) {
            self.start = Some(now);
        }
        true
    }

    /// When a key with this due may go: at its due, but if the round that is on does not include
    /// it, not before the next one.
    pub(crate) fn opens(&self, due: Timestamp) -> Timestamp {
        match (self.gap, self.start) {
            (Some(gap), Some(start)) if due > start => due.max(start + gap),
            _ => due,
        }
    }

    /// The earliest due of a key that joins the queue now. In the very instant at which a round
    /// began, what was not there at its start is not part of it.
    pub(crate) fn earliest_due(&self, now: Timestamp) -> Timestamp {
        if self.start == Some(now) { now.just_after() } else { Timestamp::ORIGIN }
    }
}
