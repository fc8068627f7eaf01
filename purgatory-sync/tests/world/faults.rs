//! Faults that are put in on purpose, so that it is seen that the checks bite. Each is one that a system of this
//! kind had; all are planted from outside of the engine: in what stands behind its ports.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use purgatory_sync::{
    CloneUrl, Identifier, Needs,
    domain_throttle::{
        Denied, Domain, DomainThrottle, Endpoint, Feedback, Permit, PermitHook, Throttle,
        ThrottleError,
    },
    keyed_debounce::{
        Debounce, KeyState, KeyedDebouncer, Outcome, Run, RunHook, ScheduleError, Scheduled,
        Scheduler, SchedulerError,
    },
    testing,
};
use tokio::time::{Instant, sleep};

use crate::world::{OURS, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// URLs that were tried count as untried again, so a pass asks them for ever.
    Spins,
    /// The store holds its lock across an await, and takes it there once more.
    Deadlocks,
    /// The throttle looks, and takes later.
    ChecksThenActs,
    /// A key whose pass panicked is never handed out again.
    WedgesAfterAPanic,
    /// An event that comes during a pass waits for the backoff.
    BacksOffDespiteAnEvent,
    /// An event that comes between the last look and the end of the pass is forgotten with the key.
    ForgetsTheLastEvent,
    /// Our own service is told by a part of its name.
    ComparesSubstrings,
    /// A name is cut at its first colon.
    CutsNames,
    /// Every key is looked at every second.
    ScansEverySecond,
    /// One object that the server lacks makes the request for all of them fail.
    AllOrNothing,
    /// A tip without what it reaches counts as here.
    TakesShallow,
    /// A new event does not end the backoff.
    KeepsTheBackoff,
    /// A host that failed once is shut for twelve hours.
    PoisonsHosts,
    /// Who waits for a window is not woken when it has moved on.
    LosesWakeUps,
    /// The limits count by scheme and host.
    CountsByEndpoint,
    /// A window that begins anew each full minute: twice as many in the minute across its border.
    FixedWindow,
    /// A permit that was not needed is kept until the pass ends.
    KeepsPermits,
}

impl Fault {
    /// All of them, with the rules of which one has to catch it.
    pub(crate) const ALL: [(Self, &'static [&'static str]); 17] = [
        (Self::Spins, &["P5"]),
        (Self::Deadlocks, &["L6", "P8"]),
        (Self::ChecksThenActs, &["L1", "L2", "L3"]),
        (Self::WedgesAfterAPanic, &["D4"]),
        (Self::BacksOffDespiteAnEvent, &["D4", "D8"]),
        (Self::ForgetsTheLastEvent, &["D4", "P12"]),
        (Self::ComparesSubstrings, &["L6", "P5", "P8"]),
        (Self::CutsNames, &["D4", "D7"]),
        (Self::ScansEverySecond, &["D7", "P9"]),
        (Self::AllOrNothing, &["P8"]),
        (Self::TakesShallow, &["P9"]),
        (Self::KeepsTheBackoff, &["D4", "D8"]),
        (Self::PoisonsHosts, &["P5", "L10"]),
        (Self::LosesWakeUps, &["L6"]),
        (Self::CountsByEndpoint, &["L1", "L2", "L3"]),
        (Self::FixedWindow, &["L1"]),
        (Self::KeepsPermits, &["L6", "L9"]),
    ];

    /// What the store says, with the faults that are a store's.
    pub(crate) fn twist(self, needs: &mut Needs, look: usize) {
        let urls = needs.wants.iter_mut().flat_map(|want| [&mut want.urls, &mut want.own_urls]);
        match self {
            Self::Spins => urls.flatten().for_each(|url| *url = respelt(url, look)),
            Self::ComparesSubstrings => {
                urls.for_each(|urls| urls.retain(|url| !url.as_str().contains(&OURS[4..])));
            }
            _ => {}
        }
    }
}

/// The same place in a spelling that was not seen before.
fn respelt(url: &CloneUrl, look: usize) -> CloneUrl {
    let (scheme, rest) = url.as_str().split_once("//").expect("a clone URL is absolute");
    let (host, path) = rest.split_once('/').expect("a clone URL has a path");
    testing::url(&format!("{scheme}//{host}/{}{path}", "/".repeat(look % 1_000 + 1)))
}

/// A scheduler with a fault.
pub(crate) struct FaultyScheduler {
    pub(crate) inner: KeyedDebouncer<Identifier>,
    pub(crate) fault: Fault,
    pub(crate) world: Arc<World>,
    known: Mutex<HashSet<Identifier>>,
    stuck: Arc<Mutex<Vec<Run<Identifier>>>>,
}

impl FaultyScheduler {
    pub(crate) fn new(inner: KeyedDebouncer<Identifier>, fault: Fault, world: Arc<World>) -> Self {
        let (known, stuck) = (Mutex::default(), Arc::default());
        Self { inner, fault, world, known, stuck }
    }
}

#[async_trait]
impl Scheduler<Identifier> for FaultyScheduler {
    async fn schedule(
        &self,
        key: Identifier,
        debounce: Debounce,
    ) -> Result<Scheduled, ScheduleError<Identifier>> {
        let cut = || Identifier::from(key.as_str().split(':').next().expect("there is a first"));
        match self.fault {
            Fault::CutsNames => self.inner.schedule(cut(), debounce),
            Fault::KeepsTheBackoff
                if matches!(self.inner.state(&key), Some(KeyState::Backoff { .. })) =>
            {
                Ok(Scheduled::Joined)
            }
            _ => {
                self.known.lock().unwrap().insert(key.clone());
                self.inner.schedule(key, debounce)
            }
        }
    }

    async fn next(&self) -> Result<Run<Identifier>, SchedulerError> {
        let run = loop {
            tokio::select! {
                biased;
                run = self.inner.next() => break run?,
                () = sleep(Duration::from_secs(1)), if self.fault == Fault::ScansEverySecond => {
                    for key in self.known.lock().unwrap().iter() {
                        if self.inner.state(key).is_some() {
                            let _full = self.inner.schedule(key.clone(), Debounce::immediate());
                        }
                    }
                }
            }
        };
        let (key, attempt) = (run.key().clone(), run.attempt());
        let hold = FaultyHold {
            run,
            inner: self.inner.clone(),
            fault: self.fault,
            world: Arc::clone(&self.world),
            stuck: Arc::clone(&self.stuck),
        };
        Ok(Run::new(key, attempt, Box::new(hold)))
    }

    async fn cancel(&self, key: &Identifier) -> Result<bool, SchedulerError> {
        Ok(self.inner.cancel(key))
    }

    async fn close(&self) {
        self.inner.close();
    }
}

struct FaultyHold {
    run: Run<Identifier>,
    inner: KeyedDebouncer<Identifier>,
    fault: Fault,
    world: Arc<World>,
    stuck: Arc<Mutex<Vec<Run<Identifier>>>>,
}

#[async_trait]
impl RunHook for FaultyHold {
    fn settle(self: Box<Self>, outcome: Outcome) {
        let Self { run, inner, fault, world, stuck } = *self;
        let key = run.key().clone();
        match (fault, outcome) {
            (Fault::WedgesAfterAPanic, _) if world.state_as_it_was().took_panic(&key) => {
                stuck.lock().unwrap().push(run);
            }
            (Fault::BacksOffDespiteAnEvent, Outcome::Retry) if inner.cancel(&key) => {
                run.finish(outcome);
                let _closed = inner.schedule(key, Debounce::after(Duration::from_secs(20)));
            }
            (Fault::ForgetsTheLastEvent, Outcome::Done) => {
                inner.cancel(&key);
                run.finish(outcome);
            }
            _ => run.finish(outcome),
        }
    }

    async fn scheduled_again(&self) {
        self.run.scheduled_again().await;
    }
}

/// A throttle with a fault.
pub(crate) struct FaultyThrottle {
    inner: DomainThrottle,
    other: DomainThrottle,
    fault: Fault,
    window: Duration,
    per_window: u32,
    began: Instant,
    banned: Arc<Mutex<HashMap<Domain, Instant>>>,
    /// How many were let through in which window.
    windows: Mutex<HashMap<Domain, (u128, u32)>>,
    kept: Arc<Mutex<Vec<Permit>>>,
}

impl FaultyThrottle {
    /// `other` has the same limits as `inner`, and for a fixed window no window at all.
    pub(crate) fn new(
        inner: DomainThrottle,
        other: DomainThrottle,
        fault: Fault,
        window: Duration,
        per_window: u32,
    ) -> Self {
        Self {
            inner,
            other,
            fault,
            window,
            per_window,
            began: Instant::now(),
            banned: Arc::default(),
            windows: Mutex::default(),
            kept: Arc::default(),
        }
    }

    fn books(&self, at: &Endpoint) -> &DomainThrottle {
        match self.fault {
            Fault::CountsByEndpoint if at.port().is_some_and(|port| port == 80) => &self.other,
            Fault::FixedWindow => &self.other,
            _ => &self.inner,
        }
    }

    /// What the fault says before the books do.
    fn says_no(&self, at: &Endpoint) -> Result<(), Denied> {
        if let Some(until) = self.banned.lock().unwrap().get(at.domain()) {
            return Err(Denied::Paused { until: until.into_std() });
        }
        let number = self.began.elapsed().as_nanos() / self.window.as_nanos();
        let windows = self.windows.lock().unwrap();
        let full =
            windows.get(at.domain()).is_some_and(|window| *window == (number, self.per_window));
        if self.fault == Fault::FixedWindow && full {
            let since = self.window * u32::try_from(number + 1).expect("a story is short");
            return Err(Denied::Window { until: (self.began + since).into_std() });
        }
        Ok(())
    }

    fn wrap(&self, permit: Permit) -> Permit {
        let domain = permit.endpoint().domain().clone();
        let number = self.began.elapsed().as_nanos() / self.window.as_nanos();
        {
            let mut windows = self.windows.lock().unwrap();
            let window = windows.entry(domain).or_insert((number, 0));
            *window = if window.0 == number { (number, window.1 + 1) } else { (number, 1) };
        }
        let endpoint = permit.endpoint().clone();
        let banned = (self.fault == Fault::PoisonsHosts).then(|| Arc::clone(&self.banned));
        let kept = (self.fault == Fault::KeepsPermits).then(|| Arc::clone(&self.kept));
        Permit::new(endpoint, Box::new(FaultyPermit { permit, banned, kept }))
    }
}

struct FaultyPermit {
    permit: Permit,
    banned: Option<Arc<Mutex<HashMap<Domain, Instant>>>>,
    kept: Option<Arc<Mutex<Vec<Permit>>>>,
}

impl PermitHook for FaultyPermit {
    fn settle(self: Box<Self>, feedback: Feedback) {
        let Self { permit, banned, kept } = *self;
        if let (Some(banned), Feedback::Failed) = (banned, feedback) {
            let until = Instant::now() + Duration::from_secs(12 * 3_600);
            banned.lock().unwrap().insert(permit.endpoint().domain().clone(), until);
        }
        match (kept, feedback) {
            (Some(kept), Feedback::Unused) => kept.lock().unwrap().push(permit),
            _ => permit.finish(feedback),
        }
    }
}

#[async_trait]
impl Throttle for FaultyThrottle {
    async fn check(&self, at: &Endpoint, key: &str) -> Result<(), Denied> {
        self.says_no(at)?;
        self.books(at).check(at, key)
    }

    async fn try_acquire(&self, at: &Endpoint, key: &str) -> Result<Permit, Denied> {
        self.says_no(at)?;
        if self.fault == Fault::ChecksThenActs {
            self.inner.check(at, key)?;
            tokio::task::yield_now().await;
            // It was free a moment ago, so it goes out.
            return Ok(self.inner.try_acquire(at, key).unwrap_or_else(|_| free(at)));
        }
        Ok(self.wrap(self.books(at).try_acquire(at, key)?))
    }

    async fn acquire_any(&self, at: &[Endpoint], key: &str) -> Result<Permit, ThrottleError> {
        let [one] = at else { return self.inner.acquire_any(at, key).await };
        loop {
            if let Err(Denied::Window { until } | Denied::Paused { until }) = self.says_no(one) {
                tokio::time::sleep_until(until.into()).await;
                continue;
            }
            if self.fault == Fault::LosesWakeUps
                && let Err(Denied::Window { .. }) = self.inner.check(one, key)
            {
                std::future::pending::<()>().await;
            }
            let permit = self.books(one).acquire_any(at, key).await?;
            if self.says_no(one).is_ok() {
                return Ok(self.wrap(permit));
            }
            permit.finish(Feedback::Unused);
        }
    }
}

/// A permit that no books know of.
fn free(at: &Endpoint) -> Permit {
    struct Nothing;
    impl PermitHook for Nothing {
        fn settle(self: Box<Self>, _: Feedback) {}
    }
    Permit::new(at.clone(), Box::new(Nothing))
}
