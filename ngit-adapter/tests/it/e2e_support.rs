//! What the end-to-end tests have in common: servers that wait for leave to answer, announcements of several
//! relays, and what a relay has logged.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use ngit_adapter::relay::{RequestKind, RequestLog, SmartHttp};
use nostr::event::{Event, Kind};
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    serve_support::RelayProcess,
    support_events::{Person, SOME_TIME},
    support_server::{TestServer, installed_git},
};

/// What a client sends is looked for after a second, and not after three minutes.
pub(crate) const QUICK: &str = "--sync-default-delay-secs=1";
/// The log as JSON, for [`records`].
pub(crate) const JSON: &str = "--log-format=json";
/// And all that the engine says in it.
pub(crate) const ALL_OF_IT: (&str, &str) = ("RUST_LOG", "info,purgatory_sync=debug");

/// Numbers that look random and are the same in every run with the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let count = u64::try_from(from.len()).expect("few enough");
        &from[usize::try_from(self.below(count)).expect("it was a usize")]
    }
}

/// Where the first request of every fetch waits until the gate is opened. Clones are the same gate; several servers
/// may stand behind one.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<GateState>);

#[derive(Debug)]
struct GateState {
    open: watch::Sender<bool>,
    seen: Mutex<Seen>,
}

/// By the first part of the path: the name of the repository that is looked for.
#[derive(Debug, Default)]
struct Seen {
    now: BTreeMap<String, usize>,
    most_of_one: usize,
}

impl Gate {
    pub(crate) fn closed() -> Self {
        let (open, _) = watch::channel(false);
        Self(Arc::new(GateState { open, seen: Mutex::default() }))
    }

    pub(crate) fn open(&self) {
        self.0.open.send_replace(true);
    }

    /// A server on this address behind the gate, which counts what passed it in `log`.
    pub(crate) fn guard(&self, ip: &str, folder: &Path, log: &RequestLog) -> TestServer {
        let git = SmartHttp::folder(installed_git(), folder).with_log(log.clone()).into_router();
        let router: Router = git.layer(middleware::from_fn_with_state(self.clone(), hold));
        TestServer::start_with(ip, router, log.clone())
    }

    /// The names whose requests are on, before the gate or behind it.
    pub(crate) fn names(&self) -> Vec<String> {
        self.seen().now.keys().cloned().collect()
    }

    /// How many first requests of one name were on at once, at most.
    pub(crate) fn most_of_one(&self) -> usize {
        self.seen().most_of_one
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hold(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if !path.ends_with("/info/refs") {
        return next.run(request).await;
    }
    let name = path.split('/').nth(1).unwrap_or_default().to_owned();
    let _on = On::new(&gate, name);
    let mut open = gate.0.open.subscribe();
    // The gate outlives the wait: its sender is here.
    let _ = open.wait_for(|open| *open).await;
    next.run(request).await
}

/// A request that is on, also if its client goes.
struct On<'a>(&'a Gate, String);

impl<'a> On<'a> {
    fn new(gate: &'a Gate, name: String) -> Self {
        let mut seen = gate.seen();
        let now = seen.now.entry(name.clone()).or_default();
        *now += 1;
        let now = *now;
        seen.most_of_one = seen.most_of_one.max(now);
        drop(seen);
        Self(gate, name)
    }
}

impl Drop for On<'_> {
    fn drop(&mut self) {
        let mut seen = self.0.seen();
        if let Some(now) = seen.now.get_mut(&self.1) {
            *now -= 1;
            if *now == 0 {
                seen.now.remove(&self.1);
            }
        }
    }
}

/// The paths of the fetches that a server saw begin, in order, without what git adds.
pub(crate) fn asked(log: &RequestLog) -> Vec<String> {
    let entries = log.entries();
    let begun = entries.iter().filter(|entry| entry.kind == RequestKind::Advertisement);
    begun.map(|entry| entry.path.trim_end_matches("/info/refs").to_owned()).collect()
}

/// An announcement that lists these relays and then these clone URLs, `later` seconds after the first one.
pub(crate) fn announcement_on(
    relays: &[&RelayProcess],
    owner: &Person,
    identifier: &str,
    urls: &[String],
    later: u64,
) -> Event {
    let own = relays.iter().map(|relay| relay.repository_url(owner, identifier));
    let mut clone = vec!["clone".to_owned()];
    clone.extend(own.chain(urls.iter().cloned()));
    let mut of = vec!["relays".to_owned()];
    of.extend(relays.iter().map(|relay| relay.websocket()));
    let tags = [vec!["d".to_owned(), identifier.to_owned()], clone, of];
    owner.sign(Kind::GitRepoAnnouncement, SOME_TIME + later, &tags)
}

/// The lines of a relay's log that are whole, if it was started with [`JSON`].
pub(crate) fn records(relay: &RelayProcess) -> Vec<Value> {
    relay.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Those of them that say this of this identifier.
pub(crate) fn said(relay: &RelayProcess, message: &str, identifier: &str) -> Vec<Value> {
    let mut records = records(relay);
    records.retain(|it| it["message"] == message && it["identifier"] == identifier);
    records
}

/// A number of `/metrics`, all labels taken together.
pub(crate) fn metric(relay: &RelayProcess, name: &str) -> f64 {
    let text = relay.get("/metrics").text();
    let lines = text
        .lines()
        .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}
