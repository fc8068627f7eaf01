use std::{collections::BTreeMap, mem, task::Waker, time::Duration};

use crate::timestamp::Timestamp;

/// Those who wait for a run, oldest first.
///
/// One of them, the keeper, holds the one timer of the queue. It is woken when the timer goes off
/// or when the head of the queue moves earlier; when it leaves, with a run or because it was
/// dropped, the next one becomes the keeper and is woken to look. So a change wakes one waiter and
/// each waiter that gets a run wakes one more: there is no stampede, and no wake-up is lost.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: BTreeMap<u64, Waker>,
    next_id: u64,
    keeper: Option<u64>,
    /// When the keeper will look again, or was told to look. `None`: never.
    armed: Option<Timestamp>,
    spent: Vec<Waker>,
}

impl Waiters {
    /// Registers a waiter that found nothing, or renews its waker. `wake` is when something may be
    /// found. Returns its number and whether it is the keeper, who must arm the timer for `wake`.
    pub(crate) fn wait(
        &mut self,
        id: Option<u64>,
        waker: Waker,
        wake: Option<Timestamp>,
    ) -> (u64, bool) {
        let id = id.unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id
        });
        if let Some(old) = self.waiting.insert(id, waker) {
            self.spent.push(old);
        }
        let is_keeper = *self.keeper.get_or_insert(id) == id;
        if is_keeper {
            self.armed = wake;
        }
        (id, is_keeper)
    }

    /// A waiter has got its run, or gave up. The caller then tells of the head once more.
    pub(crate) fn leave(&mut self, id: u64) {
        self.spent.extend(self.waiting.remove(&id));
        if self.keeper == Some(id) {
            self.keeper = None;
        }
    }

    /// Wakers that are no longer needed. Dropping the last one of a task may drop the task, and
    /// what it holds: so not under the lock.
    pub(crate) fn take_spent(&mut self) -> Vec<Waker> {
        mem::take(&mut self.spent)
    }

    /// Something may be found at `wake`. Returns whom to wake, so that somebody looks by then.
    ///
    /// A keeper that should have looked a second ago and did not is passed over: it may belong to a
    /// future that nobody polls any more.
    #[must_use]
    pub(crate) fn head_is(&mut self, wake: Option<Timestamp>, now: Timestamp) -> Option<Waker> {
        const LATE: Duration = Duration::from_secs(1);
        let wake = wake?;
        let is_late = self.armed.is_some_and(|armed| armed + LATE <= now);
        let keeper = match self.keeper {
            Some(keeper) if is_late => self.after(keeper)?,
            Some(_) if self.armed.is_some_and(|armed| armed <= wake) => return None,
            Some(keeper) => keeper,
            None => *self.waiting.first_key_value()?.0,
        };
        self.keeper = Some(keeper);
        self.armed = Some(wake.max(now));
        self.waiting.get(&keeper).cloned()
    }

    /// The next in line, and after the last the first.
    fn after(&self, id: u64) -> Option<u64> {
        let after = self.waiting.range(id + 1..).next();
        after.or_else(|| self.waiting.first_key_value()).map(|(&id, _)| id)
    }

    /// Everybody, to be told once that nothing will come.
    #[must_use]
    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        self.keeper = None;
        mem::take(&mut self.waiting).into_values().collect()
    }
}
