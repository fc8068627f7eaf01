//! Schedulers and throttles of others: slow, failing, with leases, or saying yes and no.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use async_trait::async_trait;
use purgatory_sync::{
    Activity, Arrival, FetchErrorKind, FetchOutcome, HeldError, Identifier, PassEnd, State,
    SyncEvent,
    domain_throttle::{
        Denied, DomainThrottle, Endpoint, Feedback, Permit, PermitHook, Throttle, ThrottleError,
    },
    keyed_debounce::{
        Debounce, KeyedDebouncer, Outcome, Run, RunHook, ScheduleError, Scheduled, Scheduler,
        SchedulerError,
    },
};
use tokio::sync::Notify;

use crate::common::*;

/// A scheduler over a store that takes its time, and fails when it is told.
struct SlowScheduler {
    inner: KeyedDebouncer<Identifier>,
    fail_schedule: AtomicBool,
    fail_next: AtomicBool,
    panic_next: AtomicBool,
    lose: Arc<Notify>,
    /// How long it takes from a request to its effect, from there to the answer, and from a
    /// hand-out to its arrival.
    delays: [std::time::Duration; 3],
}

impl SlowScheduler {
    fn new() -> Arc<Self> {
        Self::with_delays([ms(20), ms(0), ms(0)])
    }

    fn with_delays(delays: [std::time::Duration; 3]) -> Arc<Self> {
        let off = || AtomicBool::new(false);
        let (inner, lose) = (KeyedDebouncer::new(), Arc::new(Notify::new()));
        let (fail_schedule, fail_next, panic_next) = (off(), off(), off());
        Arc::new(Self { inner, fail_schedule, fail_next, panic_next, lose, delays })
    }
}

/// A hold with a lease that can be lost.
struct Lease {
    run: Run<Identifier>,
    lose: Arc<Notify>,
    lost: AtomicBool,
}

#[async_trait]
impl RunHook for Lease {
    fn settle(self: Box<Self>, outcome: Outcome) {
        // What a holder says that has lost its hold does not count: the run is dropped.
        if !self.lost.load(SeqCst) {
            self.run.finish(outcome);
        }
    }
    async fn scheduled_again(&self) {
        self.run.scheduled_again().await;
    }
    async fn lost(&self) {
        if !self.lost.load(SeqCst) {
            self.lose.notified().await;
            self.lost.store(true, SeqCst);
        }
    }
}

#[async_trait]
impl Scheduler<Identifier> for SlowScheduler {
    async fn schedule(
        &self,
        key: Identifier,
        debounce: Debounce,
    ) -> Result<Scheduled, ScheduleError<Identifier>> {
        tokio::time::sleep(self.delays[0]).await;
        if self.fail_schedule.swap(false, SeqCst) {
            return Err(ScheduleError::Backend { key, source: "the store is away".into() });
        }
        let scheduled = self.inner.schedule(key, debounce)?;
        tokio::time::sleep(self.delays[1]).await;
        Ok(scheduled)
    }
    async fn next(&self) -> Result<Run<Identifier>, SchedulerError> {
        if self.fail_next.swap(false, SeqCst) {
            return Err(SchedulerError::Backend("the store is away".into()));
        }
        assert!(!self.panic_next.swap(false, SeqCst), "the scheduler panics, as the test wants");
        let run = self.inner.next().await?;
        tokio::time::sleep(self.delays[2]).await;
        let (key, attempt) = (run.key().clone(), run.attempt());
        Ok(Run::new(
            key,
            attempt,
            Box::new(Lease { run, lose: self.lose.clone(), lost: false.into() }),
        ))
    }
    async fn cancel(&self, key: &Identifier) -> Result<bool, SchedulerError> {
        Ok(self.inner.cancel(key))
    }
    async fn close(&self) {
        self.inner.close();
    }
}

/// A scheduler that does not answer at once is waited for by a task; the caller never waits.
#[tokio::test(start_paused = true)]
async fn a_scheduler_that_takes_its_time_is_fine() {
    let scheduler = SlowScheduler::new();
    let world = World::build(|config| config, |builder| builder.scheduler(scheduler));
    world.git.put([oid(1)]);
    world.state("a", "state", &[1]);
    assert!(matches!(world.state_of("a"), Some(State::Waiting { .. })), "and seen at once");
    assert!(!world.sync.snapshot().no_source_left());
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
    assert_eq!(millis(world.told.starts("a")[0] - world.began), 520);
    world.sync.shutdown().await;
}

/// A request that comes between a hand-out and its arrival here is seen, and is answered by another pass.
#[tokio::test(start_paused = true)]
async fn a_request_on_the_way_of_a_hand_out_is_not_forgotten() {
    let scheduler = SlowScheduler::with_delays([ms(0), ms(0), ms(100)]);
    let world = World::build(|config| config, |builder| builder.scheduler(scheduler));
    world.git.put([oid(1)]);
    world.state("a", "first", &[1]);
    pass(ms(550)).await; // handed out at 500 ms, here at 600 ms
    world.state("a", "second", &[1]);
    pass(ms(100)).await;
    assert_eq!(world.told.passes().len(), 1);
    assert!(matches!(world.state_of("a"), Some(State::Waiting { .. })), "another pass will come");
    world.idle().await;
    assert_eq!(world.told.passes().len(), 2);
}

/// An answer that comes after the pass that it is about leaves nothing queued that is not, and a scheduler that is
/// always late does not make passes without end.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_its_pass_leaves_nothing_behind() {
    let scheduler = SlowScheduler::with_delays([ms(0), ms(800), ms(0)]);
    let world = World::build(|config| config, |builder| builder.scheduler(scheduler));
    world.git.put([oid(1)]);
    world.state("a", "state", &[1]);
    pass(ms(700)).await;
    assert_eq!(world.store.released(), ["state"]);
    assert_eq!(world.sync.queued(), 1, "nobody can tell yet");
    world.idle().await;
    assert_eq!(world.told.passes().len(), 2, "one more, to be sure");
}

/// A scheduler that fails to take a request loses nothing: the store is asked later.
#[tokio::test(start_paused = true)]
async fn a_scheduler_that_fails_loses_nothing() {
    let scheduler = SlowScheduler::new();
    scheduler.fail_next.store(true, SeqCst);
    scheduler.panic_next.store(true, SeqCst);
    let world = World::build(|config| config, |builder| builder.scheduler(scheduler.clone()));
    pass(secs(5)).await;
    scheduler.fail_schedule.store(true, SeqCst);
    world.git.put([oid(1)]);
    world.state("a", "state", &[1]);
    pass(ms(100)).await;
    assert!(world.sync.snapshot().identifiers.is_empty(), "it was not taken");
    assert!(!world.sync.snapshot().is_idle(), "and is not forgotten");
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
}

/// A scheduler that fails at once tells the caller.
#[tokio::test(start_paused = true)]
async fn a_scheduler_that_fails_at_once_tells_the_caller() {
    struct Broken(KeyedDebouncer<Identifier>);
    #[async_trait]
    impl Scheduler<Identifier> for Broken {
        async fn schedule(
            &self,
            key: Identifier,
            _: Debounce,
        ) -> Result<Scheduled, ScheduleError<Identifier>> {
            assert_ne!(key.as_str(), "panic", "as the test wants");
            Err(ScheduleError::Backend { key, source: "the store is away".into() })
        }
        async fn next(&self) -> Result<Run<Identifier>, SchedulerError> {
            self.0.next().await
        }
        async fn cancel(&self, _: &Identifier) -> Result<bool, SchedulerError> {
            Ok(false)
        }
        async fn close(&self) {
            self.0.close();
        }
    }
    let broken = Arc::new(Broken(KeyedDebouncer::new()));
    let world = World::build(|config| config, |builder| builder.scheduler(broken));
    for id in ["a", "panic"] {
        let error = world.sync.event_held(id, Arrival::Synced).unwrap_err();
        assert!(
            matches!(&error, HeldError::Scheduler { identifier, .. } if identifier.as_str() == id)
        );
        assert!(std::error::Error::source(&error).is_some());
    }
    assert!(world.sync.snapshot().identifiers.is_empty());
    world.sync.shutdown().await;
}

/// A scheduler that is closed by its owner ends the engine.
#[tokio::test(start_paused = true)]
async fn a_scheduler_that_is_closed_from_outside_ends_the_engine() {
    let scheduler = SlowScheduler::new();
    let world = World::build(|config| config, |builder| builder.scheduler(scheduler.clone()));
    pass(secs(1)).await;
    scheduler.close().await;
    pass(secs(1)).await;
    assert!(world.sync.snapshot().stopping);
    assert!(world.sync.event_held("a", Arrival::Synced).is_err());
}

/// A hold that is lost ends the pass and its fetch: another process may work on it now.
#[tokio::test(start_paused = true)]
async fn a_lost_hold_ends_the_pass_and_its_fetch() {
    let scheduler = SlowScheduler::new();
    let lose = scheduler.lose.clone();
    let world = World::build(|config| config, |builder| builder.scheduler(scheduler));
    let silent = url("https://silent.example/a.git");
    world.git.always(&silent, Reply::Hang);
    world.announce("a", &[&silent]);
    world.state("a", "state", &[1]);
    pass(secs(1)).await;
    assert_eq!(world.git.on(), 1);
    lose.notify_one();
    pass(ms(1)).await;
    assert_eq!(world.git.on(), 0);
    assert_eq!(world.told.passes()[0].summary.why, PassEnd::Lost);
    let cancelled = world.told.all().into_iter().any(|(_, event)| {
        matches!(event, SyncEvent::FetchEnded(fetch) if fetch.outcome == FetchOutcome::Cancelled)
    });
    assert!(cancelled);
}

/// What a throttle of the tests does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Says that there is capacity, and gives no permit.
    YesAndNo,
    /// Has no place in line.
    NoPlace,
    /// Panics.
    Panics,
    /// Loses every permit after a second.
    Loses,
}

struct OddThrottle {
    inner: DomainThrottle,
    manner: Manner,
    calls: AtomicUsize,
}

struct Losing(#[expect(dead_code, reason = "held until the hook is settled")] Permit);

#[async_trait]
impl PermitHook for Losing {
    fn settle(self: Box<Self>, _: Feedback) {}
    async fn lost(&self) {
        tokio::time::sleep(secs(1)).await;
    }
}

#[async_trait]
impl Throttle for OddThrottle {
    async fn check(&self, at: &Endpoint, key: &str) -> Result<(), Denied> {
        self.calls.fetch_add(1, SeqCst);
        assert!(self.manner != Manner::Panics, "the throttle panics, as the test wants");
        match self.manner {
            Manner::NoPlace => Err(Denied::Concurrency),
            _ => self.inner.check(at, key),
        }
    }
    async fn try_acquire(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied> {
        self.calls.fetch_add(1, SeqCst);
        match self.manner {
            Manner::YesAndNo => Err(Denied::Concurrency),
            _ => {
                let permit = self.inner.try_acquire(at, key)?;
                Ok(Permit::new(at.clone(), Box::new(Losing(permit))))
            }
        }
    }
    async fn acquire_any(&self, _: &[Endpoint], _: &str) -> Result<Permit, ThrottleError> {
        self.calls.fetch_add(1, SeqCst);
        match self.manner {
            Manner::NoPlace => Err(ThrottleError::TooManyWaiters),
            _ => std::future::pending().await,
        }
    }
}

fn odd(manner: Manner) -> (World, Arc<OddThrottle>) {
    let inner = DomainThrottle::new();
    let throttle = Arc::new(OddThrottle { inner, manner, calls: AtomicUsize::new(0) });
    let given = throttle.clone();
    let world = World::build(|config| config, |builder| builder.throttle(given));
    let server = url("https://one.example/a.git");
    world.git.always(&server, Reply::Hang);
    world.announce("a", &[&server]);
    world.state("a", "state", &[1]);
    (world, throttle)
}

/// Notes what it is told of each request.
#[derive(Default)]
struct Listening {
    inner: DomainThrottle,
    heard: Arc<std::sync::Mutex<Vec<Feedback>>>,
}

struct Ear {
    permit: Permit,
    heard: Arc<std::sync::Mutex<Vec<Feedback>>>,
}

impl PermitHook for Ear {
    fn settle(self: Box<Self>, feedback: Feedback) {
        self.heard.lock().unwrap().push(feedback);
        self.permit.finish(Feedback::Unused);
    }
}

#[async_trait]
impl Throttle for Listening {
    async fn check(&self, at: &Endpoint, key: &str) -> Result<(), Denied> {
        self.inner.check(at, key)
    }
    async fn try_acquire(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied> {
        let permit = self.inner.try_acquire(at, key)?;
        Ok(Permit::new(at.clone(), Box::new(Ear { permit, heard: self.heard.clone() })))
    }
    async fn acquire_any(&self, at: &[Endpoint], key: &str) -> Result<Permit, ThrottleError> {
        self.inner.acquire_any(at, key).await
    }
}

/// L10, P11: what the throttle is told, by the class of the failure.
#[tokio::test(start_paused = true)]
async fn the_throttle_is_told_the_class_of_each_failure() {
    use FetchErrorKind as K;
    let fail = Reply::Fail;
    let rows = [
        (Reply::Serve, Feedback::Ok),
        (Reply::Lie(vec![]), Feedback::Ok),
        (Reply::RetryAfter(secs(7)), Feedback::RetryAfter(secs(7))),
        (fail(K::RateLimited), Feedback::RetryAfter(secs(60))),
        (fail(K::Dns), Feedback::Broken),
        (fail(K::Tls), Feedback::Broken),
        (fail(K::Network), Feedback::Failed),
        (fail(K::Timeout), Feedback::Failed),
        (fail(K::ServerError), Feedback::Failed),
        (fail(K::NotFound), Feedback::Ok),
        (fail(K::Auth), Feedback::Ok),
        (fail(K::TooLarge), Feedback::Ok),
        (fail(K::Corrupt), Feedback::Ok),
        (fail(K::Local), Feedback::Failed),
        (Reply::FailUnsent(K::Local), Feedback::Unused),
        (Reply::FailUnsent(K::Refused), Feedback::Unused),
        (Reply::FailUnsent(K::Network), Feedback::Failed),
        (Reply::Panic, Feedback::Failed),
        (Reply::Hang, Feedback::Failed),
    ];
    for (reply, told) in rows {
        let throttle = Arc::new(Listening::default());
        let given = throttle.clone();
        let world = World::build(|config| config, |builder| builder.throttle(given));
        let server = url("https://one.example/a.git");
        world.git.serve(&server, []);
        world.git.always(&server, reply.clone());
        world.announce("a", &[&server]);
        world.state("a", "state", &[1]);
        wait_for(|| !throttle.heard.lock().unwrap().is_empty()).await;
        assert_eq!(throttle.heard.lock().unwrap()[0], told, "after {reply:?}");
        world.sync.shutdown().await;
    }
}

/// P5: a throttle that says yes and then no does not make a pass spin.
#[tokio::test(start_paused = true)]
async fn a_throttle_that_says_yes_and_no_does_not_make_a_pass_spin() {
    let (world, throttle) = odd(Manner::YesAndNo);
    pass(secs(60)).await;
    assert!(matches!(world.state_of("a"), Some(State::Running(Activity::InLine { .. }))));
    assert_eq!(throttle.calls.load(SeqCst), 3, "a check, a try, a place in line");
    world.sync.shutdown().await;
}

/// P10: with no place in any line the pass ends, and is tried again after the backoff.
#[tokio::test(start_paused = true)]
async fn with_no_place_in_line_the_pass_is_a_retry() {
    let (world, _throttle) = odd(Manner::NoPlace);
    pass(secs(1)).await;
    let first = &world.told.passes()[0];
    assert_eq!((first.summary.why, first.outcome), (PassEnd::NoPlaceInLine, Outcome::Retry));
    assert!(!first.summary.no_source_left);
}

/// P8: a throttle that panics ends the pass and not the engine.
#[tokio::test(start_paused = true)]
async fn a_throttle_that_panics_ends_the_pass() {
    let (world, _throttle) = odd(Manner::Panics);
    pass(secs(30)).await;
    let passes = world.told.passes();
    assert_eq!(passes.len(), 2);
    assert!(passes.iter().all(|pass| pass.summary.why == PassEnd::Panicked));
}

/// L14: a fetch whose permit is lost ends: its server is no longer counted.
#[tokio::test(start_paused = true)]
async fn a_fetch_whose_permit_is_lost_ends() {
    let (world, _throttle) = odd(Manner::Loses);
    pass(secs(3)).await;
    let fetch = &world.git.fetches()[0];
    assert_eq!(fetch.ended.unwrap() - fetch.began, secs(1));
}
