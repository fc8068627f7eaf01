use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use crate::{
    Debounce, Outcome, Run, ScheduleError, Scheduler, SchedulerError,
    schedule::{Ending, Settings, Timestamp},
    testing::{Backend, Model, Op},
};

/// A scheduler and the model side by side.
pub(super) struct Trial<'a, B: Backend> {
    backend: &'a B,
    scheduler: B::Scheduler,
    model: Model<u32>,
    now: Timestamp,
    runs: Vec<(u32, Run<B::Key>)>,
    keys: Vec<B::Key>,
    pub(super) steps: Vec<String>,
}

/// How many keys the operations use.
pub(super) const KEYS: u32 = 6;

type Checked = Result<(), String>;

impl<'a, B: Backend> Trial<'a, B> {
    pub(super) async fn new(backend: &'a B) -> Self {
        Self {
            backend,
            scheduler: backend.fresh().await,
            model: Model::new(Settings::default()),
            now: Timestamp::ORIGIN,
            runs: Vec::new(),
            keys: (0..KEYS).map(|number| backend.key(number)).collect(),
            steps: Vec::new(),
        }
    }

    /// Does all operations and lets the scheduler come to an end.
    pub(super) async fn run(&mut self, ops: &[Op]) -> Checked {
        for &op in ops {
            self.step(op).await?;
        }
        self.run_out().await
    }

    async fn step(&mut self, op: Op) -> Checked {
        self.steps.push(format!("{op:?}"));
        match op {
            Op::Advance(by) => {
                self.now = self.now + by;
                self.backend.advance(by).await;
                Ok(())
            }
            Op::Schedule(key, debounce) => self.schedule(key % KEYS, debounce).await,
            Op::Take => self.take().await.map(drop),
            Op::Finish(run, outcome) => self.finish(run, Some(outcome)).await,
            Op::Drop(run) => self.finish(run, None).await,
            Op::Cancel(key) => self.cancel(key % KEYS).await,
        }
    }

    async fn schedule(&mut self, key: u32, debounce: Debounce) -> Checked {
        let expected = self.model.schedule(key, debounce, self.now);
        let answer = self.scheduler.schedule(self.keys[key as usize].clone(), debounce).await;
        match answer {
            Ok(how) if Some(how) == expected => Ok(()),
            Ok(how) => Err(format!("the request was answered {how:?}, not {expected:?}")),
            Err(ScheduleError::Backend { source, .. }) => {
                Err(format!("the store failed: {source}"))
            }
            Err(refused) => Err(format!("the request was refused: {refused}")),
        }
    }

    /// Takes a run if there is one, and says whether there was.
    async fn take(&mut self) -> Result<bool, String> {
        let Some(run) = self.next().await? else {
            let tolerance = self.backend.tolerance();
            let noticed = self.now.since_origin().checked_sub(tolerance);
            let overdue =
                noticed.and_then(|noticed| self.model.next(Timestamp::from_origin(noticed)));
            return match overdue {
                None => Ok(false),
                Some(key) => Err(format!("key {key} is due, but nothing was handed out")),
            };
        };
        let key = self.number(run.key())?;
        if self.runs.iter().any(|(on, _)| *on == key) {
            return Err(format!("key {key} was handed out while a run of it is on"));
        }
        if !self.model.ready(self.now).contains(&key) {
            let state = self.model.state(&key, self.now);
            return Err(format!("key {key} was handed out, but it is {state:?} at {:?}", self.now));
        }
        let first = self.model.next(self.now);
        if self.backend.tolerance().is_zero() && first != Some(key) {
            return Err(format!("key {key} was handed out before {first:?}"));
        }
        let attempt = self.model.start(&key, self.now);
        if run.attempt() != attempt {
            let said = run.attempt();
            return Err(format!("the run says that it is attempt {said}, not {attempt}"));
        }
        self.runs.push((key, run));
        Ok(true)
    }

    /// Polls `next` a few times and drops it if nothing comes (D19).
    async fn next(&self) -> Result<Option<Run<B::Key>>, String> {
        let mut next = pin!(self.scheduler.next());
        for _ in 0..3 {
            let polled = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
            match polled {
                Poll::Ready(Ok(run)) => return Ok(Some(run)),
                Poll::Ready(Err(SchedulerError::Closed)) => {
                    return Err("`next` says closed, but nobody closed it".to_owned());
                }
                Poll::Ready(Err(SchedulerError::Backend(source))) => {
                    return Err(format!("the store failed: {source}"));
                }
                Poll::Pending => self.backend.settle().await,
            }
        }
        Ok(None)
    }

    async fn finish(&mut self, run: usize, outcome: Option<Outcome>) -> Checked {
        if self.runs.is_empty() {
            return Ok(());
        }
        let (key, run) = self.runs.swap_remove(run % self.runs.len());
        let meant = outcome.unwrap_or(Outcome::Retry);
        let ending = Ending::new(meant, run.attempt(), self.backend.backoff(), 0);
        match outcome {
            Some(outcome) => run.finish(outcome),
            None => drop(run),
        }
        self.backend.settle().await;
        self.model.finish(&key, ending, self.now);
        Ok(())
    }

    async fn cancel(&mut self, key: u32) -> Checked {
        let expected = self.model.cancel(&key);
        match self.scheduler.cancel(&self.keys[key as usize]).await {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => Err(format!("cancel answered {found}, not {expected}")),
            Err(failed) => Err(format!("cancel failed: {failed}")),
        }
    }

    /// Ends all runs well and lets time go on until all that waits has run.
    async fn run_out(&mut self) -> Checked {
        const STEPS: usize = 1000;
        for _ in 0..STEPS {
            if !self.runs.is_empty() {
                self.step(Op::Finish(0, Outcome::Done)).await?;
                continue;
            }
            let Some(wake) = self.model.next_wake() else {
                // D9: nothing is left, so nothing may come.
                return self.step(Op::Take).await;
            };
            if wake == Timestamp::MAX {
                self.cancel_the_endless().await?;
                continue;
            }
            let wait = wake.saturating_since(self.now) + self.backend.tolerance();
            if !wait.is_zero() {
                self.step(Op::Advance(wait)).await?;
            }
            self.step(Op::Take).await?;
        }
        Err(format!("keys are still waiting after {STEPS} steps"))
    }

    async fn cancel_the_endless(&mut self) -> Checked {
        for key in 0..KEYS {
            self.step(Op::Cancel(key)).await?;
        }
        Ok(())
    }

    fn number(&self, key: &B::Key) -> Result<u32, String> {
        (0..KEYS)
            .find(|number| self.keys[*number as usize] == *key)
            .ok_or_else(|| format!("{key:?} was handed out, which nobody requested"))
    }

    /// How far time has gone.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.since_origin()
    }
}
