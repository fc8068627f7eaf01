//! A story is told: the service lives in the world, dies, lives again, and at the end nothing of it is left.

use std::{
    collections::VecDeque,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use purgatory_sync::{
    Arrival, HeldError, Identifier, OurDomain, PurgatorySync, SyncConfig,
    domain_throttle::{DomainThrottle, Limits, Throttle},
    keyed_debounce::{Exponential, KeyedDebouncer, Scheduler},
};
use tokio::{
    select,
    time::{Instant, sleep},
};

use crate::{
    faults::{Fault, FaultyScheduler, FaultyThrottle},
    ports::Ear,
    story::{Act, CROWD, Event, GRID, OBJECTS, Place, Repo, Rules, Story, host_name, repo_name},
    world::{OURS, World},
};

/// How long an event may be held while all its data can be had, in a world without crowds: the longest backoff and the
/// longest pause that a host can earn in a story, behind hosts that take 20 s to fail.
const PATIENCE: u64 = 30 * 60 * 1_000;
/// How many requests somebody who stands before us may make.
const REQUESTS: u64 = 4;
/// One request, and one look, take no longer.
const DEADLINE: Duration = Duration::from_secs(20);
/// How often the world looks when nothing happens.
const LOOK: u64 = 5_000;
/// How long the engine may need to find out that nothing is held any more.
const TO_THE_END: u64 = 120_000;

/// After so long a host is forgotten that was asked and is not any more.
const FORGOTTEN: Duration = Duration::from_secs(3 * 3_600);

/// What was seen in a story.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) fetches: u64,
    pub(crate) passes: u64,
    pub(crate) lives: u64,
    pub(crate) longest_wait: u64,
}

/// Tells a story. The error says which rule was broken, and when.
pub(crate) fn tell(story: &Story, fault: Option<Fault>) -> Result<Seen, String> {
    tell_with(story, fault, patience(story), None)
}

/// Tells a story in which an event may wait for so long, and what takes long to check is checked so often.
pub(crate) fn tell_with(
    story: &Story,
    fault: Option<Fault>,
    patience: u64,
    every: Option<u64>,
) -> Result<Seen, String> {
    let world = World::new(story, patience, fault);
    let acts = unrolled(story);
    let hosts = story.hosts.len();
    let mut teller = Teller {
        hosts,
        every,
        rules: &story.rules,
        world: &world,
        acts,
        calm: story.calm_at(),
        crowds: 0,
        fault,
    };
    let mut seen = Seen::default();
    loop {
        seen.lives += 1;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime needs nothing");
        let end = runtime.block_on(teller.live());
        // Every task goes, wherever it stands.
        drop(runtime);
        let mut state = world.state_as_it_was();
        state.life_is_over();
        if Arc::strong_count(&world) > 1 {
            state.ledger.wrong(|| "P15: something of the engine outlives it".into());
        }
        if let Some(violation) = state.ledger.violation.take() {
            return Err(violation);
        }
        if end == End::Over {
            seen.fetches = state.ledger.fetches;
            seen.passes = state.ledger.passes;
            seen.longest_wait = state.longest_wait;
            return Ok(seen);
        }
    }
}

/// Everybody else may stand in front, for a host's window and for a slot.
fn patience(story: &Story) -> u64 {
    let crowds = story.acts.iter().map(|timed| match timed.act {
        Act::Crowd { count, .. } => count,
        _ => 0,
    });
    let others = story.repos.len() + crowds.sum::<usize>();
    let Rules { per_window, window_secs, slots, .. } = story.rules;
    let window = window_secs * 1_000 / u64::from(per_window);
    let slot = u64::try_from(DEADLINE.as_millis()).expect("it is short") / slots as u64;
    PATIENCE + others as u64 * REQUESTS * (window + slot)
}

/// The acts of a story, streams as single events, in order of time.
fn unrolled(story: &Story) -> VecDeque<(u64, Act)> {
    let mut acts: Vec<(u64, Act)> = Vec::new();
    for timed in &story.acts {
        match &timed.act {
            Act::Stream { event, count, gap_ms } => acts.extend(
                (0..*count)
                    .map(|number| (timed.at_ms + number * gap_ms, Act::Event(event.clone()))),
            ),
            act => acts.push((timed.at_ms, act.clone())),
        }
    }
    acts.sort_by_key(|(at, _)| *at);
    acts.into()
}

struct Teller<'a> {
    rules: &'a Rules,
    world: &'a Arc<World>,
    acts: VecDeque<(u64, Act)>,
    calm: u64,
    crowds: usize,
    fault: Option<Fault>,
    hosts: usize,
    /// How often everything is checked, if not in every instant.
    every: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Dies,
    Over,
}

impl Teller<'_> {
    /// One life of the service.
    async fn live(&mut self) -> End {
        self.world.state().life_begins();
        let mut engine = Engine::start(self.world, self.rules, self.fault, None);
        loop {
            while let Some(act) = self.next_due() {
                if act != Act::Restart {
                    self.perform(act, &engine.sync);
                    continue;
                }
                match self.restart(engine).await {
                    Some(next) => engine = next,
                    None => return End::Dies,
                }
            }
            if self.is_over() {
                break;
            }
            if self.pass_time(&engine).await == Some(End::Dies) {
                return End::Dies;
            }
        }
        if self.world.state().ledger.violation.is_none() {
            self.close(engine).await;
        }
        End::Over
    }

    fn next_due(&mut self) -> Option<Act> {
        let now = self.world.state().now();
        self.acts.pop_front_if(|(at, _)| *at <= now).map(|(_, act)| act)
    }

    fn is_over(&self) -> bool {
        let state = self.world.state();
        let calm = self.acts.is_empty() && state.now() >= self.calm;
        state.ledger.violation.is_some() || (calm && state.nothing_more_goes())
    }

    /// Waits for the next act, and checks every instant in which something happens once it is over.
    async fn pass_time(&self, engine: &Engine) -> Option<End> {
        let now = self.world.state().now();
        let next =
            self.acts.front().map_or(u64::MAX, |(at, _)| *at).min(now + self.every.unwrap_or(LOOK));
        select! {
            biased;
            () = self.world.dying.notified() => return Some(End::Dies),
            () = self.world.stirred.notified(), if self.every.is_none() => {}
            () = sleep(Duration::from_millis(next - now)) => {
                self.world.stir();
                if self.every.is_none() || self.acts.front().is_some_and(|(at, _)| *at <= next) {
                    return None;
                }
            }
        }
        let now = self.world.state().now();
        if self.acts.front().is_some_and(|(at, _)| *at <= now) {
            // What is due in this instant belongs to it.
            self.world.stir();
            return None;
        }
        let rest = now % GRID;
        let wait = if rest < GRID / 2 { GRID / 2 - rest } else { GRID + GRID / 2 - rest };
        select! {
            biased;
            () = self.world.dying.notified() => return Some(End::Dies),
            () = sleep(Duration::from_millis(wait)) => {}
        }
        self.world.state().check(engine.sync.queued());
        None
    }

    fn perform(&mut self, act: Act, sync: &PurgatorySync) {
        match act {
            Act::Event(event) => self.event(&event, sync),
            Act::Crowd { host, count } => {
                let first = CROWD * (self.crowds + 1);
                self.crowds += 1;
                for number in first..first + count {
                    let owners = vec![vec![Place::At { host, copy: 0 }]];
                    self.world.state().add_repo(number, Repo { owners }.owners);
                    let oids = vec![u8::try_from(number).unwrap_or(0) % OBJECTS];
                    let event = Event { repo: number, owner: 0, oids, own: None, submitted: false };
                    self.event(&event, sync);
                }
            }
            Act::Push { repo, oids } => {
                self.world.state().push(repo, &oids);
                self.changed(repo, sync);
            }
            Act::Announce { repo, owner, places } => {
                self.world.state().announce(repo, owner, places);
                self.changed(repo, sync);
            }
            Act::Expire { repo } => {
                if self.world.state().expire(repo) {
                    self.changed(repo, sync);
                }
            }
            Act::Upload { host, copy, oid } => self.world.state().upload(host, copy, oid),
            Act::Trouble(call, trouble) => self.world.state().trouble(call, trouble),
            Act::Crash { step } => self.world.state().crash_in(step),
            Act::Restart | Act::Stream { .. } => unreachable!("done by others"),
        }
        self.world.stir();
    }

    fn event(&self, event: &Event, sync: &PurgatorySync) {
        self.world.state().hold(event);
        let (arrival, quiet, most) = if event.submitted {
            (Arrival::Submitted, 180_000, 180_000)
        } else {
            (Arrival::Synced, 500, 5_000)
        };
        let took = sync.event_held(repo_name(event.repo), arrival);
        self.note(event.repo, took, quiet, most);
    }

    fn changed(&self, repo: usize, sync: &PurgatorySync) {
        let took = sync.changed(repo_name(repo));
        self.note(repo, took, 0, 0);
    }

    fn note(&self, repo: usize, took: Result<(), HeldError>, quiet: u64, most: u64) {
        let mut state = self.world.state();
        match took {
            Ok(()) => state.ledger.requested(repo, quiet, most),
            Err(HeldError::Full(_)) => state.ledger.turned_away(repo),
            Err(error) => state.ledger.wrong(|| format!("P13: {error}")),
        }
    }

    /// Shuts the service down and starts it. Nothing comes back if it dies on the way.
    async fn restart(&self, engine: Engine) -> Option<Engine> {
        let before = self.world.state().now();
        select! {
            biased;
            () = self.world.dying.notified() => return None,
            () = engine.sync.shutdown() => {}
        }
        let keeps = self.rules.keeps_limits;
        {
            let mut state = self.world.state();
            if state.now() > before + 5_000 {
                state.ledger.wrong(|| "P15: a shutdown takes longer than its grace".into());
            }
            state.ledger.life_over(keeps);
        }
        let limits = keeps.then(|| (engine.throttle.clone(), Arc::clone(&engine.limits)));
        drop(engine);
        Some(Engine::start(self.world, self.rules, self.fault, limits))
    }

    /// Everything expires. The engine forgets all of it, by itself, and ends.
    async fn close(&self, engine: Engine) {
        let began = {
            let mut state = self.world.state();
            state.calm_down();
            state.now()
        };
        let mut repos = self.world.state().repos_held();
        repos.extend(self.world.state().ledger.ids.keys());
        for repo in repos {
            while self.world.state().expire(repo) {}
            self.changed(repo, &engine.sync);
        }
        while !engine.sync.snapshot().is_idle() {
            self.pass_time(&engine).await;
            let mut state = self.world.state();
            if state.now() > began + TO_THE_END {
                state.ledger.wrong(|| "D9: nothing is held, and the engine goes on".into());
            }
            if state.ledger.violation.is_some() {
                return;
            }
        }
        self.check_memory(&engine);
        if self.every.is_some() {
            self.check_forgetting(&engine).await;
        }
        let before = Instant::now();
        engine.sync.shutdown().await;
        if before.elapsed() > Duration::ZERO {
            self.world
                .state()
                .ledger
                .wrong(|| "P15: the shutdown of an idle engine takes time".into());
        }
    }

    /// L12: in time every host is forgotten.
    async fn check_forgetting(&self, engine: &Engine) {
        sleep(FORGOTTEN).await;
        let domains = engine.throttle.domains();
        if domains > 0 {
            self.world.state().ledger.wrong(|| format!("L12: {domains} hosts are remembered"));
        }
    }

    /// D9, L12: what has ended takes no memory.
    fn check_memory(&self, engine: &Engine) {
        let mut state = self.world.state();
        if !engine.scheduler.is_empty() {
            let left = engine.scheduler.len();
            state.ledger.wrong(|| format!("D9: the scheduler remembers {left} keys"));
        }
        let waiters = engine.throttle.waiters();
        if waiters > 0 {
            state.ledger.wrong(|| format!("L12: {waiters} wait in lines, for nothing"));
        }
        for number in 0..self.hosts {
            let domain = host_name(number).parse().expect("it is a domain");
            if let Some(counts) = engine.throttle.counts(&domain)
                && counts.in_flight > 0
            {
                state.ledger.wrong(|| format!("L9: {domain} has {} permits out", counts.in_flight));
            }
        }
    }
}

/// A running engine, and what is below it.
struct Engine {
    sync: PurgatorySync,
    scheduler: KeyedDebouncer<Identifier>,
    throttle: DomainThrottle,
    limits: Arc<dyn Throttle>,
}

impl Engine {
    fn start(
        world: &Arc<World>,
        rules: &Rules,
        fault: Option<Fault>,
        kept: Option<(DomainThrottle, Arc<dyn Throttle>)>,
    ) -> Self {
        let scheduler = KeyedDebouncer::builder()
            .capacity(NonZeroUsize::new(rules.queue).expect("stories have room"))
            .min_gap(Duration::from_secs(1))
            .backoff(Exponential::new(Duration::from_secs(20), 2, Duration::from_secs(120)))
            .build();
        let queue: Arc<dyn Scheduler<Identifier>> = match fault {
            Some(fault) => {
                Arc::new(FaultyScheduler::new(scheduler.clone(), fault, Arc::clone(world)))
            }
            None => Arc::new(scheduler.clone()),
        };
        let (throttle, limits) = kept.unwrap_or_else(|| limits(rules, fault));
        let ours: OurDomain = OURS.parse().expect("it is a name");
        let sync = PurgatorySync::builder(Arc::<World>::clone(world), Arc::<World>::clone(world))
            .observer(Arc::new(Ear(Arc::clone(world))))
            .config(config(rules))
            .our_domains([ours])
            .scheduler(queue)
            .throttle(Arc::clone(&limits))
            .spawn();
        Self { sync, scheduler, throttle, limits }
    }
}

fn config(rules: &Rules) -> SyncConfig {
    let config = SyncConfig::default().with_max_fetches(rules.slots);
    config
        .and_then(|config| config.with_max_queued(rules.queue))
        .and_then(|config| config.with_wants_per_look(rules.wants_per_look))
        .and_then(|config| config.with_oids_per_want(rules.oids_per_want))
        .and_then(|config| config.with_fetches_per_pass(rules.fetches_per_pass))
        .and_then(|config| config.with_fetch_deadline(DEADLINE))
        .and_then(|config| config.with_look_deadline(DEADLINE))
        .expect("the rules of a story are allowed")
}

fn limits(rules: &Rules, fault: Option<Fault>) -> (DomainThrottle, Arc<dyn Throttle>) {
    let count = |number| NonZeroU32::new(number).expect("the limits of a story are no zeros");
    let window = Duration::from_secs(rules.window_secs);
    let limits = Limits {
        max_concurrent: count(rules.concurrent),
        max_per_window: count(rules.per_window),
        window,
    };
    let throttle = DomainThrottle::builder().limits(limits).build();
    let limits: Arc<dyn Throttle> = match fault {
        Some(fault) => {
            let other = match fault {
                Fault::FixedWindow => Limits { max_per_window: NonZeroU32::MAX, ..limits },
                _ => limits,
            };
            let other = DomainThrottle::builder().limits(other).build();
            Arc::new(FaultyThrottle::new(throttle.clone(), other, fault, window, rules.per_window))
        }
        None => Arc::new(throttle.clone()),
    };
    (throttle, limits)
}
