//! `ngit-purgatory demo`: the whole of it on one machine, told line by line.

mod ending;
mod history;
mod paint;
mod person;
mod servers;
mod story;
mod world;

use std::{io, path::Path, sync::Arc, time::Duration};

use purgatory_sync::SyncConfig;
use tempfile::TempDir;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{
    Exit, Failure,
    args::Database,
    interrupt::Interrupt,
    line_writer::LineWriter,
    session::{Session, SessionOptions},
};
use crate::{
    git::Git,
    nip34::{EventLimits, VerifiedEvent},
};
use paint::Paint;
use servers::Servers;
use story::Story;
use world::World;

/// Twelve events come within a tenth of a second.
const BETWEEN_EVENTS: Duration = Duration::from_millis(8);
/// How long whoever reads the story is waited for at its end.
const LAST_WRITES: Duration = Duration::from_secs(600);

pub(super) async fn run() -> Result<Exit, Failure> {
    // In this order: whatever is made from here on is taken away again when a signal comes.
    let interrupted = cancelled_by(listen()?);
    let git = Git::find().await.map_err(Failure::because("git cannot be used"))?;
    let folder = tempfile::Builder::new().prefix("ngit-purgatory-demo-").tempdir();
    let folder =
        folder.map_err(Failure::because("no temporary folder can be made (TMPDIR says where)"))?;
    let writer = LineWriter::spawn(io::stdout());
    let writer = writer.map_err(Failure::because("no thread can be started"))?;
    let paint = Paint::for_stdout();

    let played = play(&git, folder.path(), &writer, paint, &interrupted).await;
    remove(folder).await?;
    played?;
    tokio::select! {
        () = interrupted.cancelled() => Err(Failure("interrupted; nothing is left behind".into())),
        written = writer.finish(now() + LAST_WRITES) => {
            written.map_err(Failure::because("standard output could not be written"))?;
            Ok(Exit::Success)
        }
    }
}

/// Nothing in it is dropped halfway: a signal is looked for between its steps, and wherever it waits.
async fn play(
    git: &Git,
    folder: &Path,
    writer: &LineWriter,
    paint: Paint,
    interrupted: &CancellationToken,
) -> Result<(), Failure> {
    let out = writer.sink();
    let servers = Servers::start(git, &folder.join("servers"))
        .await
        .map_err(Failure::because("no server can be started"))?;
    let world = World::make(git, &servers.places()).await;
    let world = world.map_err(Failure::because("the repositories could not be made"))?;
    let world = Arc::new(world);
    story::introduce(&out, paint, &servers, &world).await;

    let story = Arc::new(Story::new(Arc::clone(&world), out.clone(), paint, now()));
    let options = SessionOptions {
        git: git.clone(),
        database: Database::Memory,
        git_data_dir: folder.join("git"),
        config: SyncConfig::default(),
        our_domain: None,
        allow_private_networks: true,
    };
    let session = Session::open(options, Arc::clone(&story)).await?;
    story.begins(now());
    tokio::select! {
        done = hunt(&session, &world, &story) => done?,
        () = interrupted.cancelled() => {}
    }
    session.shutdown().await;
    if !interrupted.is_cancelled() {
        let held = session.held(now() + Duration::from_secs(10)).await?;
        ending::tell(&out, paint, &servers, &world, &story, &held).await;
    }
    servers.stop().await;
    Ok(())
}

async fn hunt(session: &Session, world: &World, story: &Story) -> Result<(), Failure> {
    let mut ticks = interval(BETWEEN_EVENTS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for told in &world.events {
        ticks.tick().await;
        let event = VerifiedEvent::check(told.event.clone(), &EventLimits::default())
            .map_err(Failure::because("an event of the demo is not valid"))?;
        story.arrives(told).await;
        session.take(event).await.map_err(Failure::because("an event could not be kept"))?;
    }
    story.all_arrived(world.events.len()).await;
    session.settled().await;
    Ok(())
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
