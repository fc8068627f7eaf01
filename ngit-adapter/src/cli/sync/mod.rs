//! `ngit-purgatory sync`: signed events in, git data fetched, events out.

mod input;
mod progress;
mod record;
mod report;
mod writers;

use std::{cell::Cell, io, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{
    Exit, Failure,
    args::{Database, SyncOptions},
    interrupt::Interrupt,
    session::{Session, SessionOptions},
};
use crate::git::{Git, SystemLookup};
use input::Line;
use progress::Progress;
use report::Report;
use writers::Writers;

/// The program ends within 5 s after the deadline. Of these, fetches that are on have this much to end by themselves,
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);
/// the last look at what is missing this much,
const LAST_LOOK: Duration = Duration::from_millis(1_500);
/// and then a slow reader of what is written is waited for until so long after the deadline.
const LAST_WRITES: Duration = Duration::from_millis(4_000);

type Lines = mpsc::Receiver<io::Result<Line>>;

pub(super) async fn run(options: SyncOptions) -> Result<Exit, Failure> {
    let started = now();
    let deadline = started + options.deadline_secs;
    let mut interrupt =
        Interrupt::listen().map_err(Failure::because("signals cannot be caught"))?;
    let git = Git::find().await.map_err(Failure::because("git cannot be used"))?;
    let lines = input::read(&options.events)
        .map_err(Failure::because(format!("{} cannot be read", options.events)))?;
    let writers = Writers::open(options.json, options.out.as_deref(), &options.events)?;
    let progress = Progress::new(options.json);
    let report = Report::new(writers.json(), writers.out(), progress.clone());
    let report = Arc::new(report);
    let session = Session::open(session_options(options, git)?, Arc::clone(&report)).await?;

    let input_ended = Cell::new(false);
    let work = async {
        take_all(&session, lines, &report).await?;
        input_ended.set(true);
        session.settled().await;
        Ok(End::Settled)
    };
    let worked = tokio::select! {
        worked = timeout_at(deadline, work) => worked.unwrap_or(Ok(End::Deadline)),
        () = interrupt.received() => Ok(End::Interrupted),
    };

    let last = (deadline + LAST_WRITES).max(now() + LAST_WRITES);
    let finish = async {
        session.shutdown().await;
        progress.finish();
        for (event, missing) in session.held(now() + LAST_LOOK).await? {
            report.held(&event, &missing).await;
        }
        for (identifier, events) in report.released() {
            for announcement in session.announcements(&identifier, &events).await? {
                report.announced_before(&announcement).await;
            }
        }
        let summary = report.end(started.elapsed()).await;
        writers.finish(last).await?;
        Ok(summary)
    };
    let summary = tokio::select! {
        finished = timeout_at(last, finish) => {
            finished.unwrap_or_else(|_| Err(Failure("nobody reads what is written".into())))?
        }
        () = interrupt.received() => return Err(Failure("ended at once by a second signal".into())),
    };
    let end = worked?;
    if !input_ended.get() {
        progress.say(&format!("the input had not ended when {end}"));
    }
    Ok(match end {
        _ if summary.held > 0 => Exit::StillHeld,
        End::Interrupted if !input_ended.get() => Exit::Failure,
        _ => Exit::Success,
    })
}

/// Why the work is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Nothing is held, or no source is left.
    Settled,
    /// The deadline has come.
    Deadline,
    /// Somebody wants it to end.
    Interrupted,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Settled => "all was done",
            Self::Deadline => "the deadline came",
            Self::Interrupted => "a signal came",
        })
    }
}

fn session_options(options: SyncOptions, git: Git) -> Result<SessionOptions, Failure> {
    let beside_repositories = || Database::Lmdb(options.git_data_dir.join("database"));
    let database = options.database.unwrap_or_else(beside_repositories);
    let config = options.sync.to_config();
    let config = config.and_then(|config| config.with_shutdown_grace(SHUTDOWN_GRACE));
    Ok(SessionOptions {
        git,
        database,
        git_data_dir: options.git_data_dir,
        config: config.map_err(Failure::because("a setting is not allowed"))?,
        our_domain: options.our_domain,
        allow_private_networks: options.allow_private_networks,
        lookup: Arc::new(SystemLookup),
    })
}

/// Takes the events of all lines, to the end of the input.
async fn take_all(session: &Session, mut lines: Lines, report: &Report) -> Result<(), Failure> {
    while let Some(line) = lines.recv().await {
        let line = line.map_err(Failure::because("the input cannot be read any further"))?;
        let event = match line.event {
            Ok(event) => event,
            Err(error) => {
                report.rejected(line.number, error.to_string()).await;
                continue;
            }
        };
        match session.take(event).await {
            Ok(admission) => report.taken(&admission),
            Err(error) if error.is_rejection() => {
                report.rejected(line.number, error.to_string()).await;
            }
            Err(error) => {
                let what = format!("the event in line {} could not be kept", line.number);
                return Err(Failure::because(what)(error));
            }
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the deadline of a program is about real time")]
fn now() -> Instant {
    Instant::now()
}
