use super::{Cancelled, Position, Schedule, Timestamp};
use crate::{
    Debounce, KeyState, ScheduleError, Scheduled,
    deadlines::Deadlines,
    hand_out::Accepted,
    intake::Intake,
    key_record::{KeyRecord, Phase, Request},
    key_store::Key,
    slab::Slot,
};

/// What the shell calls, which computes hashes outside its lock.
impl<K: Eq, S> Schedule<K, S> {
    pub(crate) fn request(
        &mut self,
        hash: u64,
        key: K,
        debounce: Debounce,
        now: Timestamp,
    ) -> Result<Accepted<K>, ScheduleError<K>> {
        if !matches!(self.intake, Intake::Open) {
            return Err(ScheduleError::Closed(key));
        }
        let now = self.advance(now);
        let found = self.keys.find(hash, &key);
        let phase = found.and_then(|slot| self.keys.value(slot)).map(|record| record.phase);
        match (found, phase) {
            (Some(slot), Some(Phase::Running { run, .. })) => {
                let request = Request::first(debounce, now, self.next_number());
                self.set_phase(slot, Phase::Requested { run, request });
                Ok(Accepted { how: Scheduled::AfterRun, slot, spare: Some(key) })
            }
            (Some(slot), Some(Phase::Requested { run, mut request })) => {
                request.deadlines.request(debounce, now);
                self.set_phase(slot, Phase::Requested { run, request });
                Ok(Accepted { how: Scheduled::AfterRun, slot, spare: Some(key) })
            }
            (Some(slot), Some(Phase::Waiting(request))) => {
                self.join(slot, request, debounce, now);
                Ok(Accepted { how: Scheduled::Joined, slot, spare: Some(key) })
            }
            (Some(slot), Some(Phase::Backoff { due, order, .. })) => {
                self.bring_forward(slot, Position { due, order }, debounce, now);
                Ok(Accepted { how: Scheduled::Joined, slot, spare: Some(key) })
            }
            _ if self.is_full() => Err(ScheduleError::Full(key)),
            // What is parked is not met: a drain refuses requests.
            (Some(slot), _) => {
                self.intervals.recall(slot);
                let request = Request::first(debounce, now, self.next_number());
                self.set_phase(slot, Phase::Waiting(request));
                self.enqueue(slot, now);
                Ok(Accepted { how: Scheduled::New, slot, spare: Some(key) })
            }
            (None, _) => {
                let record = KeyRecord::new(Request::first(debounce, now, self.next_number()));
                let slot = self.keys.insert(hash, Key::Own(key), record);
                self.enqueue(slot, now);
                Ok(Accepted { how: Scheduled::New, slot, spare: None })
            }
        }
    }

    pub(crate) fn cancel_hashed(&mut self, hash: u64, key: &K, now: Timestamp) -> Cancelled<K> {
        let now = self.advance(now);
        let nothing = Cancelled { found: false, running: false, forgotten: None };
        let Some(slot) = self.keys.find(hash, key) else { return nothing };
        let Some(record) = self.keys.value_mut(slot) else { return nothing };
        match record.phase {
            Phase::Remembered => nothing,
            Phase::Running { ref mut cancelled, .. } => {
                *cancelled = true;
                Cancelled { found: false, running: true, forgotten: None }
            }
            Phase::Requested { run, .. } => {
                record.phase = Phase::Running { run, failures: 0, cancelled: true };
                Cancelled { found: true, running: true, forgotten: None }
            }
            Phase::Waiting(_) | Phase::Backoff { .. } | Phase::Parked { .. } => {
                self.dequeue(slot);
                let forgotten = self.forget(slot, now);
                self.close_if_over(now);
                Cancelled { found: true, running: false, forgotten }
            }
        }
    }

    pub(crate) fn state_hashed(&self, hash: u64, key: &K, now: Timestamp) -> Option<KeyState> {
        let record = self.keys.value(self.keys.find(hash, key)?)?;
        record.state(now.max(self.now))
    }
}

impl<K, S> Schedule<K, S> {
    /// D2, D3: a request for a key that waits. A ready key stays in its place.
    fn join(&mut self, slot: Slot, was: Request, debounce: Debounce, now: Timestamp) {
        let mut request = was;
        if request.deadlines.due <= now {
            return;
        }
        request.deadlines.request(debounce, now);
        let (due, was) = (request.deadlines.due, was.deadlines.due);
        if due == was || due > was && self.queue.may_be_put_off(slot, &self.keys) {
            // What is put off is often put off again: the queue looks when the old due has come.
            self.set_phase(slot, Phase::Waiting(request));
            self.queue.tidy(&mut self.keys);
            return;
        }
        self.move_to(slot, Phase::Waiting(request), now);
    }

    /// D8: a request for a key in backoff.
    fn bring_forward(&mut self, slot: Slot, was: Position, debounce: Debounce, now: Timestamp) {
        if was.due <= now {
            let Position { due, order } = was;
            self.set_phase(slot, Phase::Backoff { due, order, failures: 0 });
            return;
        }
        let mut deadlines = Deadlines::not_requested(was.due);
        deadlines.request(debounce, now);
        let order = self.next_number();
        self.move_to(slot, Phase::Waiting(Request { deadlines, order }), now);
    }

    fn move_to(&mut self, slot: Slot, phase: Phase, now: Timestamp) {
        self.dequeue(slot);
        self.set_phase(slot, phase);
        self.enqueue(slot, now);
    }
}
