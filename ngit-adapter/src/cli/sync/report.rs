use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nostr::event::{Event, EventId, Kind};
use purgatory_sync::{
    FetchEnded, FetchError, FetchErrorKind, FetchOutcome, Identifier, Observer, Oid, SyncEvent,
    domain_throttle::Domain,
};

use super::{
    progress::Progress,
    record::{Record, Summary},
};
use crate::{
    cli::{line_writer::LineSink, printable::printable, session::Whose},
    store::{Admission, HeldEvent, Outcome, StoreObserver},
};

/// Counts what happens and tells it: to a program on stdout, to a person on stderr, and the events to a file.
pub(super) struct Report {
    summary: Mutex<Summary>,
    json: Option<LineSink>,
    out: Option<Out>,
    progress: Progress,
    said: Mutex<HashSet<(Domain, FetchErrorKind)>>,
}

/// Where released events go, and what went.
struct Out {
    sink: LineSink,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    /// Announcements.
    announced: HashSet<EventId>,
    /// Of whose repositories of each name something was released.
    released: Released,
}

/// Of whose repositories of each name something was released.
pub(super) type Released = BTreeMap<Identifier, BTreeSet<Whose>>;

impl Out {
    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many servers' failures are said.
const MAX_COMPLAINTS: usize = 1_000;

impl Report {
    pub(super) fn new(json: Option<LineSink>, out: Option<LineSink>, progress: Progress) -> Self {
        let out = out.map(|sink| Out { sink, written: Mutex::default() });
        Self { summary: Mutex::default(), json, out, progress, said: Mutex::default() }
    }

    /// A line of the input is not used.
    pub(super) async fn rejected(&self, line: u64, reason: String) {
        self.count(|summary| summary.rejected += 1);
        if self.json.is_none() {
            self.progress.say(&format!("line {line} is not used: {}", printable(&reason)));
        }
        self.record(&Record::Rejected { line, reason }).await;
    }

    /// An event of the input was taken.
    pub(super) fn taken(&self, admission: &Admission) {
        self.count(|summary| {
            summary.events += 1;
            match admission.outcome {
                Outcome::Announced { .. } => summary.announcements += 1,
                Outcome::Passed => summary.passed += 1,
                Outcome::Other | Outcome::Deletion { .. } => summary.other += 1,
                // Held events are counted at the end. The others leave no trace.
                _ => {}
            }
        });
        if matches!(admission.outcome, Outcome::Held { .. }) {
            self.progress.held();
        }
    }

    /// An event is held at the end.
    pub(super) async fn held(&self, event: &HeldEvent, missing: &[Oid]) {
        self.count(|summary| summary.held += 1);
        let reason = event.reason.as_ref().map(ToString::to_string);
        if self.json.is_none() {
            let what = match (&reason, missing) {
                (Some(reason), _) => printable(reason),
                (None, []) => "nothing is missing".to_owned(),
                (None, [one]) => format!("{one} is missing"),
                (None, [one, rest @ ..]) => format!("{one} and {} more are missing", rest.len()),
            };
            let identifier = printable(event.identifier.as_str());
            let name = kind_name(event.kind);
            self.progress.say(&format!("held: {name} {} of {identifier}: {what}", event.id));
        }
        self.record(&Record::Held {
            id: event.id.to_hex(),
            kind: event.kind.as_u16(),
            identifier: event.identifier.as_str(),
            missing: missing.iter().map(Oid::to_string).collect(),
            reason,
        })
        .await;
    }

    /// Of whose repositories events were written out. Their announcements may have been let go in an earlier run.
    pub(super) fn released(&self) -> Released {
        self.out.as_ref().map(|out| out.lock().released.clone()).unwrap_or_default()
    }

    /// Writes an announcement out that is served, unless it was written in this run.
    pub(super) async fn announced_before(&self, event: &Event) {
        if let Some(out) = &self.out
            && out.lock().announced.insert(event.id)
        {
            out.sink.line(event.as_json()).await;
        }
    }

    /// The last line.
    pub(super) async fn end(&self, took: Duration) -> Summary {
        self.count(|summary| summary.ms = in_ms(took));
        let summary = self.lock().clone();
        if self.json.is_none() {
            self.progress.say(&in_words(&summary));
        }
        self.record(&Record::Summary(summary.clone())).await;
        summary
    }

    async fn record(&self, record: &Record<'_>) {
        if let Some(json) = &self.json {
            json.line(record.to_line()).await;
        }
    }

    fn fetch_ended(&self, fetch: &FetchEnded) {
        self.count(|summary| {
            summary.fetches += 1;
            summary.http_requests += u64::from(fetch.requests);
        });
        let Some(json) = &self.json else {
            self.complain(fetch);
            return;
        };
        json.try_line(
            Record::Fetch {
                identifier: fetch.identifier.as_str(),
                url: fetch.url.as_str(),
                domain: fetch.url.domain().as_str(),
                wanted: fetch.wanted,
                received: fetch.received,
                outcome: fetch.outcome.as_str(),
                ms: in_ms(fetch.elapsed),
            }
            .to_line(),
        );
    }

    /// Says once for each server what fails there.
    fn complain(&self, fetch: &FetchEnded) {
        let FetchOutcome::Failed(kind) = fetch.outcome else { return };
        let domain = fetch.url.domain();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let first = said.len() < MAX_COMPLAINTS && said.insert((domain.clone(), kind));
        drop(said);
        if first {
            let domain = printable(domain.as_str());
            self.progress.say(&format!("{domain}: {}", FetchError::new(kind)));
        }
    }

    fn count(&self, change: impl FnOnce(&mut Summary)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Summary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Report {
    fn observe(&self, event: &SyncEvent) {
        match event {
            SyncEvent::FetchStarted(fetch) => {
                let identifier = printable(fetch.identifier.as_str());
                self.progress.doing(format!("asking {} for {identifier}", fetch.url.domain()));
            }
            SyncEvent::FetchEnded(fetch) => self.fetch_ended(fetch),
            _ => {}
        }
    }
}

impl StoreObserver for Report {
    fn announced(&self, _: &Identifier, event: &Event) {
        if let Some(out) = &self.out {
            out.sink.try_line(event.as_json());
            out.lock().announced.insert(event.id);
        }
    }

    fn released(&self, identifier: &Identifier, event: &Event) {
        self.count(|summary| summary.released += 1);
        self.progress.released();
        if let Some(json) = &self.json {
            let record = Record::Released {
                id: event.id.to_hex(),
                kind: event.kind.as_u16(),
                identifier: identifier.as_str(),
            };
            json.try_line(record.to_line());
        }
        if let Some(out) = &self.out {
            out.sink.try_line(event.as_json());
            out.lock().released.entry(identifier.clone()).or_default().extend(Whose::of(event));
        }
    }
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::RepoState => "state",
        Kind::GitPullRequest => "pull request",
        Kind::GitPullRequestUpdate => "update",
        _ => "event",
    }
}

fn in_words(summary: &Summary) -> String {
    let Summary { events, rejected, announcements, passed, other, .. } = summary;
    let Summary { held, released, fetches, http_requests, ms, .. } = summary;
    let (secs, tenths) = (ms / 1_000, ms % 1_000 / 100);
    format!(
        "{released} released and {held} held of {events} events ({announcements} announcements, {passed} passed, \
         {other} of other kinds; {rejected} lines not used); {fetches} fetches with {http_requests} HTTP requests, \
         {secs}.{tenths} s"
    )
}
