use std::{
    fmt,
    future::{Future, poll_fn},
    hash::Hash,
    num::NonZeroUsize,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use async_trait::async_trait;
use tokio::{
    task::coop::consume_budget,
    time::{Instant, Sleep},
};

use crate::{
    Builder, Counts, Debounce, Event, KeyState, Run, ScheduleError, Scheduled, Scheduler,
    SchedulerError,
    driver::drive,
    hold::Hold,
    schedule::{HandOut, Timestamp},
    shared::Owner,
};

/// The scheduler in memory.
///
/// A handle: clones share one queue. The queue needs no task of its own. It lives as long as a handle
/// or a [`Run`] does, and those who wait in [`next`](Self::next) or [`run`](Self::run) keep its one
/// timer.
///
/// The rules it keeps are listed by name at the [crate root](crate).
pub struct KeyedDebouncer<K> {
    pub(crate) shared: Owner<K>,
    pub(crate) max_parallel: NonZeroUsize,
}

impl<K: Hash + Eq + Send + Sync + 'static> KeyedDebouncer<K> {
    /// A debouncer without limits that backs off as [`Exponential::DEFAULT`](crate::Exponential::DEFAULT) says.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Sets up a debouncer.
    pub fn builder() -> Builder<K> {
        Builder::new()
    }

    /// Requests a run of `key`. From any thread, inside a runtime or not; never waits for anything
    /// but a short lock.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Full`] if the key is new and there is no room, [`ScheduleError::Closed`]
    /// after [`close`](Self::close) or [`drain`](Self::drain). Both give the key back, and nothing
    /// has changed. It is never [`ScheduleError::Backend`].
    ///
    /// # Panics
    ///
    /// If the key's `Hash` or `Eq` does; nothing has changed then. Those two must not call the
    /// debouncer.
    pub fn schedule(&self, key: K, debounce: Debounce) -> Result<Scheduled, ScheduleError<K>> {
        self.shared.schedule(key, debounce)
    }

    /// Forgets what waits for `key`, and a request made during its run. The run itself goes on, and
    /// without a later request its outcome is dropped. Says whether there was anything to forget.
    pub fn cancel(&self, key: &K) -> bool {
        self.shared.cancel(key)
    }

    /// What is known of `key`; `None` if it is absent.
    pub fn state(&self, key: &K) -> Option<KeyState> {
        self.shared.state_of(key)
    }

    /// Runs `handler` for each key as it becomes due, several keys in parallel, as many as
    /// [`Builder::max_parallel`] allows. Returns when the debouncer is closed or drained and
    /// all its handlers have ended.
    ///
    /// The handler ends its run with [`Run::finish`]. A handler that panics, or forgets to, has
    /// failed: a [`Outcome::Retry`](crate::Outcome::Retry) for that key alone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the handlers that are on; their keys are retried.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with a time driver.
    pub async fn run<F, Fut>(&self, handler: F)
    where
        F: Fn(Run<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        // In memory nothing but closing ends it.
        let _closed = drive(self, self.max_parallel, handler).await;
    }
}

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

    /// Stops hand-outs, refuses requests and wakes everybody who waits in [`next`](Self::next).
    /// Calling it twice is fine. Runs that are on go on.
    pub fn close(&self) {
        self.shared.change(|state, _| state.schedule.close());
        self.shared.observe(&Event::Closed);
    }

    /// How many keys are in which state, computed from the state of each.
    ///
    /// Looks at all keys, some thousands at a time so that others get at the lock in between: with
    /// more keys than that the numbers are those of slightly different moments.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// How many keys are not absent. Does not look at each.
    pub fn len(&self) -> usize {
        self.shared.lock().schedule.len()
    }

    /// Whether all keys are absent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

#[async_trait]
impl<K: Hash + Eq + Send + Sync + 'static> Scheduler<K> for KeyedDebouncer<K> {
    async fn schedule(&self, key: K, debounce: Debounce) -> Result<Scheduled, ScheduleError<K>> {
        Self::schedule(self, key, debounce)
    }

    async fn next(&self) -> Result<Run<K>, SchedulerError> {
        Self::next(self).await
    }

    async fn cancel(&self, key: &K) -> Result<bool, SchedulerError> {
        Ok(Self::cancel(self, key))
    }

    async fn close(&self) {
        Self::close(self);
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> Default for KeyedDebouncer<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Clone for KeyedDebouncer<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), max_parallel: self.max_parallel }
    }
}

impl<K> fmt::Debug for KeyedDebouncer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedDebouncer")
            .field("schedule", &self.shared.lock().schedule)
            .field("max_parallel", &self.max_parallel)
            .finish_non_exhaustive()
    }
}
