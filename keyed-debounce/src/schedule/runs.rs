use std::time::Duration;

use super::{Ending, Finished, Forgotten, HandOut, Schedule, Then, Ticket, Timestamp};
use crate::{
    Drain, deadlines::Deadlines, due_queue::Position, intake::Intake, key_record::Phase, slab::Slot,
};

impl<K, S> Schedule<K, S> {
    /// Takes the next key that is due at `now`, if there is one. Its run is on from then until
    /// [`finish`](Self::finish).
    pub fn pop_due(&mut self, now: Timestamp) -> Option<HandOut<K>> {
        let now = self.advance(now);
        self.close_if_over(now);
        let (position, slot) = self.next_to_go(now)?;
        let key = self.keys.share(slot)?;
        let run = self.next_number();
        let record = self.keys.value_mut(slot)?;
        record.phase = Phase::Running { run, requested: false, cancelled: false };
        if let Some(interval) = self.settings.min_interval {
            record.not_before = now + interval;
        }
        self.running += 1;
        Some(HandOut {
            key,
            attempt: record.failures.saturating_add(1),
            due: position.due,
            ticket: Ticket { slot, run },
        })
    }

    /// Ends a run (D6, D7, D9, D19).
    ///
    /// A ticket of another schedule is not known here and changes nothing.
    pub fn finish(&mut self, ticket: Ticket, ending: Ending, now: Timestamp) -> Finished<K> {
        let now = self.advance(now);
        let finished = self.end(ticket, ending, now);
        self.close_if_over(now);
        finished
    }

    fn end(&mut self, ticket: Ticket, ending: Ending, now: Timestamp) -> Finished<K> {
        let slot = ticket.slot;
        let Some((requested, cancelled)) = self.hold_of(&ticket) else {
            return Finished { then: Then::Forgotten, forgotten: None };
        };
        let Some(record) = self.keys.value_mut(slot) else {
            return Finished { then: Then::Forgotten, forgotten: None };
        };
        self.running -= 1;
        if requested {
            record.deadlines.run_ended(now, ending.delay_if_requested());
            record.failures = 0;
            record.phase = Phase::Waiting;
            let due = self.enqueue(slot, now);
            return Finished { then: Then::Requested { due }, forgotten: None };
        }
        let delay = match ending {
            _ if cancelled => None,
            Ending::Done => None,
            Ending::Deferred { delay } => Some(delay),
            Ending::Failed { delay, .. } => {
                record.failures = record.failures.saturating_add(1);
                Some(delay)
            }
        };
        match delay {
            None => Finished { then: Then::Forgotten, forgotten: self.forget(slot, now) },
            Some(delay) => Finished { then: self.back_off(slot, delay, now), forgotten: None },
        }
    }

    /// Whether the key was requested since the run of `ticket` began.
    pub fn is_requested_again(&self, ticket: &Ticket) -> bool {
        self.hold_of(ticket).is_some_and(|(requested, _)| requested)
    }

    /// D7: nobody asked for the key, its outcome did.
    fn back_off(&mut self, slot: Slot, delay: Duration, now: Timestamp) -> Then {
        let order = self.next_number();
        let Some(record) = self.keys.value_mut(slot) else { return Then::Forgotten };
        record.deadlines = Deadlines::not_requested(now + delay);
        record.order = order;
        record.phase = Phase::Backoff;
        let failures = record.failures;
        if self.intake.parks_failures() {
            // Each key is handed out once in a drain: this one is what is left.
            self.set_phase(slot, Phase::Parked);
            return Then::Backoff { due: now + delay, failures };
        }
        Then::Backoff { due: self.enqueue(slot, now), failures }
    }

    /// D9: nothing of the key stays, but its last start where that is needed (D16).
    pub(super) fn forget(&mut self, slot: Slot, now: Timestamp) -> Option<Forgotten<K>> {
        let not_before = self.keys.value(slot)?.not_before;
        if not_before > now {
            self.set_phase(slot, Phase::Remembered);
            self.remembered.insert((not_before, slot));
            return None;
        }
        self.keys.remove(slot).map(|(key, _)| Forgotten(key))
    }

    /// Whether the run of `ticket` is on, and if so, whether its key was requested and cancelled.
    fn hold_of(&self, ticket: &Ticket) -> Option<(bool, bool)> {
        match self.keys.value(ticket.slot)?.phase {
            Phase::Running { run, requested, cancelled } if run == ticket.run => {
                Some((requested, cancelled))
            }
            _ => None,
        }
    }

    /// Takes the key that may run now out of its queue.
    fn next_to_go(&mut self, now: Timestamp) -> Option<(Position, Slot)> {
        match self.intake {
            Intake::Closed => None,
            Intake::Draining(Drain::All) => self.next_of_all(now),
            Intake::Open | Intake::Draining(_) => {
                let (position, slot) = self.queue.first()?;
                if !self.rounds.admit(position.due, now) {
                    return None;
                }
                self.queue.remove(position);
                Some((position, slot))
            }
        }
    }

    /// D15: everything that waits is due, but D16 holds.
    fn next_of_all(&mut self, now: Timestamp) -> Option<(Position, Slot)> {
        /// Keys set aside in one call: the caller comes again (D18).
        const AT_ONCE: usize = 64;
        for _ in 0..AT_ONCE {
            let Some((position, slot)) = self.queue.first() else { break };
            self.queue.remove(position);
            let record = self.keys.value(slot)?;
            if record.not_before <= now {
                return Some((position, slot));
            }
            self.held_by_interval.insert(record.held_position(), slot);
        }
        let (position, slot) = self.held_by_interval.first()?;
        if position.due > now {
            return None;
        }
        self.held_by_interval.remove(position);
        Some((position, slot))
    }
}
