//! P12: the log lines of the proposal, each with its level and its fields.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use purgatory_sync::FetchErrorKind;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::common::*;

/// A line: level, message, fields.
#[derive(Clone, Debug)]
struct Line {
    level: Level,
    message: String,
    fields: BTreeMap<String, String>,
}

#[derive(Clone, Default)]
struct Lines {
    lines: Arc<Mutex<Vec<Line>>>,
    spans: Arc<Mutex<Vec<Line>>>,
    next: Arc<AtomicU64>,
}

struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("purgatory_sync")
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields(BTreeMap::new());
        attributes.record(&mut fields);
        let (level, message) =
            (*attributes.metadata().level(), attributes.metadata().name().into());
        self.spans.lock().unwrap().push(Line { level, message, fields: fields.0 });
        span::Id::from_u64(1 + self.next.fetch_add(1, Ordering::SeqCst))
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let level = *event.metadata().level();
        self.lines.lock().unwrap().push(Line { level, message, fields: fields.0 });
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Lines {
    fn with(&self, message: &str) -> Vec<Line> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.message == message).cloned().collect()
    }
}

/// Runs on a paused clock, in one thread, with a subscriber of its own.
fn logged(work: impl AsyncFnOnce()) -> Lines {
    let lines = Lines::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    tracing::subscriber::with_default(lines.clone(), || runtime.block_on(work()));
    lines
}

fn fields(line: &Line) -> Vec<(&str, &str)> {
    line.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// P12: INFO "OIDs fetched", "state synced", "sync complete".
#[test]
fn info_oids_fetched_state_synced_sync_complete() {
    let lines = logged(async || {
        let world = World::new();
        let (one, two) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
        world.git.serve(&one, [oid(1)]);
        world.git.serve(&two, [oid(2), oid(3)]);
        world.announce("repo", &[&one, &two]);
        world.state("repo", "state", &[1, 2, 3]);
        world.idle().await;
    });
    let fetched = lines.with("OIDs fetched");
    assert!(fetched.iter().all(|line| line.level == Level::INFO));
    assert_eq!(
        fields(&fetched[0]),
        [
            ("domain", "one.example"),
            ("fetched", "1"),
            ("identifier", "repo"),
            ("remaining", "2"),
            ("url", "https://one.example/a.git")
        ]
    );
    assert_eq!(fetched[1].fields["remaining"], "0");
    let synced = lines.with("state synced");
    assert_eq!(synced[0].level, Level::INFO);
    assert_eq!(fields(&synced[0]), [("held", "0"), ("identifier", "repo"), ("released", "1")]);
    let complete = lines.with("sync complete");
    assert_eq!((complete.len(), complete[0].level), (1, Level::INFO));
    assert_eq!(fields(&complete[0]), [("identifier", "repo"), ("released", "1")]);
    let spans = lines.spans.lock().unwrap();
    assert_eq!(spans[0].message, "pass");
    assert_eq!(fields(&spans[0]), [("attempt", "1"), ("identifier", "repo")]);
}

/// P12: DEBUG "capacity checked", "tried URLs", "backoff applied".
#[test]
fn debug_capacity_tried_urls_backoff() {
    let lines = logged(async || {
        let world = World::with(|config| config.with_domain_rate_limit(1).unwrap());
        let (one, two) = (url("https://one.example/a.git"), url("https://one.example/b.git"));
        world.git.serve(&one, []);
        world.git.serve(&two, []);
        world.announce("repo", &[&one, &two]);
        world.state("repo", "state", &[1]);
        pass(secs(70)).await;
    });
    let capacity = lines.with("capacity checked");
    assert_eq!(capacity[0].level, Level::DEBUG);
    assert_eq!(
        fields(&capacity[0]),
        [("capacity", "free"), ("domain", "one.example"), ("identifier", "repo")]
    );
    assert_eq!(capacity[1].fields["capacity"], "window");
    let tried = lines.with("tried URLs");
    assert_eq!(tried[0].level, Level::DEBUG);
    assert_eq!(
        fields(&tried[0]),
        [
            ("domain", "one.example"),
            ("identifier", "repo"),
            ("known", "2"),
            ("tried", "2"),
            ("why", "all_asked")
        ]
    );
    let backoff = lines.with("backoff applied");
    assert_eq!(backoff[0].level, Level::DEBUG);
    assert_eq!(
        fields(&backoff[0]),
        [
            ("attempt", "1"),
            ("identifier", "repo"),
            ("next_attempt_secs", "20.0"),
            ("why", "all_asked")
        ]
    );
}

/// P12: WARN "fetch failed", "processing failed", with the causes.
#[test]
fn warn_fetch_failed_processing_failed() {
    let lines = logged(async || {
        let world = World::new();
        let dead = url("https://dead.example/a.git");
        world.git.always(&dead, Reply::Fail(FetchErrorKind::Network));
        world.announce("repo", &[&dead]);
        world.state("repo", "state", &[1]);
        pass(secs(2)).await;
        world.store.trouble_release(Trouble::Error);
        world.store.trouble_needs(Trouble::Error);
        world.git.put([oid(1)]);
        world.idle().await;
    });
    let failed = lines.with("fetch failed");
    assert_eq!(failed[0].level, Level::WARN);
    assert_eq!(
        fields(&failed[0]),
        [
            ("domain", "dead.example"),
            ("error", "the connection failed"),
            ("identifier", "repo"),
            ("kind", "network"),
            ("url", "https://dead.example/a.git")
        ]
    );
    let processing = lines.with("processing failed");
    assert!(processing.iter().all(|line| line.level == Level::WARN));
    let steps: Vec<_> = processing.iter().map(|line| line.fields["step"].as_str()).collect();
    assert_eq!(steps, ["needs", "release"]);
    assert_eq!(
        fields(&processing[1]),
        [
            ("error", "the event store failed: as the test wants"),
            ("identifier", "repo"),
            ("step", "release")
        ]
    );
}

/// What strangers name is a value in a line and never a part of its text.
#[test]
fn an_identifier_with_line_breaks_stays_a_value() {
    let id = "evil\nINFO forged line\u{1b}[2J";
    let lines = logged(async || {
        let world = World::new();
        world.git.put([oid(1)]);
        world.state(id, "state", &[1]);
        world.idle().await;
    });
    let all = lines.lines.lock().unwrap();
    assert!(all.iter().all(|line| !line.message.contains("evil")));
    let named: Vec<_> = all.iter().filter_map(|line| line.fields.get("identifier")).collect();
    assert!(!named.is_empty() && named.iter().all(|named| *named == id));
}
