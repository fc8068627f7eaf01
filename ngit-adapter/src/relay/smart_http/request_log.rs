use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// What a git server was asked, counted where it matters: at the server. Cheap to clone; clones share one log.
///
/// The counts never stop; of the entries the last 100,000 are kept.
#[derive(Clone, Debug, Default)]
pub struct RequestLog(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<RequestEntry>,
    forgotten: u64,
    advertisements: u64,
    fetches: u64,
    now: usize,
    most: usize,
}

/// One HTTP request.
#[derive(Clone, Debug)]
pub struct RequestEntry {
    /// When it came.
    pub at: Instant,
    /// The path as it was written.
    pub path: String,
    /// What it asked for.
    pub kind: RequestKind,
}

/// What an HTTP request asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestKind {
    /// What the server can do, and in older protocols which refs it has: the first request of a fetch. Also of a
    /// repository that is not here.
    Advertisement,
    /// Objects.
    Fetch,
    /// Anything else: a list of refs, a probe, a mistake.
    Other,
}

const MAX_ENTRIES: usize = 100_000;

impl RequestLog {
    /// How many HTTP requests came.
    pub fn requests(&self) -> u64 {
        let inner = self.lock();
        inner.forgotten + inner.entries.len() as u64
    }

    /// How many of them asked what the server can do. Every fetch begins with one, whatever comes of it.
    pub fn advertisements(&self) -> u64 {
        self.lock().advertisements
    }

    /// How many of them asked for objects. A fetch for which objects are missing asks more than once.
    pub fn fetches(&self) -> u64 {
        self.lock().fetches
    }

    /// How many requests were on at once, at most. A request ends when its answer was sent or its client went.
    pub fn most_at_once(&self) -> usize {
        self.lock().most
    }

    /// The requests in the order in which they came.
    pub fn entries(&self) -> Vec<RequestEntry> {
        self.lock().entries.iter().cloned().collect()
    }

    pub(super) fn begin(&self, path: &str) -> InFlight {
        #[expect(clippy::disallowed_methods, reason = "the log of a server is about real time")]
        let at = Instant::now();
        let mut inner = self.lock();
        if inner.entries.len() == MAX_ENTRIES {
            inner.entries.pop_front();
            inner.forgotten += 1;
        }
        let number = inner.forgotten + inner.entries.len() as u64;
        inner.entries.push_back(RequestEntry {
            at,
            path: path.to_owned(),
            kind: RequestKind::Other,
        });
        inner.now += 1;
        inner.most = inner.most.max(inner.now);
        InFlight(Arc::new(OneRequest { log: self.clone(), number }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is on. It counts until the last clone is dropped.
#[derive(Clone)]
pub(super) struct InFlight(Arc<OneRequest>);

struct OneRequest {
    log: RequestLog,
    number: u64,
}

impl InFlight {
    /// Says what the request turned out to ask for. Called once at most.
    pub(super) fn set_kind(&self, kind: RequestKind) {
        let mut inner = self.0.log.lock();
        match kind {
            RequestKind::Advertisement => inner.advertisements += 1,
            RequestKind::Fetch => inner.fetches += 1,
            RequestKind::Other => {}
        }
        let place = self.0.number.checked_sub(inner.forgotten).map(usize::try_from);
        if let Some(Ok(place)) = place
            && let Some(entry) = inner.entries.get_mut(place)
        {
            entry.kind = kind;
        }
    }
}

impl Drop for OneRequest {
    fn drop(&mut self) {
        self.log.lock().now -= 1;
    }
}
