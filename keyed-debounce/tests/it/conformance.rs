//! The conformance suite passes what keeps the rules and fails what breaks them.

use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use async_trait::async_trait;
use keyed_debounce::{
    Debounce, KeyState, KeyedDebouncer, Outcome, Run, RunHook, ScheduleError, Scheduled, Scheduler,
    SchedulerError,
    testing::{Backend, Op, Violation, check, check_ops, ops},
};
use proptest::prelude::*;

use crate::sim::bounded;

/// Ways to get it wrong, each as people do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A request during a run is a record of its own, which a free runner gets.
    TwoRunsOfAKey,
    /// A request during a run is dropped.
    LostRequest,
    /// Each request puts the run off, without an end.
    PostponedPromise,
    /// The last request wins, whatever it says.
    LastRequestWins,
    /// The first request wins: later ones are dropped until the run.
    FirstRequestWins,
    /// Keys run as soon as they are requested.
    NoDebounce,
    /// A run that fails, or is dropped, counts as done.
    FailedIsDone,
    /// Failures are not counted.
    NoBackoff,
    /// Deferred runs count as failures.
    DeferIsFailure,
    /// Who waits in `next` is not woken, it has to ask again.
    LostWakeUp,
    /// Closing does not wake who waits.
    SilentClose,
    /// `cancel` says yes and does nothing.
    NoCancel,
    /// The last key that is due leaves first.
    LastInFirstOut,
}

struct Faulty {
    fault: Fault,
    /// Keys with the number of the record, which is 0 but for `TwoRunsOfAKey`.
    queue: KeyedDebouncer<(u32, u8)>,
    closed: AtomicBool,
    held_back: Mutex<Vec<Run<(u32, u8)>>>,
}

impl Faulty {
    fn state(&self, key: u32) -> Option<KeyState> {
        self.queue.state(&(key, 0))
    }

    fn is_running(&self, key: u32) -> bool {
        matches!(self.state(key), Some(KeyState::Running { .. }))
    }

    async fn take(&self) -> Result<Run<(u32, u8)>, SchedulerError> {
        match self.fault {
            Fault::LostWakeUp => {
                let mut next = pin!(self.queue.next());
                // Looks when it happens to be asked.
                poll_fn(|_| next.as_mut().poll(&mut Context::from_waker(Waker::noop()))).await
            }
            Fault::SilentClose => {
                let came_late = self.closed.load(Ordering::SeqCst);
                match self.queue.next().await {
                    Err(SchedulerError::Closed) if !came_late => pending().await,
                    answer => answer,
                }
            }
            _ => self.queue.next().await,
        }
    }
}

#[async_trait]
impl Scheduler<u32> for Faulty {
    async fn schedule(
        &self,
        key: u32,
        debounce: Debounce,
    ) -> Result<Scheduled, ScheduleError<u32>> {
        let mut record = (key, 0);
        let mut debounce = debounce;
        match self.fault {
            Fault::TwoRunsOfAKey if self.is_running(key) => record.1 = 1,
            Fault::LostRequest if self.is_running(key) => return Ok(Scheduled::AfterRun),
            Fault::FirstRequestWins if self.state(key).is_some() && !self.is_running(key) => {
                return Ok(Scheduled::Joined);
            }
            Fault::PostponedPromise => debounce.max_wait = Duration::MAX,
            Fault::LastRequestWins if !self.is_running(key) && self.queue.cancel(&record) => {
                self.queue.schedule(record, debounce).unwrap();
                return Ok(Scheduled::Joined);
            }
            Fault::NoDebounce => debounce = Debounce::immediate(),
            _ => {}
        }
        match self.queue.schedule(record, debounce) {
            Ok(_) if record.1 == 1 => Ok(Scheduled::AfterRun),
            Ok(how) => Ok(how),
            Err(ScheduleError::Closed((key, _))) => Err(ScheduleError::Closed(key)),
            Err(_) => Err(ScheduleError::Full(key)),
        }
    }

    async fn next(&self) -> Result<Run<u32>, SchedulerError> {
        let run = match self.fault {
            Fault::LastInFirstOut => {
                let held = self.held_back.lock().unwrap().pop();
                match held {
                    Some(run) => run,
                    None => {
                        let first = self.take().await?;
                        let second = futures::FutureExt::now_or_never(self.queue.next());
                        match second {
                            Some(Ok(second)) => {
                                self.held_back.lock().unwrap().push(first);
                                second
                            }
                            _ => first,
                        }
                    }
                }
            }
            _ => self.take().await?,
        };
        let (key, attempt) = (run.key().0, run.attempt());
        let hook = Hook { fault: self.fault, run };
        Ok(Run::new(key, attempt, Box::new(hook)))
    }

    async fn cancel(&self, key: &u32) -> Result<bool, SchedulerError> {
        if self.fault == Fault::NoCancel {
            return Ok(self.state(*key).is_some());
        }
        Ok(self.queue.cancel(&(*key, 0)))
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.queue.close();
    }
}

struct Hook {
    fault: Fault,
    run: Run<(u32, u8)>,
}

#[async_trait]
impl RunHook for Hook {
    fn settle(self: Box<Self>, outcome: Outcome) {
        let outcome = match (self.fault, outcome) {
            (Fault::FailedIsDone, Outcome::Retry) => Outcome::Done,
            (Fault::NoBackoff, Outcome::Retry) => Outcome::RetryAfter(Duration::from_secs(20)),
            (Fault::DeferIsFailure, Outcome::Defer(delay)) => Outcome::RetryAfter(delay),
            (_, outcome) => outcome,
        };
        self.run.finish(outcome);
    }

    async fn scheduled_again(&self) {
        self.run.scheduled_again().await;
    }
}

#[async_trait]
impl Backend for Fault {
    type Key = u32;
    type Scheduler = Faulty;

    async fn fresh(&self) -> Faulty {
        Faulty {
            fault: *self,
            queue: KeyedDebouncer::new(),
            closed: AtomicBool::new(false),
            held_back: Mutex::default(),
        }
    }

    fn key(&self, number: u32) -> u32 {
        number
    }

    async fn advance(&self, by: Duration) {
        tokio::time::advance(by).await;
    }
}

struct InMemory;

#[async_trait]
impl Backend for InMemory {
    type Key = String;
    type Scheduler = KeyedDebouncer<String>;

    async fn fresh(&self) -> KeyedDebouncer<String> {
        KeyedDebouncer::new()
    }

    fn key(&self, number: u32) -> String {
        format!("key {number}")
    }

    async fn advance(&self, by: Duration) {
        tokio::time::advance(by).await;
    }
}

/// D20: ours keeps the rules, and so does one built over it with hooks of its own.
#[tokio::test(start_paused = true)]
async fn what_keeps_the_rules_passes() {
    check(&InMemory).await.unwrap_or_else(|broken| panic!("{broken}"));
    check(&Fault::None).await.unwrap_or_else(|broken| panic!("{broken}"));
}

/// D20: each fault is found, under the name of the rule it breaks.
#[tokio::test(start_paused = true)]
async fn what_breaks_a_rule_fails() {
    let mut wrong = Vec::new();
    for (fault, rule) in [
        (Fault::TwoRunsOfAKey, "D5"),
        (Fault::LostRequest, "D5"),
        (Fault::PostponedPromise, "D1"),
        (Fault::LastRequestWins, "D2"),
        (Fault::FirstRequestWins, "D2"),
        (Fault::NoDebounce, "D1"),
        (Fault::FailedIsDone, "D7"),
        (Fault::NoBackoff, "D7"),
        (Fault::DeferIsFailure, "D7"),
        (Fault::LostWakeUp, "D13"),
        (Fault::SilentClose, "D15"),
        (Fault::NoCancel, "D19"),
        (Fault::LastInFirstOut, "D3"),
    ] {
        let broken = check(&fault).await.expect_err(&format!("{fault:?} was not found"));
        if !broken.rules.split(", ").any(|name| name == rule) {
            wrong.push(format!("{fault:?} was found as {broken}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// D20: random sequences alone find the faults too, and what they report is short.
#[tokio::test(start_paused = true)]
async fn a_violation_says_how_to_see_it() {
    let steps = [
        Op::Schedule(0, Debounce::immediate()),
        Op::Take,
        Op::Schedule(0, Debounce::immediate()),
        Op::Take,
    ];
    let broken: Violation = check_ops(&Fault::TwoRunsOfAKey, &steps).await.unwrap_err();
    assert!(broken.what.contains("key 0 was handed out while a run of it is on"), "{broken}");
    assert_eq!(broken.steps.len(), 4);
    assert!(broken.to_string().contains("Take"));
}

proptest! {
    /// D20: the strategies fit the checks: ours passes whatever they make up.
    #[test]
    fn ours_passes_any_sequence(ops in ops(0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let result = runtime.block_on(check_ops(&InMemory, &ops));
        prop_assert!(result.is_ok(), "{}", result.unwrap_err());
    }
}

/// The faults are those of the wrapper, not of what it wraps.
#[tokio::test(start_paused = true)]
async fn the_wrapper_without_a_fault_waits_as_ours_does() {
    bounded();
    let queue = Fault::None.fresh().await;
    let mut next = pin!(queue.next());
    let first = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx).is_pending())).await;
    assert!(first);
    queue.schedule(7, Debounce::after(Duration::from_secs(1))).await.unwrap();
    assert_eq!(*next.await.unwrap().key(), 7);
}
