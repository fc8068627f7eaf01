use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, Parser, Subcommand};
use purgatory_sync::OurDomain;

use super::{SyncArgs, serve_options::ServeOptions};

/// Hold nostr events that name git commits until those commits are here, and go and find them.
#[derive(Debug, Parser)]
#[command(name = "ngit-purgatory", version, max_term_width = 100, after_help = FIRST)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// See it work, in a few seconds: all on this machine, no network, nothing left behind.
    ///
    /// Starts git servers of all manners on loopback addresses: a quick one, a slow one,
    /// one that refuses. Then a burst of signed events comes that name commits on them.
    /// You see what is held, fetched and released, and at the end what the servers counted.
    ///
    /// At a terminal the numbers of each server are drawn as they change; elsewhere it prints
    /// plain lines only.
    #[command(after_help = DEMO_STATUS, verbatim_doc_comment)]
    Demo(DemoOptions),
    /// Signed events in, git data fetched, events out. No server needed.
    #[command(after_help = EXIT_STATUS)]
    Sync(SyncOptions),
    /// A nostr relay and git server on one port.
    Serve(Box<ServeOptions>),
}

const DEMO_STATUS: &str =
    "Exit status: 0 it was shown, 1 failure or interrupted. NO_COLOR=1 turns colours off.";

const FIRST: &str = "New here? `ngit-purgatory demo` shows it in a few seconds.";

const EXIT_STATUS: &str =
    "Exit status: 0 nothing is held, 3 some events are still held, 1 failure, 2 wrong usage.";

#[derive(Args, Debug)]
pub(super) struct DemoOptions {
    /// When to end at the latest, counted from the first event, whatever is still held by then.
    #[arg(long, value_name = "N", default_value = "20", value_parser = deadline)]
    pub(super) deadline_secs: Duration,
}

#[derive(Args, Debug)]
pub(super) struct SyncOptions {
    /// One JSON event a line; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub(super) events: Input,
    /// Where the repositories are. Made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub(super) git_data_dir: PathBuf,
    /// Where events are kept: in a folder, so that a second run goes on with what is held, or in memory.
    /// By default in the folder `database` in the folder of the repositories.
    #[arg(long, value_name = "lmdb:DIR|memory")]
    pub(super) database: Option<Database>,
    /// The name of this service itself, which is never asked.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(super) our_domain: Option<OurDomain>,
    /// When to end at the latest, counted from the start.
    #[arg(long, value_name = "N", default_value = "300", value_parser = deadline)]
    pub(super) deadline_secs: Duration,
    /// Let URLs lead to loopback and private addresses.
    #[arg(long)]
    pub(super) allow_private_networks: bool,
    /// Where the released events and their announcements go, one JSON event a line.
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Say on standard output what happens, one JSON object a line.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) sync: SyncArgs,
}

/// Where events come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Stdin,
    File(PathBuf),
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for Input {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => Err("give a file, or - for standard input"),
            "-" => Ok(Self::Stdin),
            path => Ok(Self::File(path.into())),
        }
    }
}

/// Where events are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Database {
    /// In this process: forgotten at its end.
    Memory,
    /// In a folder, which is made if it is not there.
    Lmdb(PathBuf),
}

impl FromStr for Database {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Self::Memory),
            Some(("lmdb", "")) => Err("give a folder: lmdb:DIR"),
            Some(("lmdb", folder)) => Ok(Self::Lmdb(folder.into())),
            _ => Err("a database is lmdb:DIR or memory"),
        }
    }
}

const MAX_DEADLINE_SECS: u64 = 31_536_000;

fn deadline(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(secs @ 1..=MAX_DEADLINE_SECS) => Ok(Duration::from_secs(secs)),
        _ => Err(format!("allowed is a whole number of seconds from 1 to {MAX_DEADLINE_SECS}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_deadline_is_a_positive_number_of_seconds() {
        assert_eq!(deadline("5"), Ok(Duration::from_secs(5)));
        for bad in ["0", "-1", "", "x", "1.5", "31536001", "99999999999999999999"] {
            let error = deadline(bad).unwrap_err();
            assert!(error.contains("from 1 to 31536000"), "{bad:?}: {error}");
        }
    }

    #[test]
    fn a_database_is_a_folder_or_memory() {
        assert_eq!("memory".parse(), Ok(Database::Memory));
        assert_eq!("lmdb:/a:b".parse(), Ok(Database::Lmdb("/a:b".into())));
        assert!("lmdb:".parse::<Database>().unwrap_err().contains("lmdb:DIR"));
        for bad in ["", "sqlite:x", "lmdb", "memory:x", "MEMORY"] {
            assert!(bad.parse::<Database>().unwrap_err().contains("lmdb:DIR or memory"), "{bad}");
        }
    }
}
