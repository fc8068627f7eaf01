use super::{Ending, Finished, Forgotten, HandOut, Schedule, Then, Ticket, Timestamp};
use crate::{
    Drain,
    due_queue::{Next, Position},
    intake::Intake,
    key_record::Phase,
    slab::Slot,
};

impl<K, S> Schedule<K, S> {
    /// Takes the next key that is due at `now`, if there is one. Its run is on from then until
    /// [`finish`](Self::finish).
    ///
    /// `None` also where there is more to sort out than one call does: as long as
    /// [`next_wake`](Self::next_wake) is not after `now`, call again.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<HandOut<K>> {
        let now = self.advance(now);
        self.close_if_over(now);
        let (position, slot) = self.next_to_go(now)?;
        let key = self.keys.share(slot)?;
        #[expect(clippy::cast_possible_truncation, reason = "it tells the runs of a key apart")]
        let run = self.next_number() as u32;
        self.intervals.started(slot, now);
        let record = self.keys.value_mut(slot)?;
        let failures = match record.phase {
            Phase::Backoff { failures, .. } => failures,
            _ => 0,
        };
        record.phase = Phase::Running { run, failures, cancelled: false };
        self.running += 1;
        Some(HandOut {
            key,
            attempt: failures.saturating_add(1),
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
        let (delay, failures) = match self.phase_of(&ticket) {
            Some(Phase::Requested { mut request, .. }) => {
                self.running -= 1;
                request.deadlines.run_ended(now, ending.delay_if_requested());
                self.set_phase(slot, Phase::Waiting(request));
                let due = self.enqueue(slot, now);
                return Finished { then: Then::Requested { due }, forgotten: None };
            }
            Some(Phase::Running { failures, cancelled, .. }) => match ending {
                _ if cancelled => (None, failures),
                Ending::Done => (None, failures),
                Ending::Deferred { delay } => (Some(delay), failures),
                Ending::Failed { delay, .. } => (Some(delay), failures.saturating_add(1)),
            },
            _ => return Finished { then: Then::Forgotten, forgotten: None },
        };
        self.running -= 1;
        match delay {
            None => Finished { then: Then::Forgotten, forgotten: self.forget(slot, now) },
            Some(delay) => {
                Finished { then: self.back_off(slot, now + delay, failures, now), forgotten: None }
            }
        }
    }

    /// Whether the key was requested since the run of `ticket` began.
    pub fn is_requested_again(&self, ticket: &Ticket) -> bool {
        matches!(self.phase_of(ticket), Some(Phase::Requested { .. }))
    }

    /// D7: nobody asked for the key, its outcome did.
    fn back_off(&mut self, slot: Slot, due: Timestamp, failures: u32, now: Timestamp) -> Then {
        if self.intake.parks_failures() {
            // Each key is handed out once in a drain: this one is what is left.
            self.set_phase(slot, Phase::Parked { due, failures });
            return Then::Backoff { due, failures };
        }
        let order = self.next_number();
        self.set_phase(slot, Phase::Backoff { due, order, failures });
        Then::Backoff { due: self.enqueue(slot, now), failures }
    }

    /// D9: nothing of the key stays, but its last start where that is needed (D16).
    pub(super) fn forget(&mut self, slot: Slot, now: Timestamp) -> Option<Forgotten<K>> {
        if self.intervals.must_remember(slot, now) {
            self.set_phase(slot, Phase::Remembered);
            return None;
        }
        self.keys.remove(slot).map(|(key, _)| Forgotten(key))
    }

    /// The phase of the key whose run this is, if the run is on.
    fn phase_of(&self, ticket: &Ticket) -> Option<Phase> {
        let phase = self.keys.value(ticket.slot)?.phase;
        match phase {
            Phase::Running { run, .. } | Phase::Requested { run, .. } if run == ticket.run => {
                Some(phase)
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
                self.queue.tidy(&mut self.keys);
                let Next::Due(due) = self.queue.next()? else { return None };
                if !self.rounds.admit(due, now) {
                    return None;
                }
                self.queue.pop_first(&mut self.keys)
            }
        }
    }

    /// D15: everything that waits is due, but D16 holds.
    fn next_of_all(&mut self, now: Timestamp) -> Option<(Position, Slot)> {
        /// Keys set aside in one call: the caller comes again (D18).
        const AT_ONCE: usize = 64;
        for _ in 0..AT_ONCE {
            let Some((position, slot)) = self.queue.pop_first(&mut self.keys) else { break };
            if self.intervals.not_before(slot) <= now {
                return Some((position, slot));
            }
            self.held_by_interval.insert(self.held_position(slot), slot);
        }
        if !self.queue.is_empty() {
            return None;
        }
        let first = self.held_by_interval.first_entry()?;
        if first.key().due > now {
            return None;
        }
        Some(first.remove_entry())
    }
}
