//! What one writes first: a loop that looks at every key every second, looks through every pull request for each
//! key, and sleeps for a tenth of a second when a domain is busy.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use dashmap::DashMap;
use tokio::time::{Instant, interval, sleep};

const WINDOW: Duration = Duration::from_secs(60);
const CONCURRENT: u32 = 5;
const PER_WINDOW: usize = 30;

struct Entry {
    next_attempt: Instant,
    attempts: u32,
    in_progress: bool,
}

struct PullRequest {
    /// `30617:<owner>:<identifier>`
    address: String,
    commit: String,
}

#[derive(Default)]
struct Purgatory {
    queue: DashMap<String, Entry>,
    pull_requests: DashMap<String, PullRequest>,
    announced: DashMap<String, Vec<String>>,
    tried: DashMap<(String, String), HashSet<String>>,
    in_flight: DashMap<String, u32>,
    starts: DashMap<String, VecDeque<Instant>>,
    here: DashMap<String, ()>,
}

/// One event for each identifier, until all are gone. The time that it takes, without its waits.
pub(crate) async fn run(count: usize, domains: usize) -> Duration {
    let purgatory = Arc::new(Purgatory::default());
    for number in 0..count {
        let id = number.to_string();
        let url = format!("https://host{}.example/{number}/0.git", number % domains);
        purgatory.announced.insert(id, vec![url]);
    }
    let began = crate::Work::begins();
    for number in 0..count {
        let id = number.to_string();
        let pull_request =
            PullRequest { address: format!("30617:owner:{id}"), commit: format!("{number:040x}") };
        purgatory.pull_requests.insert(format!("event {number}"), pull_request);
        let next_attempt = Instant::now() + Duration::from_millis(500);
        purgatory.queue.insert(id, Entry { next_attempt, attempts: 0, in_progress: false });
    }
    let mut ticks = interval(Duration::from_secs(1));
    while !purgatory.queue.is_empty() {
        ticks.tick().await;
        let now = Instant::now();
        let ready: Vec<String> = purgatory
            .queue
            .iter()
            .filter(|entry| !entry.in_progress && now >= entry.next_attempt)
            .map(|entry| entry.key().clone())
            .collect();
        for id in ready {
            if !purgatory.has_pending(&id) {
                purgatory.queue.remove(&id);
                continue;
            }
            if let Some(mut entry) = purgatory.queue.get_mut(&id) {
                entry.in_progress = true;
            }
            tokio::spawn(Arc::clone(&purgatory).sync(id));
        }
    }
    assert!(purgatory.pull_requests.is_empty());
    began.so_far()
}

impl Purgatory {
    async fn sync(self: Arc<Self>, id: String) {
        self.sync_identifier(&id).await;
        if !self.has_pending(&id) {
            self.queue.remove(&id);
        } else if let Some(mut entry) = self.queue.get_mut(&id) {
            entry.in_progress = false;
            entry.attempts += 1;
            let doublings = entry.attempts.saturating_sub(1).min(3);
            entry.next_attempt = Instant::now() + Duration::from_secs(20) * (1 << doublings);
        }
    }

    async fn sync_identifier(&self, id: &str) {
        loop {
            if !self.has_pending(id) {
                return;
            }
            let mut needed = self.needed(id);
            let Some(urls) = self.announced.get(id).map(|urls| urls.clone()) else { return };
            let mut by_domain: HashMap<String, Vec<String>> = HashMap::new();
            for url in urls {
                let domain = url.split('/').nth(2).unwrap_or_default().to_owned();
                by_domain.entry(domain).or_default().push(url);
            }
            let mut started = false;
            for (domain, urls) in &by_domain {
                for url in urls {
                    let key = (domain.clone(), id.to_owned());
                    let tried = self.tried.get(&key).is_some_and(|tried| tried.contains(url));
                    if tried || needed.is_empty() || !self.start(domain) {
                        continue;
                    }
                    started = true;
                    self.tried.entry(key).or_default().insert(url.clone());
                    for commit in needed.drain() {
                        self.here.insert(commit, ());
                    }
                    if let Some(mut in_flight) = self.in_flight.get_mut(domain) {
                        *in_flight -= 1;
                    }
                }
            }
            self.release(id);
            if !self.has_pending(id) {
                return;
            }
            if !started {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }

    fn start(&self, domain: &str) -> bool {
        let in_flight = self.in_flight.get(domain).map_or(0, |count| *count);
        let now = Instant::now();
        let recent = self.starts.get(domain).map_or(0, |starts| {
            starts.iter().filter(|start| now.duration_since(**start) < WINDOW).count()
        });
        if in_flight >= CONCURRENT || recent >= PER_WINDOW {
            return false;
        }
        *self.in_flight.entry(domain.to_owned()).or_insert(0) += 1;
        let mut starts = self.starts.entry(domain.to_owned()).or_default();
        while starts.front().is_some_and(|start| now.duration_since(*start) >= WINDOW) {
            starts.pop_front();
        }
        starts.push_back(now);
        true
    }

    /// Pull requests are kept by event, so all of them are looked through.
    fn has_pending(&self, id: &str) -> bool {
        self.pull_requests.iter().any(|each| each.is_for(id))
    }

    fn needed(&self, id: &str) -> HashSet<String> {
        let own = self.pull_requests.iter().filter(|each| each.is_for(id));
        own.map(|each| each.commit.clone()).collect()
    }

    fn release(&self, id: &str) {
        let own = self.pull_requests.iter().filter(|each| each.is_for(id));
        let complete = own.filter(|each| self.here.contains_key(&each.commit));
        let going: Vec<String> = complete.map(|each| each.key().clone()).collect();
        for event in going {
            self.pull_requests.remove(&event);
        }
    }
}

impl PullRequest {
    fn is_for(&self, id: &str) -> bool {
        self.address.splitn(3, ':').nth(2) == Some(id)
    }
}
