use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nostr::event::{Event, EventId};
use purgatory_sync::{
    Activity, EventsReleased, FetchEnded, FetchOutcome, Identifier, IdentifierSnapshot, Observer,
    Snapshot, State, SyncEvent,
    domain_throttle::{Domain, Limits},
};
use tokio::time::Instant;

use super::{
    hosts::Host,
    now,
    paint::Paint,
    words::{answer, count, whole_seconds},
    world::{Told, World},
};
use crate::{cli::line_writer::LineSink, store::StoreObserver};

/// Tells what happens as it happens, and remembers what the view and the ending need of it.
pub(super) struct Story {
    pub(super) world: Arc<World>,
    pub(super) out: LineSink,
    pub(super) paint: Paint,
    pub(super) limits: Limits,
    pub(super) began: Instant,
    heard: Mutex<Heard>,
}

/// What was heard so far.
#[derive(Clone, Default)]
pub(super) struct Heard {
    /// How many events came, and how many of them wait for git data.
    pub(super) came: usize,
    pub(super) wait: usize,
    /// The events that went, announcements too.
    pub(super) released: Vec<EventId>,
    /// How many of those waited.
    pub(super) released_waiting: usize,
    /// How often each server was to be asked, whether anybody was there or not.
    pub(super) tries: BTreeMap<Host, usize>,
    /// What each server answered last, and about what.
    pub(super) last: BTreeMap<Host, String>,
    /// The servers that failed a repository the last time, and how.
    pub(super) failed: BTreeMap<(Identifier, Host), String>,
    /// The repositories for which a server was asked in the pass that is on.
    asked: BTreeSet<Identifier>,
    waits_told: BTreeSet<(Identifier, Domain)>,
    puts_off_told: BTreeSet<(Identifier, u32)>,
}

impl Story {
    pub(super) fn new(world: Arc<World>, out: LineSink, paint: Paint, limits: Limits) -> Self {
        Self { world, out, paint, limits, began: now(), heard: Mutex::default() }
    }

    pub(super) fn heard(&self) -> Heard {
        self.lock().clone()
    }

    /// An event comes.
    pub(super) fn arrives(&self, told: &Told) {
        let mut heard = self.lock();
        heard.came += 1;
        heard.wait += usize::from(told.waits());
    }

    /// A line about a repository.
    pub(super) fn about(&self, repository: &str, what: &str) {
        let time = now().saturating_duration_since(self.began).as_millis();
        let time = self.paint.dim(&format!("{:>2}.{:02} s", time / 1_000, time % 1_000 / 10));
        self.out.try_line(format!("  {time}  {repository:<8} {what}"));
    }

    /// Tells what nobody announces: who waits in which line, and who is put off. Each once.
    pub(super) fn sees(&self, snapshot: &Snapshot) {
        for each in &snapshot.identifiers {
            match &each.state {
                State::Running(Activity::InLine { domains }) => self.waits(each, domains),
                State::Backoff { until } | State::Paused { until } => {
                    self.is_put_off(each, (*until).into());
                }
                _ => {}
            }
        }
    }

    fn waits(&self, who: &IdentifierSnapshot, domains: &[Domain]) {
        for domain in domains {
            let waits = (who.identifier.clone(), domain.clone());
            if self.lock().waits_told.insert(waits) {
                let limit = self.limits.max_concurrent;
                let domain = domain.as_str();
                let why = format!("{domain:<12} waits in line: {limit} at once is the limit");
                self.about(who.identifier.as_str(), &self.paint.yellow(&why));
            }
        }
    }

    fn is_put_off(&self, who: &IdentifierSnapshot, until: Instant) {
        if !self.lock().puts_off_told.insert((who.identifier.clone(), who.attempt)) {
            return;
        }
        let time = whole_seconds(until.saturating_duration_since(now()));
        let why = format!("{} still held, next try in {time}", count(who.held, "event"));
        self.about(who.identifier.as_str(), &self.paint.yellow(&why));
    }

    fn fetch_ended(&self, fetch: &FetchEnded) {
        let Some(host) = Host::of(fetch.url.domain()) else { return };
        let answer = answer(fetch);
        let repository = fetch.identifier.as_str();
        let cost = format!(
            "{}, {} ms",
            count(usize::try_from(fetch.requests).unwrap_or(usize::MAX), "request"),
            fetch.elapsed.as_millis()
        );
        let cost = self.paint.dim(&cost);
        self.about(repository, &format!("{:<12} {answer:<19} {cost}", host.name()));
        let mut heard = self.lock();
        heard.last.insert(host, format!("{repository}: {answer}"));
        let of_this = (fetch.identifier.clone(), host);
        match fetch.outcome {
            FetchOutcome::Failed(_) => heard.failed.insert(of_this, answer),
            _ => heard.failed.remove(&of_this),
        };
    }

    fn went(&self, went: &EventsReleased) {
        let mut what = self.paint.green(&format!("{} released", count(went.released, "event")));
        if !self.lock().asked.contains(&went.identifier) {
            what.push_str(": the data is here already");
        }
        if went.held > 0 {
            what.push_str(&format!(", {} still held", went.held));
        }
        self.about(went.identifier.as_str(), &what);
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Story {
    fn observe(&self, event: &SyncEvent) {
        match event {
            SyncEvent::PassStarted(pass) => {
                self.lock().asked.remove(&pass.identifier);
            }
            SyncEvent::FetchStarted(fetch) => {
                let mut heard = self.lock();
                heard.asked.insert(fetch.identifier.clone());
                if let Some(host) = Host::of(fetch.url.domain()) {
                    *heard.tries.entry(host).or_default() += 1;
                }
            }
            SyncEvent::FetchEnded(fetch) => self.fetch_ended(fetch),
            SyncEvent::Released(went) => self.went(went),
            _ => {}
        }
    }
}

impl StoreObserver for Story {
    fn announced(&self, _: &Identifier, event: &Event) {
        self.lock().released.push(event.id);
    }

    fn released(&self, _: &Identifier, event: &Event) {
        let mut heard = self.lock();
        heard.released.push(event.id);
        heard.released_waiting += 1;
    }
}
