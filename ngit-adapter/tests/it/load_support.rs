//! A load on the real program: many clients with events of many repositories, whose data is on many git servers.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use ngit_adapter::relay::{RequestKind, RequestLog, SmartHttp};
use nostr::event::{Event, Kind};
use purgatory_sync::Oid;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    sync::oneshot,
    time::{sleep, sleep_until, timeout},
};

use crate::{
    e2e_support::{Random, metric},
    serve_support::{Client, RelayProcess},
    support::TestRepo,
    support_events::{Person, SOME_TIME},
    support_server::{TestServer, installed_git},
};

/// How many events there are of each repository: an announcement, a state, six pull requests and two patches.
pub(crate) const EVENTS_EACH: usize = 10;

/// Who sends how much in which time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) clients: usize,
    pub(crate) repositories: usize,
    /// Git servers, each with an address of its own: 127.0.1.1 and on.
    pub(crate) domains: usize,
    /// In which time all is sent, evenly. None: as fast as it is taken.
    pub(crate) over: Option<Duration>,
    /// How long after its first event a repository's data is looked for, in seconds.
    pub(crate) delay_secs: u32,
    /// How long the data of all may take to come after the last event was sent.
    pub(crate) drain: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// How long each `OK` took, from when its event was due to be sent, the shortest first.
    pub(crate) answers: Vec<Duration>,
    /// How long the sending took.
    pub(crate) sent_in: Duration,
    /// How long the last data came after the last event, if it came.
    pub(crate) drained_in: Option<Duration>,
    pub(crate) acknowledged: usize,
    pub(crate) refused: Vec<String>,
    pub(crate) served: usize,
    pub(crate) held: usize,
    /// What was acknowledged and is neither held nor served.
    pub(crate) lost: Vec<String>,
    /// Bytes of the relay's own memory, while events were sent, in order of time.
    pub(crate) memory: Vec<u64>,
    /// Requests that each git server saw begin.
    pub(crate) starts: Vec<Vec<Instant>>,
    /// Requests that one git server had on at once, at most.
    pub(crate) most_at_once: usize,
}

impl Report {
    /// The answer time that so many percent do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let last = self.answers.len().saturating_sub(1);
        self.answers.get(last * percent / 100).copied().unwrap_or_default()
    }

    /// The memory in the third and in the last quarter of the time, on average.
    pub(crate) fn second_half(&self) -> Option<(u64, u64)> {
        let quarter = self.memory.len() / 4;
        let mean = |of: &[u64]| {
            let count = u64::try_from(of.len()).ok().filter(|count| *count > 0)?;
            Some(of.iter().sum::<u64>() / count)
        };
        Some((mean(&self.memory[2 * quarter..3 * quarter])?, mean(&self.memory[3 * quarter..])?))
    }

    pub(crate) fn fetches(&self) -> usize {
        self.starts.iter().map(Vec::len).sum()
    }

    /// The shortest time in which one server saw so many requests begin.
    pub(crate) fn shortest_span_of(&self, count: usize) -> Option<Duration> {
        let spans = self.starts.iter().flat_map(|starts| starts.windows(count));
        spans.map(|of| of[count - 1] - of[0]).min()
    }
}

/// Git servers that have one repository's data under any name.
struct Servers {
    servers: Vec<TestServer>,
    logs: Vec<RequestLog>,
    main: Oid,
    changes: Vec<Oid>,
    _folder: TempDir,
}

impl Servers {
    fn new(domains: usize) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let repo = TestRepo::init(folder.path().join("x.git"));
        let main = *repo.commits("main", 20).last().expect("there are some");
        let change = |number: usize| {
            let branch = format!("change-{number}");
            repo.set_branch(&branch, main);
            repo.commit(&branch, "change.txt", &branch)
        };
        let changes = (0..6).map(change).collect();
        repo.git(["repack", "-a", "-d", "-q"]);
        let path = repo.path().to_owned();
        let (git, mut servers, mut logs) = (installed_git(), Vec::new(), Vec::new());
        for number in 1..=domains {
            let (log, path) = (RequestLog::default(), path.clone());
            let any = SmartHttp::new(git.clone(), move |_| Some(path.clone()));
            let router = any.with_log(log.clone()).into_router();
            servers.push(TestServer::start_with(&format!("127.0.1.{number}"), router, log.clone()));
            logs.push(log);
        }
        Self { servers, logs, main, changes, _folder: folder }
    }

    /// The events of a repository in the order in which they are sent.
    fn events(&self, relay: &RelayProcess, owner: &Person, number: usize) -> Vec<Event> {
        let name = format!("repo-{number}");
        let server = &self.servers[number % self.servers.len()];
        let mut events = vec![
            relay.announcement(owner, &name, &[&server.url(&format!("{name}.git"))]),
            owner.state(&name, &[("refs/heads/main", self.main)]),
        ];
        let author = Person::new(255);
        events.extend(self.changes.iter().map(|tip| author.pull_request(owner, &name, *tip, &[])));
        let a = format!("30617:{}:{name}", owner.key().to_hex());
        let patch = |number: u64| author.sign(Kind::GitPatch, SOME_TIME + number, &[["a", &a]]);
        events.extend([0, 1].map(patch));
        assert_eq!(events.len(), EVENTS_EACH);
        events
    }
}

/// Runs it on a relay of its own.
pub(crate) async fn run(plan: Plan) -> Report {
    let servers = Servers::new(plan.domains);
    let delay = format!("--sync-default-delay-secs={}", plan.delay_secs);
    let relay = RelayProcess::start_with(
        &[&delay, "--max-events-per-minute=1000000", "--max-messages-per-minute=1000000"],
        &[("RUST_LOG", "warn")],
    );
    let mut clients = Vec::new();
    for number in 0..plan.clients {
        let owner = Person::new(u8::try_from(number % 200).expect("below 200") + 1);
        let own = (number..plan.repositories).step_by(plan.clients);
        let events: Vec<_> = own.flat_map(|it| servers.events(&relay, &owner, it)).collect();
        clients.push((Client::connect(&relay).await, events));
    }
    let begun = Instant::now();
    let (stop, stopped) = oneshot::channel();
    let sampling = tokio::spawn(sample(relay.process_id(), stopped));
    let mut sending = Vec::new();
    for (number, (client, events)) in clients.into_iter().enumerate() {
        let every = plan.over.map(|over| over / u32::try_from(events.len()).expect("few"));
        // Not all at the same moment.
        let share = Random::new(u64::try_from(number).expect("few")).below(1_000);
        let share = u32::try_from(share).expect("it is below 1,000");
        let first = begun + every.map_or(Duration::ZERO, |every| every * share / 1_000);
        sending.push(tokio::spawn(send(client, events, first, every)));
    }
    let (mut report, mut taken) = (Report::default(), Vec::new());
    for client in sending {
        for sent in client.await.expect("a client does not fail") {
            report.answers.push(sent.took);
            if sent.taken {
                taken.push(sent.event);
            } else {
                report.refused.push(sent.said);
            }
        }
    }
    report.answers.sort_unstable();
    report.sent_in = begun.elapsed();
    drop(stop);
    report.memory = sampling.await.expect("it can be read");
    report.acknowledged = taken.len();
    report.drained_in = drain(&relay, plan.drain).await;
    account_for(&relay, &taken, &mut report).await;
    for log in &servers.logs {
        let entries = log.entries();
        let begun = entries.iter().filter(|it| it.kind == RequestKind::Advertisement);
        report.starts.push(begun.map(|it| it.at).collect());
        report.most_at_once = report.most_at_once.max(log.most_at_once());
    }
    report
}

/// An event and what was said to it.
struct Sent {
    event: Event,
    took: Duration,
    taken: bool,
    said: String,
}

/// Sends one event after the other, each at its time or when the one before was answered.
async fn send(
    mut client: Client,
    events: Vec<Event>,
    first: Instant,
    every: Option<Duration>,
) -> Vec<Sent> {
    let mut sent = Vec::new();
    let mut due = first;
    for event in events {
        match every {
            Some(every) => {
                sleep_until(due.into()).await;
                let (taken, said) = client.publish(&event).await;
                // From when it was due: what waits behind a slow answer was slow, too.
                sent.push(Sent { event, took: due.elapsed(), taken, said });
                due += every;
            }
            None => {
                let begun = Instant::now();
                let (taken, said) = client.publish(&event).await;
                sent.push(Sent { event, took: begun.elapsed(), taken, said });
            }
        }
    }
    sent
}

/// The memory that is the process' own, twice a second: files that are mapped, such as the database, are not in it.
async fn sample(process: u32, mut stopped: oneshot::Receiver<()>) -> Vec<u64> {
    let mut samples = Vec::new();
    while timeout(Duration::from_millis(500), &mut stopped).await.is_err() {
        samples.extend(memory(process));
    }
    samples
}

fn memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1_024)
}

/// Waits until nothing is held.
async fn drain(relay: &RelayProcess, most: Duration) -> Option<Duration> {
    let begun = Instant::now();
    while metric(relay, "ngit_relay_held_events") > 0.0 {
        if begun.elapsed() > most {
            return None;
        }
        sleep(Duration::from_millis(200)).await;
    }
    Some(begun.elapsed())
}

/// Looks for everything that was taken: it is served, or held, or lost.
async fn account_for(relay: &RelayProcess, taken: &[Event], report: &mut Report) {
    let mut client = Client::connect(relay).await;
    for some in taken.chunks(500) {
        let ids: Vec<_> = some.iter().map(|event| event.id.to_hex()).collect();
        let served: BTreeSet<_> = client.served(json!({"ids": ids})).await.into_iter().collect();
        report.served += served.len();
        for event in some.iter().filter(|event| !served.contains(&event.id.to_hex())) {
            // What is held is a duplicate. What was lost is taken anew.
            let (_, said) = client.publish(event).await;
            if said.starts_with("duplicate: ") {
                report.held += 1;
            } else {
                report.lost.push(event.id.to_hex());
            }
        }
    }
}
