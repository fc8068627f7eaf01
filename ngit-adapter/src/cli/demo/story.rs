use std::sync::{Mutex, MutexGuard, PoisonError};

use nostr::event::{Event, EventId, Kind};
use purgatory_sync::{FetchEnded, FetchErrorKind, FetchOutcome, Identifier, Observer, SyncEvent};
use tokio::time::Instant;

use super::{now, paint::Paint, person::Told, servers::Servers, world::World};
use crate::{cli::line_writer::LineSink, store::StoreObserver};

/// Tells what happens as it happens, and remembers what went.
pub(super) struct Story {
    world: std::sync::Arc<World>,
    out: LineSink,
    paint: Paint,
    heard: Mutex<Heard>,
}

struct Heard {
    began: Instant,
    released: Vec<EventId>,
}

impl Story {
    pub(super) fn new(
        world: std::sync::Arc<World>,
        out: LineSink,
        paint: Paint,
        began: Instant,
    ) -> Self {
        Self { world, out, paint, heard: Mutex::new(Heard { began, released: Vec::new() }) }
    }

    /// The clock of the story starts.
    pub(super) fn begins(&self, at: Instant) {
        self.heard().began = at;
    }

    pub(super) async fn arrives(&self, told: &Told) {
        let fate = match told.event.kind {
            Kind::GitRepoAnnouncement => self.paint.dim("says where the data is"),
            _ => self.paint.yellow("held"),
        };
        let line = self.line("→", told.repository, &told.what, &fate);
        self.out.line(line).await;
    }

    pub(super) async fn all_arrived(&self, count: usize) {
        let wait = format!(
            "{count} events came. Once it is quiet for 500 ms, the hunt begins: once per repository."
        );
        self.out.line(String::new()).await;
        self.out.line(format!("  {}", self.paint.dim(&wait))).await;
        self.out.line(String::new()).await;
    }

    /// Which events went.
    pub(super) fn released(&self) -> Vec<EventId> {
        self.heard().released.clone()
    }

    fn fetch_ended(&self, fetch: &FetchEnded) {
        let objects = if fetch.wanted == 1 { "object" } else { "objects" };
        let got = match fetch.outcome {
            FetchOutcome::Failed(FetchErrorKind::NotFound) => "no such repository".to_owned(),
            FetchOutcome::Failed(kind) => kind.as_str().to_owned(),
            _ => format!("{} of {} {objects}", fetch.received, fetch.wanted),
        };
        let path = fetch.url.url().path().trim_start_matches('/').to_owned();
        let cost = format!("{} requests, {} ms", fetch.requests, fetch.elapsed.as_millis());
        let cost = if fetch.requests == 1 { cost.replacen("requests", "request", 1) } else { cost };
        let asked = format!("asked {} for {path}", fetch.url.domain());
        let fate = format!("{}{}", self.paint.cyan(&format!("{got:<20}")), self.paint.dim(&cost));
        self.out.try_line(self.line("?", fetch.identifier.as_str(), &asked, &fate));
    }

    fn went(&self, event: &Event) {
        self.heard().released.push(event.id);
        let Some(told) = self.world.told(&event.id) else { return };
        let fate = self.paint.green("released");
        self.out.try_line(self.line("✓", told.repository, &told.what, &fate));
    }

    fn line(&self, mark: &str, repository: &str, what: &str, fate: &str) -> String {
        let at = now().saturating_duration_since(self.heard().began).as_millis();
        let time = self.paint.dim(&format!("{:>2}.{:02} s", at / 1_000, at % 1_000 / 10));
        format!("  {time}  {mark} {repository:<8} {what:<37} {fate}")
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Story {
    fn observe(&self, event: &SyncEvent) {
        if let SyncEvent::FetchEnded(fetch) = event {
            self.fetch_ended(fetch);
        }
    }
}

impl StoreObserver for Story {
    fn announced(&self, _: &Identifier, event: &Event) {
        self.went(event);
    }

    fn released(&self, _: &Identifier, event: &Event) {
        self.went(event);
    }
}

/// Says what there is before anything happens.
pub(super) async fn introduce(out: &LineSink, paint: Paint, servers: &Servers, world: &World) {
    let title = "Events that wait for their git data: three repositories, three servers, one burst";
    out.line(String::new()).await;
    out.line(format!("  {}", paint.bold(title))).await;
    out.line(String::new()).await;
    for repository in &world.repositories {
        let name = paint.bold(&format!("{:<8}", repository.name));
        out.line(format!(
            "  {name}  {:<8} {:>2} commits  {}",
            format!("{}'s", repository.owner),
            repository.commits,
            paint.dim(repository.note),
        ))
        .await;
    }
    out.line(String::new()).await;
    for server in &servers.all {
        let names = server.repositories().join("  ");
        out.line(format!("  {:<23} {}", server.base_url(), paint.dim(&names))).await;
    }
    out.line(String::new()).await;
}
