//! What the engine itself costs: time for each request with ports that do nothing, memory for each identifier that waits,
//! and how both grow, beside the loop of a simple implementation in the same run.
//!
//! Run with: `cargo bench -p purgatory-sync`
//!
//! Waiting is on a clock that is told, and time is time on the processor where the system says it, so that only work is
//! measured. The allocator counts; that costs both sides the same.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(missing_docs, reason = "a benchmark")]

mod scan;

use std::{
    alloc::System,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use purgatory_sync::{
    Arrival, CloneUrl, EventStore, FetchError, FetchRequest, Fetched, GitFetcher, Identifier,
    Needs, Oid, Origin, PurgatorySync, Released, StoreError, SyncConfig, SyncEvent, Target, Want,
    domain_throttle::{DomainThrottle, Limits},
    testing,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::{runtime::Runtime, sync::Notify, time::sleep};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Each timing is the best of so many: what disturbs only adds.
const ROUNDS: usize = 3;
/// How many identifiers the scanning loop is given at most. It is quadratic: ten thousand take minutes.
const SCANNED: usize = 2_000;
const DOMAINS: usize = 300;

fn main() {
    println!(
        "| identifiers | engine, limits far off | engine, 5 at once and 30 a minute | the scanning loop, same limits | ratio |"
    );
    println!("|---|---|---|---|---|");
    for count in [1_000, SCANNED, 10_000, 100_000] {
        let free = per_request(count, || engine(count, 1, unlimited()));
        let lines = per_request(count, || engine(count, 1, Limits::default()));
        let scanning = (count <= SCANNED).then(|| per_request(count, || scanning_loop(count)));
        let (baseline, ratio) = match scanning {
            Some(time) => {
                (micros(time), format!("{:.0}", time.as_secs_f64() / lines.as_secs_f64()))
            }
            None => ("not run".to_owned(), "-".to_owned()),
        };
        println!("| {count} | {} | {} | {baseline} | {ratio} |", micros(free), micros(lines));
    }
    let eight = per_request(8_000, || engine(1_000, 8, unlimited()));
    println!("\nA pass of eight requests costs {} a request.\n", micros(eight));
    println!(
        "| identifiers | bytes each, queued | bytes each, in a line | bytes each, in backoff |"
    );
    println!("|---|---|---|---|");
    for count in [1_000, 10_000, 100_000] {
        let [queued, in_line, backoff] = memory(count);
        println!("| {count} | {queued} | {in_line} | {backoff} |");
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// The best of some rounds, for each request.
fn per_request(requests: usize, run: impl Fn() -> Duration) -> Duration {
    let best = (0..ROUNDS).map(|_| run()).min().expect("there is a round");
    best / u32::try_from(requests).expect("it is a small number")
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

/// Work that began.
pub(crate) struct Work {
    processor: Option<Duration>,
    wall: Instant,
}

impl Work {
    pub(crate) fn begins() -> Self {
        Self { processor: on_processor(), wall: Instant::now() }
    }

    /// How much this thread has worked since.
    pub(crate) fn so_far(&self) -> Duration {
        match (self.processor, on_processor()) {
            (Some(began), Some(now)) => now.saturating_sub(began),
            _ => self.wall.elapsed(),
        }
    }
}

/// How long this thread has been on a processor. Only Linux says it.
fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn unlimited() -> Limits {
    let many = NonZeroU32::new(1_000_000).expect("it is not zero");
    Limits { max_concurrent: many, max_per_window: many, ..Limits::default() }
}

/// As many identifiers, each with an event and an object that the last of its URLs has. From the first event until
/// nothing is queued.
fn engine(count: usize, urls: usize, limits: Limits) -> Duration {
    let ports = Arc::new(Ports::new(count, urls, DOMAINS));
    runtime().block_on(async {
        let sync = ports.start(limits);
        let began = Work::begins();
        for id in &ports.ids {
            sync.event_held(id.clone(), Arrival::Synced).expect("there is room");
        }
        ports.idle.notified().await;
        let time = began.so_far();
        assert_eq!(ports.fetches.load(Relaxed), count * urls);
        time
    })
}

/// Bytes for each identifier that waits: for its time, in the line of a domain, and for its backoff.
fn memory(count: usize) -> [i64; 3] {
    let each = |region: &Region<'_, System>| {
        let stats = region.change();
        let grown = stats.bytes_allocated as i64 - stats.bytes_deallocated as i64;
        grown / count as i64
    };
    let held = |domains, limits| {
        let ports = Arc::new(Ports::new(count, 1, domains));
        ports.lacks_all.store(true, Relaxed);
        runtime().block_on(async {
            let sync = ports.start(limits);
            sleep(Duration::from_secs(1)).await;
            let region = Region::new(ALLOCATOR);
            for id in &ports.ids {
                sync.event_held(id.clone(), Arrival::Synced).expect("there is room");
            }
            let queued = each(&region);
            sleep(Duration::from_secs(2)).await;
            (queued, each(&region))
        })
    };
    let (queued, in_line) = held(1, Limits::default());
    let (_, backoff) = held(DOMAINS, unlimited());
    [queued, in_line, backoff]
}

fn scanning_loop(count: usize) -> Duration {
    runtime().block_on(scan::run(count, DOMAINS))
}

/// Ports that do nothing: an object is here once its last URL was asked.
struct Ports {
    ids: Vec<Identifier>,
    urls: Vec<Vec<CloneUrl>>,
    target: Target,
    here: Vec<AtomicBool>,
    gone: Vec<AtomicBool>,
    lacks_all: AtomicBool,
    fetches: AtomicUsize,
    idle: Arc<Notify>,
}

impl Ports {
    fn new(count: usize, urls: usize, domains: usize) -> Self {
        let url = |number: usize, of: usize| {
            let domain = (number + of) % domains;
            testing::url(&format!("https://host{domain}.example/{number}/{of}.git"))
        };
        let flags = || (0..count).map(|_| AtomicBool::new(false)).collect();
        Self {
            ids: (0..count).map(|number| Identifier::from(number.to_string())).collect(),
            urls: (0..count).map(|id| (0..urls).map(|of| url(id, of)).collect()).collect(),
            target: Target::new("owner"),
            here: flags(),
            gone: flags(),
            lacks_all: AtomicBool::new(false),
            fetches: AtomicUsize::new(0),
            idle: Arc::new(Notify::new()),
        }
    }

    fn start(self: &Arc<Self>, limits: Limits) -> PurgatorySync {
        let idle = Arc::clone(&self.idle);
        let told = move |event: &SyncEvent| {
            if matches!(event, SyncEvent::QueueIdle) {
                idle.notify_one();
            }
        };
        let throttle = DomainThrottle::builder().limits(limits).max_waiters(1_000_000).build();
        let config = SyncConfig::default().with_restore_spread(Duration::ZERO).expect("allowed");
        PurgatorySync::builder(Arc::<Self>::clone(self), Arc::<Self>::clone(self))
            .config(config)
            .throttle(Arc::new(throttle))
            .observer(Arc::new(told))
            .spawn()
    }

    fn number(id: &Identifier) -> usize {
        id.as_str().parse().expect("names are numbers")
    }
}

#[async_trait]
impl EventStore for Ports {
    async fn needs(&self, id: &Identifier) -> Result<Needs, StoreError> {
        let number = Self::number(id);
        if self.gone[number].load(Relaxed) {
            return Ok(Needs::default());
        }
        let want = Want {
            oids: vec![testing::oid(number as u64)],
            urls: self.urls[number].clone(),
            own_urls: Vec::new(),
            origin: Origin::Owner,
            target: self.target.clone(),
        };
        Ok(Needs { held: 1, wants: vec![want] })
    }

    async fn release(&self, id: &Identifier, here: &[Oid]) -> Result<Released, StoreError> {
        let released = here.len();
        if released > 0 {
            self.gone[Self::number(id)].store(true, Relaxed);
        }
        Ok(Released { released, held: 1 - released })
    }

    async fn held_identifiers(&self) -> Result<Vec<Identifier>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl GitFetcher for Ports {
    async fn missing(&self, id: &Identifier, oids: &[Oid]) -> Result<Vec<Oid>, FetchError> {
        let here = self.here[Self::number(id)].load(Relaxed);
        Ok(if here { Vec::new() } else { oids.to_vec() })
    }

    async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        self.fetches.fetch_add(1, Relaxed);
        let number = Self::number(request.identifier);
        let last = self.urls[number].last() == Some(request.url);
        if !last || self.lacks_all.load(Relaxed) {
            return Ok(Fetched { requests: 1, ..Fetched::default() });
        }
        self.here[number].store(true, Relaxed);
        Ok(Fetched { received: request.oids.to_vec(), requests: 1, ..Fetched::default() })
    }
}
