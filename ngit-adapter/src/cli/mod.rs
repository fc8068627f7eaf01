//! The program `ngit-purgatory`, and the arguments that any relay may take over.

mod args;
mod demo;
mod interrupt;
mod line_writer;
mod printable;
mod serve;
mod serve_options;
mod session;
mod sync;
mod sync_args;

use std::process::ExitCode;

use clap::Parser;

pub use sync_args::SyncArgs;

use args::{Arguments, Command};

/// The most threads for work that blocks: more than the names that can be looked up at once, 32 for fetches and 64 for
/// peers, so that a resolver that hangs does not keep the store waiting. Each costs memory, so not the runtime's 512.
const MAX_BLOCKING_THREADS: usize = 128;

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nobody may be there to read it: that changes nothing.
            let _ = error.print();
            return if error.use_stderr() { Exit::WrongUsage } else { Exit::Success }.into();
        }
    };
    match &arguments.command {
        Command::Serve(options) => serve::log_to_stderr(options.log_format),
        Command::Sync(_) | Command::Demo(_) => log_to_stderr(),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("no threads can be started: {error}")),
    };
    let result = runtime.block_on(async {
        match arguments.command {
            Command::Sync(options) => sync::run(options).await,
            Command::Demo(options) => demo::run(options).await,
            Command::Serve(options) => serve::run(*options).await,
        }
    });
    // What still blocks a thread here (a look-up of a name) must not hold up the end.
    runtime.shutdown_background();
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => fail(&failure.to_string()),
    }
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Success = 0,
    Failure = 1,
    WrongUsage = 2,
    StillHeld = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}

/// Why the program could not do what it was asked for: a sentence for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(String);

fn fail(why: &str) -> ExitCode {
    let _ =
        std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("ngit-purgatory: {why}\n"));
    Exit::Failure.into()
}

/// Log lines go to stderr, and only where `RUST_LOG` asks for them.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing_subscriber::filter::LevelFilter::OFF.into())
        .from_env_lossy();
    // Failing means that somebody set one already: theirs is as good.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}
