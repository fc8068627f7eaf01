use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::{
    task::coop::consume_budget,
    time::{Instant, Sleep},
};

use crate::{
    Event, KeyedDebouncer, Run, SchedulerError,
    hold::Hold,
    schedule::{HandOut, Timestamp},
};

impl<K: Send + Sync + 'static> KeyedDebouncer<K> {
    /// Waits for the next key that is due and takes hold of it.
    ///
    /// # Errors
    ///
    /// [`SchedulerError::Closed`] after [`close`](Self::close), or when a [`drain`](Self::drain)
    /// has handed out all it should.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a key is taken in the same step in which the future completes.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with a time driver, if it has to wait.
    pub async fn next(&self) -> Result<Run<K>, SchedulerError> {
        // A queue that always has something due must not keep others of this thread from running.
        consume_budget().await;
        if let Look::Answer(answer) = self.look(None) {
            return answer;
        }
        let mut timer = pin!(self.shared.clock.timer());
        let mut waiter = Waiter { debouncer: self, id: None, armed: None };
        poll_fn(|cx| waiter.poll(cx, timer.as_mut())).await
    }

    /// Looks for a run once. Who finds nothing and is `waiting` stands in line afterwards.
    fn look(&self, waiting: Option<(&mut Option<u64>, Waker)>) -> Look<K> {
        let found = self.shared.change(|state, now| {
            let over = state.schedule.is_over(now);
            let hand_out = if over { None } else { state.schedule.pop_due(now) };
            match (hand_out, waiting) {
                (None, Some((id, waker))) if !over => {
                    let wake = state.schedule.next_wake();
                    let (known, is_keeper) = state.waiters.wait(*id, waker, wake);
                    *id = Some(known);
                    Found::Nothing { wake: wake.filter(|_| is_keeper) }
                }
                (None, None) if !over => Found::Nothing { wake: None },
                (hand_out, waiting) => {
                    if let Some(id) = waiting.and_then(|(id, _)| id.take()) {
                        state.waiters.leave(id);
                    }
                    hand_out.map_or(Found::Over, |hand_out| Found::Due { hand_out, now })
                }
            }
        });
        match found {
            Found::Nothing { wake } => Look::Nothing { wake },
            Found::Over => Look::Answer(Err(SchedulerError::Closed)),
            Found::Due { hand_out, now } => Look::Answer(Ok(self.start(hand_out, now))),
        }
    }

    fn start(&self, hand_out: HandOut<K>, now: Timestamp) -> Run<K> {
        let attempt = hand_out.attempt;
        let late_by = now.saturating_since(hand_out.due);
        let key = Arc::clone(&hand_out.key);
        let hold = Hold::new(Arc::clone(&self.shared), hand_out, now);
        let run = Run::shared(Arc::clone(&key), attempt, Box::new(hold));
        self.shared.observe(&Event::Started { key: &key, attempt, late_by });
        run
    }
}

/// What there is under the lock.
enum Found<K> {
    Due { hand_out: HandOut<K>, now: Timestamp },
    Over,
    Nothing { wake: Option<Timestamp> },
}

/// What that means for a call of `next`.
enum Look<K> {
    Answer(Result<Run<K>, SchedulerError>),
    /// `wake`: when to look again, for the one who keeps the timer.
    Nothing {
        wake: Option<Timestamp>,
    },
}

/// One call of `next` that has to wait.
struct Waiter<'a, K: Send + Sync + 'static> {
    debouncer: &'a KeyedDebouncer<K>,
    id: Option<u64>,
    /// What the timer is set to.
    armed: Option<Instant>,
}

impl<K: Send + Sync + 'static> Waiter<'_, K> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut timer: Pin<&mut Sleep>,
    ) -> Poll<Result<Run<K>, SchedulerError>> {
        /// Looks in one poll. More are needed only while a drain sorts out what it may not run yet.
        const LOOKS: u32 = 16;
        for _ in 0..LOOKS {
            let wake = match self.debouncer.look(Some((&mut self.id, cx.waker().clone()))) {
                Look::Answer(answer) => return Poll::Ready(answer),
                Look::Nothing { wake: None } => return Poll::Pending,
                Look::Nothing { wake: Some(wake) } => wake,
            };
            let deadline = self.debouncer.shared.clock.instant(wake);
            if self.armed != Some(deadline) {
                timer.as_mut().reset(deadline);
                self.armed = Some(deadline);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.armed = None;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<K: Send + Sync + 'static> Drop for Waiter<'_, K> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // If it kept the timer, or was woken and did not look, somebody else is.
            self.debouncer.shared.change(|state, _| state.waiters.leave(id));
        }
    }
}
