use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;

use crate::{
    CloneUrl, FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher, Identifier, Oid,
    Target, clock,
};

/// A fetcher over servers in memory. A clone is another handle of the same one.
///
/// A URL that was never given to [`serve`](Self::serve) answers [`FetchErrorKind::NotFound`].
#[derive(Clone, Default)]
pub struct ScriptedFetcher {
    world: Arc<Mutex<World>>,
}

#[derive(Default)]
struct World {
    here: HashSet<Oid>,
    servers: HashMap<CloneUrl, Server>,
    fetches: Vec<FetchRecord>,
    on: usize,
    most_on: usize,
    missing_calls: usize,
    missing_failures: usize,
}

#[derive(Default)]
struct Server {
    has: Option<HashSet<Oid>>,
    script: VecDeque<Reply>,
    always: Option<Reply>,
    latency: Duration,
}

/// How a server answers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reply {
    /// With what it has.
    Serve,
    /// It fails, after one request.
    Fail(FetchErrorKind),
    /// It fails before anything was sent.
    FailUnsent(FetchErrorKind),
    /// It wants to be left alone for this long.
    RetryAfter(Duration),
    /// It never answers.
    Hang,
    /// The fetcher panics.
    Panic,
    /// It claims to have brought these objects, and brought nothing.
    Lie(Vec<Oid>),
    /// It serves what it has, and the fetcher wants to be asked again for these.
    AskAgain(Vec<Oid>),
}

/// One call of `fetch`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchRecord {
    /// For whom.
    pub identifier: Identifier,
    /// Where.
    pub url: CloneUrl,
    /// What for.
    pub oids: Vec<Oid>,
    /// Where it belongs.
    pub targets: Vec<Target>,
    /// When it began.
    pub began: Instant,
    /// When it ended, or was dropped.
    pub ended: Option<Instant>,
}

impl ScriptedFetcher {
    /// No servers, and nothing is here.
    pub fn new() -> Self {
        Self::default()
    }

    /// These objects are here now, by a push.
    pub fn put(&self, oids: impl IntoIterator<Item = Oid>) {
        self.lock().here.extend(oids);
    }

    /// Whether an object is here.
    pub fn has(&self, oid: Oid) -> bool {
        self.lock().here.contains(&oid)
    }

    /// This server has these objects, beside what it has already.
    pub fn serve(&self, url: &CloneUrl, oids: impl IntoIterator<Item = Oid>) {
        self.lock().server(url).has.get_or_insert_default().extend(oids);
    }

    /// The next answer of this server; after several calls, the next ones in order.
    pub fn script(&self, url: &CloneUrl, reply: Reply) {
        self.lock().server(url).script.push_back(reply);
    }

    /// Every answer of this server, once its script has ended.
    pub fn always(&self, url: &CloneUrl, reply: Reply) {
        self.lock().server(url).always = Some(reply);
    }

    /// How long this server takes to answer.
    pub fn latency(&self, url: &CloneUrl, latency: Duration) {
        self.lock().server(url).latency = latency;
    }

    /// The next call of `missing` fails.
    pub fn trouble_missing(&self) {
        self.lock().missing_failures += 1;
    }

    /// How often `missing` was called.
    pub fn missing_calls(&self) -> usize {
        self.lock().missing_calls
    }

    /// Every fetch, in the order in which they began.
    pub fn fetches(&self) -> Vec<FetchRecord> {
        self.lock().fetches.clone()
    }

    /// The URLs that were asked, in order.
    pub fn asked(&self) -> Vec<String> {
        self.lock().fetches.iter().map(|fetch| fetch.url.to_string()).collect()
    }

    /// How many fetches are on.
    pub fn on(&self) -> usize {
        self.lock().on
    }

    /// The most fetches that were on at once.
    pub fn most_on(&self) -> usize {
        self.lock().most_on
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a fetch begins. It ends when the guard is dropped, also by a cancellation.
    fn begin(&self, request: &FetchRequest<'_>) -> (Running, Reply, Duration) {
        let mut world = self.lock();
        world.on += 1;
        world.most_on = world.most_on.max(world.on);
        let number = world.fetches.len();
        world.fetches.push(FetchRecord {
            identifier: request.identifier.clone(),
            url: request.url.clone(),
            oids: request.oids.to_vec(),
            targets: request.targets.to_vec(),
            began: clock::now(),
            ended: None,
        });
        let server = world.server(request.url);
        let scripted = server.script.pop_front();
        let reply = scripted.or_else(|| server.always.clone()).unwrap_or(Reply::Serve);
        let latency = server.latency;
        (Running { world: Arc::clone(&self.world), number }, reply, latency)
    }
}

impl World {
    fn server(&mut self, url: &CloneUrl) -> &mut Server {
        self.servers.entry(url.clone()).or_default()
    }

    /// Brings what the server has.
    fn bring(&mut self, request: &FetchRequest<'_>) -> Result<Vec<Oid>, FetchError> {
        let Some(has) = &self.server(request.url).has else {
            return Err(FetchError::new(FetchErrorKind::NotFound).with_requests(1));
        };
        let received: Vec<Oid> =
            request.oids.iter().filter(|oid| has.contains(oid)).copied().collect();
        self.here.extend(&received);
        Ok(received)
    }
}

struct Running {
    world: Arc<Mutex<World>>,
    number: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.on -= 1;
        world.fetches[self.number].ended = Some(clock::now());
    }
}

#[async_trait]
impl GitFetcher for ScriptedFetcher {
    async fn missing(&self, _id: &Identifier, oids: &[Oid]) -> Result<Vec<Oid>, FetchError> {
        let mut world = self.lock();
        world.missing_calls += 1;
        if world.missing_failures > 0 {
            world.missing_failures -= 1;
            return Err(FetchError::new(FetchErrorKind::Local));
        }
        Ok(oids.iter().filter(|oid| !world.here.contains(oid)).copied().collect())
    }

    async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        let (_running, reply, latency) = self.begin(&request);
        if !latency.is_zero() {
            clock::pause(latency).await;
        }
        let fetched = |received: Vec<Oid>, ask_again| {
            let bytes = 100 * received.len() as u64;
            Fetched { received, ask_again, requests: 1, bytes }
        };
        match reply {
            Reply::Serve => Ok(fetched(self.lock().bring(&request)?, Vec::new())),
            Reply::AskAgain(again) => Ok(fetched(self.lock().bring(&request)?, again)),
            Reply::Lie(claimed) => Ok(fetched(claimed, Vec::new())),
            Reply::Fail(kind) => Err(FetchError::new(kind).with_requests(1)),
            Reply::FailUnsent(kind) => Err(FetchError::new(kind)),
            Reply::RetryAfter(after) => Err(FetchError::new(FetchErrorKind::RateLimited)
                .with_requests(1)
                .with_retry_after(after)),
            Reply::Hang => std::future::pending().await,
            Reply::Panic => panic!("the fetcher panics, as the test wants"),
        }
    }
}

impl fmt::Debug for ScriptedFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.lock();
        f.debug_struct("ScriptedFetcher")
            .field("here", &world.here.len())
            .field("fetches", &world.fetches.len())
            .field("on", &world.on)
            .finish_non_exhaustive()
    }
}
