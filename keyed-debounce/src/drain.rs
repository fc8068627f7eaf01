use std::{pin::pin, time::Duration};

use tokio::time::timeout;

use crate::{Counts, Drain, KeyedDebouncer};

impl<K: Send + Sync + 'static> KeyedDebouncer<K> {
    /// Shuts down in order: refuses requests, waits until what `what` names has run, at most for
    /// `deadline`, and closes. Returns what is left; nothing is, if its [`total`](Counts::total) is
    /// zero.
    ///
    /// It runs nothing itself: those who call [`next`](Self::next) or [`run`](Self::run) go on until
    /// they are told that it is over. Each key is handed out at most once more: one that fails is
    /// left. A key that was requested during its run is run again for that.
    ///
    /// After the deadline runs that are still on go on, and count as left.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the debouncer goes on draining, without a deadline. It can be
    /// drained again, also for more, or closed.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with a time driver.
    pub async fn drain(&self, what: Drain, deadline: Duration) -> Counts {
        self.shared.change(|state, now| state.schedule.begin_drain(what, now));
        // Past the deadline there is nothing to do but to count.
        let _in_time = timeout(deadline, self.drained()).await;
        self.close();
        self.counts()
    }

    async fn drained(&self) {
        loop {
            let mut told = pin!(self.shared.drained.notified());
            told.as_mut().enable();
            let now = self.shared.clock.now();
            {
                let state = self.shared.lock();
                if state.schedule.is_over(now) && state.schedule.running_len() == 0 {
                    return;
                }
            }
            told.await;
        }
    }
}
