//! What the page shows, looked up once.

use std::time::{Duration, Instant};

use nostr::{
    event::{EventId, Kind},
    key::PublicKey,
    types::Timestamp,
};
use purgatory_sync::{
    Activity, IdentifierSnapshot, State,
    domain_throttle::{Domain, DomainThrottle},
};

use super::super::{
    peers::{PeerState, Row as PeerRow},
    shared::Shared,
};

/// How many repositories are shown with what is held of them, and how many events of each.
const MAX_REPOSITORIES: usize = 50;
const MAX_EVENTS: usize = 20;

/// What the page shows.
pub(super) struct View {
    pub(super) name: String,
    pub(super) owner: Option<PublicKey>,
    pub(super) held: usize,
    pub(super) fetching: usize,
    pub(super) queued: usize,
    pub(super) repositories: Vec<Repository>,
    pub(super) domains: Vec<Row>,
    pub(super) peers: Vec<Peer>,
    pub(super) released: Vec<Released>,
}

/// What is held of one identifier, and what is done about it.
pub(super) struct Repository {
    pub(super) identifier: String,
    pub(super) doing: String,
    pub(super) attempt: u32,
    pub(super) missing: usize,
    pub(super) last: Option<String>,
    pub(super) events: Vec<Held>,
    pub(super) more: usize,
}

pub(super) struct Held {
    pub(super) id: EventId,
    pub(super) kind: Kind,
    pub(super) why: String,
}

/// How one domain stands.
pub(super) struct Row {
    pub(super) domain: String,
    pub(super) in_flight: u64,
    pub(super) requests: u64,
    pub(super) last_minute: Option<String>,
    pub(super) waiting: usize,
    pub(super) paused: Option<String>,
}

/// How it stands with another relay.
pub(super) struct Peer {
    pub(super) url: String,
    pub(super) doing: String,
    pub(super) events: u64,
    pub(super) failures: u32,
}

pub(super) struct Released {
    pub(super) id: EventId,
    pub(super) kind: Kind,
    pub(super) identifier: String,
    pub(super) ago: String,
}

pub(super) async fn look(shared: &Shared) -> View {
    let now = now();
    let snapshot = shared.sync().snapshot();
    let (queued, fetching) = (snapshot.identifiers.len(), snapshot.fetching());
    let mut identifiers = snapshot.identifiers;
    identifiers.sort_by(|one, other| {
        rank(one).cmp(&rank(other)).then_with(|| one.identifier.cmp(&other.identifier))
    });
    identifiers.truncate(MAX_REPOSITORIES);
    let mut repositories = Vec::new();
    for each in identifiers {
        repositories.push(repository(shared, each, now).await);
    }
    View {
        name: shared.ours().to_string(),
        owner: shared.owner().copied(),
        held: shared.store().held_count(),
        fetching,
        queued,
        repositories,
        domains: domains(shared.throttle(), now),
        peers: shared.peers().all().into_iter().map(|row| peer(row, now)).collect(),
        released: released(shared),
    }
}

/// Those that run first, then the one whose turn comes next.
fn rank(each: &IdentifierSnapshot) -> (u8, Option<Instant>) {
    match &each.state {
        State::Running(_) => (0, None),
        State::Waiting { by } => (1, *by),
        State::Backoff { until } | State::Paused { until } => (2, Some(*until)),
        _ => (3, None),
    }
}

async fn repository(shared: &Shared, each: IdentifierSnapshot, now: Instant) -> Repository {
    // What cannot be looked up now is not shown; the page comes again in a moment.
    let held = shared.store().held_of(&each.identifier).await.unwrap_or_default();
    let more = held.len().saturating_sub(MAX_EVENTS);
    let events = held.into_iter().take(MAX_EVENTS).map(|event| Held {
        id: event.id,
        kind: event.kind,
        why: match (event.reason, event.oids.len()) {
            (Some(reason), _) => reason.to_string(),
            (None, objects) => format!("waits for {}", counted(objects, "object")),
        },
    });
    Repository {
        events: events.collect(),
        more,
        doing: doing(&each.state, now),
        attempt: each.attempt,
        missing: each.missing,
        last: each.last_pass.map(|pass| {
            let fetches = match pass.fetches {
                1 => "1 fetch".to_owned(),
                fetches => format!("{fetches} fetches"),
            };
            format!("{}, {fetches}", words(pass.why.as_str()))
        }),
        identifier: each.identifier.as_str().to_owned(),
    }
}

fn doing(state: &State, now: Instant) -> String {
    match state {
        State::Waiting { by: Some(by) } => format!("next attempt within {}", span(*by, now)),
        State::Waiting { by: None } => "next attempt when its turn comes".to_owned(),
        State::Running(Activity::Fetching { url, since }) => {
            format!("fetching from {url} for {}", span(now, *since))
        }
        State::Running(Activity::InLine { domains }) => {
            let domains: Vec<_> = domains.iter().map(Domain::as_str).collect();
            format!("in line at {}", domains.join(", "))
        }
        State::Running(Activity::WaitingForSlot) => "waits until fewer fetches are on".to_owned(),
        State::Running(Activity::Releasing) => "letting events go".to_owned(),
        State::Running(_) => "looking at what is missing".to_owned(),
        State::Backoff { until } => format!("next attempt in {}", span(*until, now)),
        State::Paused { until } => {
            format!("its servers are paused, next attempt in {}", span(*until, now))
        }
        _ => String::new(),
    }
}

fn domains(throttle: &DomainThrottle, now: Instant) -> Vec<Row> {
    let rows = throttle.tallies().into_iter().map(|tally| {
        let counts = tally.domain.as_ref().and_then(|domain| throttle.counts(domain));
        let paused = counts.as_ref().and_then(|it| it.paused_until).filter(|until| *until > now);
        Row {
            domain: tally.domain.map_or("all others".to_owned(), |it| it.as_str().to_owned()),
            in_flight: tally.in_flight,
            requests: tally.requests,
            last_minute: counts
                .as_ref()
                .map(|it| format!("{} of {}", it.in_window, it.limits.max_per_window)),
            waiting: counts.as_ref().map_or(0, |it| it.waiting),
            paused: paused.map(|until| span(until, now)),
        }
    });
    rows.collect()
}

fn peer(row: PeerRow, now: Instant) -> Peer {
    let doing = match row.state {
        PeerState::Waiting(until) => format!("next attempt in {}", span(until, now)),
        other => words(other.as_str()),
    };
    Peer { url: row.url.to_string(), doing, events: row.events, failures: row.failures }
}

fn released(shared: &Shared) -> Vec<Released> {
    let now = Timestamp::now().as_secs();
    let all = shared.recent().all().into_iter().map(|release| Released {
        id: release.id,
        kind: release.kind,
        identifier: release.identifier.as_str().to_owned(),
        ago: time(Duration::from_secs(now.saturating_sub(release.at.as_secs()))),
    });
    all.collect()
}

/// A number of things, with an `s` where there are several.
pub(super) fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn span(until: Instant, from: Instant) -> String {
    time(until.saturating_duration_since(from))
}

/// A length of time for people: whole seconds, rounded up, or minutes and more.
fn time(length: Duration) -> String {
    let secs = length.as_secs() + u64::from(length.subsec_nanos() > 0);
    match secs {
        0..120 => format!("{secs} s"),
        120..7_200 => format!("{} min", secs / 60),
        _ => format!("{} h", secs / 3_600),
    }
}

#[expect(clippy::disallowed_methods, reason = "the page is about now")]
fn now() -> Instant {
    Instant::now()
}
