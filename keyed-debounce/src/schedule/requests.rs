use super::{Cancelled, Schedule, Timestamp};
use crate::{
    Debounce, KeyState, ScheduleError, Scheduled,
    deadlines::Deadlines,
    hand_out::Accepted,
    intake::Intake,
    key_record::{KeyRecord, Phase},
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
            (Some(slot), Some(Phase::Running { run, requested, cancelled })) => {
                self.request_during_run(slot, requested, debounce, now);
                self.set_phase(slot, Phase::Running { run, requested: true, cancelled });
                Ok(Accepted { how: Scheduled::AfterRun, slot, spare: Some(key) })
            }
            (Some(slot), Some(Phase::Waiting | Phase::Backoff | Phase::Parked)) => {
                self.join(slot, debounce, now);
                Ok(Accepted { how: Scheduled::Joined, slot, spare: Some(key) })
            }
            _ if self.is_full() => Err(ScheduleError::Full(key)),
            (Some(slot), _) => {
                self.recall(slot, debounce, now);
                Ok(Accepted { how: Scheduled::New, slot, spare: Some(key) })
            }
            (None, _) => {
                let record = KeyRecord::new(Deadlines::first(debounce, now), self.next_number());
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
            Phase::Running { run, requested, .. } => {
                record.phase = Phase::Running { run, requested: false, cancelled: true };
                Cancelled { found: requested, running: true, forgotten: None }
            }
            Phase::Waiting | Phase::Backoff | Phase::Parked => {
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
    /// D2, D3, D8: a request for a key that waits. A ready key stays in its place.
    fn join(&mut self, slot: Slot, debounce: Debounce, now: Timestamp) {
        let order = self.next_number();
        let Some(record) = self.keys.value_mut(slot) else { return };
        record.failures = 0;
        if record.position.due <= now {
            return;
        }
        record.deadlines.request(debounce, now);
        if let Phase::Backoff = record.phase {
            record.order = order;
        }
        record.phase = Phase::Waiting;
        self.dequeue(slot);
        self.enqueue(slot, now);
    }

    /// D6: a request for a key that runs.
    fn request_during_run(
        &mut self,
        slot: Slot,
        requested: bool,
        debounce: Debounce,
        now: Timestamp,
    ) {
        let order = self.next_number();
        let Some(record) = self.keys.value_mut(slot) else { return };
        if requested {
            record.deadlines.request(debounce, now);
        } else {
            record.deadlines = Deadlines::first(debounce, now);
            record.order = order;
        }
    }

    /// D16: a request for an absent key whose last start is remembered.
    fn recall(&mut self, slot: Slot, debounce: Debounce, now: Timestamp) {
        let order = self.next_number();
        let Some(record) = self.keys.value_mut(slot) else { return };
        self.remembered.remove(&(record.not_before, slot));
        *record = KeyRecord {
            not_before: record.not_before,
            ..KeyRecord::new(Deadlines::first(debounce, now), order)
        };
        self.enqueue(slot, now);
    }
}
