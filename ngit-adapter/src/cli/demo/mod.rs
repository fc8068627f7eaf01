//! `ngit-purgatory demo`: the whole of it on one machine, told line by line, and drawn where a person looks on.

mod acts;
mod books;
mod ending;
mod gate;
mod hosts;
mod live;
mod opening;
mod paint;
mod reasons;
mod servers;
mod story;
mod table;
mod view;
mod words;
mod world;

use std::{convert::Infallible, path::Path, sync::Arc, time::Duration};

use purgatory_sync::SyncConfig;
use tempfile::TempDir;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{
    Exit, Failure,
    args::{Database, DemoOptions},
    interrupt::Interrupt,
    line_writer::LineWriter,
    session::{Session, SessionOptions},
};
use crate::git::Git;
use live::{Live, Out};
use paint::Paint;
use servers::Servers;
use story::Story;
use view::View;
use world::World;

/// How often the view is drawn.
const BETWEEN_VIEWS: Duration = Duration::from_millis(100);
/// What is still on at the end has this much to end by itself.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);
/// How long the last look at what is missing may take.
const LAST_LOOK: Duration = Duration::from_secs(2);
/// How long whoever reads the story is waited for at its end.
const LAST_WRITES: Duration = Duration::from_secs(600);

pub(super) async fn run(options: DemoOptions) -> Result<Exit, Failure> {
    // In this order: whatever is made from here on is taken away again when a signal comes.
    let interrupted = cancelled_by(listen()?);
    let git = Git::find().await.map_err(Failure::because("git cannot be used"))?;
    let folder = tempfile::Builder::new().prefix("ngit-purgatory-demo-").tempdir();
    let folder =
        folder.map_err(Failure::because("no temporary folder can be made (TMPDIR says where)"))?;
    let live = Live::on_terminal();
    let writer = LineWriter::spawn(Out::new(live.clone()));
    let writer = writer.map_err(Failure::because("no thread can be started"))?;

    let stage = Stage { git, folder: folder.path(), deadline: options.deadline_secs, live };
    let played = stage.play(&writer, &interrupted).await;
    if let Some(live) = &stage.live {
        live.end().await;
    }
    remove(folder).await?;
    played?;
    tokio::select! {
        // First, so that an interrupted demo always says so, also when all of it is written.
        biased;
        () = interrupted.cancelled() => Err(Failure("interrupted; nothing is left behind".into())),
        written = writer.finish(now() + LAST_WRITES) => {
            written.map_err(Failure::because("standard output could not be written"))?;
            Ok(Exit::Success)
        }
    }
}

/// Where the demo is played.
struct Stage<'a> {
    git: Git,
    folder: &'a Path,
    deadline: Duration,
    live: Option<Live>,
}

impl Stage<'_> {
    /// Nothing in it is dropped halfway: a signal is looked for between its steps, and wherever it waits.
    async fn play(
        &self,
        writer: &LineWriter,
        interrupted: &CancellationToken,
    ) -> Result<(), Failure> {
        let out = writer.sink();
        let paint = Paint::new(self.live.is_some());
        opening::title(&out, paint).await;
        let servers = Servers::start(&self.git, &self.folder.join("servers"))
            .await
            .map_err(Failure::because("no server can be started"))?;
        let world = match World::make(&self.git, &servers, interrupted).await {
            Err(_) if interrupted.is_cancelled() => return Ok(()),
            made => made.map_err(Failure::because("the repositories could not be made"))?,
        };
        let config = SyncConfig::default()
            .with_shutdown_grace(SHUTDOWN_GRACE)
            .map_err(Failure::because("a setting is not allowed"))?;
        let (limits, quiet) = (config.limits(), config.synced_delay());
        opening::introduce(&out, paint, &world, limits).await;

        let story = Arc::new(Story::new(Arc::new(world), out, paint, limits));
        let options = SessionOptions {
            git: self.git.clone(),
            database: Database::Memory,
            git_data_dir: self.folder.join("git"),
            config,
            our_domain: None,
            allow_private_networks: true,
            lookup: Arc::new(servers.names()),
        };
        let session = Session::open(options, Arc::clone(&story)).await?;
        let until = story.began + self.deadline;
        tokio::select! {
            played = acts::play(&session, &story, quiet, until) => played?,
            never = self.draw(&servers, &session, &story) => match never {},
            () = interrupted.cancelled() => {}
        }
        if let Some(live) = &self.live {
            live.end().await;
        }
        let snapshot = session.snapshot();
        session.shutdown().await;
        if !interrupted.is_cancelled() {
            let held = session.held(now() + LAST_LOOK).await?;
            ending::tell(&story, &servers, &snapshot, &held).await;
        }
        servers.stop().await;
        Ok(())
    }

    /// Draws what is going on, where somebody sees it.
    async fn draw(&self, servers: &Servers, session: &Session, story: &Story) -> Infallible {
        let Some(live) = &self.live else { return std::future::pending().await };
        let mut views = interval(BETWEEN_VIEWS);
        views.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            views.tick().await;
            let at = now();
            let elapsed = at.saturating_duration_since(story.began);
            let (snapshot, heard) = (session.snapshot(), story.heard());
            let view = View::new(servers, &snapshot, heard, story.limits, elapsed, at);
            live.draw(view.lines(story.limits, story.paint)).await;
        }
    }
}

fn listen() -> Result<Interrupt, Failure> {
    Interrupt::listen().map_err(Failure::because("signals cannot be caught"))
}

/// A token that is cancelled by the first signal. Later signals change nothing: the end is near.
fn cancelled_by(mut interrupt: Interrupt) -> CancellationToken {
    let token = CancellationToken::new();
    let interrupted = token.clone();
    // It lives as long as the program.
    tokio::spawn(async move {
        interrupt.received().await;
        interrupted.cancel();
        loop {
            interrupt.received().await;
        }
    });
    token
}

/// Takes the temporary folder away, off the async workers.
async fn remove(folder: TempDir) -> Result<(), Failure> {
    let what = "the temporary folder could not be taken away";
    let removed = tokio::task::spawn_blocking(|| folder.close()).await;
    removed.map_err(Failure::because(what))?.map_err(Failure::because(what))
}

#[expect(clippy::disallowed_methods, reason = "the story says when things happened")]
fn now() -> Instant {
    Instant::now()
}
