//! Runs the program as it was built.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Once,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ngit-purgatory");

/// The longest that a test lets the program run: it is ended then, and the test fails.
const LIMIT_SECS: &str = "170";

/// A run of `ngit-purgatory sync --json` with files of its own.
pub(crate) struct SyncRun {
    dir: TempDir,
    args: Vec<String>,
    environment: Vec<(String, String)>,
}

impl SyncRun {
    /// With these lines as input, and loopback allowed.
    pub(crate) fn new(events: &str) -> Self {
        Self::strict(events).arg("--allow-private-networks")
    }

    /// With these lines as input, and no private network allowed.
    pub(crate) fn strict(events: &str) -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        std::fs::write(dir.path().join("events.jsonl"), events).expect("a file can be written");
        Self { dir, args: Vec::new(), environment: Vec::new() }
    }

    /// Other lines as input from now on.
    pub(crate) fn rewrite(&self, events: &str) {
        std::fs::write(self.dir.path().join("events.jsonl"), events)
            .expect("a file can be written");
    }

    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The repository of this owner after the run.
    pub(crate) fn repository(&self, npub: &str, name: &str) -> PathBuf {
        self.git_data_dir().join(npub).join(format!("{name}.git"))
    }

    pub(crate) fn git_data_dir(&self) -> PathBuf {
        self.dir.path().join("git")
    }

    pub(crate) fn out_file(&self) -> PathBuf {
        self.dir.path().join("out.jsonl")
    }

    /// The command as it would be run, for tests that need more of it.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = clean_command(program);
        command.arg("sync").arg("--json");
        for (name, value) in [
            ("--events", self.dir.path().join("events.jsonl")),
            ("--git-data-dir", self.git_data_dir()),
            ("--out", self.out_file()),
        ] {
            // An argument that a test gives itself stands instead.
            if !self.args.iter().any(|arg| arg.starts_with(&format!("{name}="))) {
                command.arg(name).arg(value);
            }
        }
        command.args(&self.args).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self) -> Ran {
        let mut command = clean_command(Path::new("timeout"));
        let program = self.command(Path::new(PROGRAM));
        command.args(["-k", "5", LIMIT_SECS]).arg(program.get_program()).args(program.get_args());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let started = Instant::now();
        Ran::new(command.output().expect("the program can be started"), started.elapsed())
    }
}

/// A command with nothing of the test's environment but `PATH`, which hears signals.
pub(crate) fn clean_command(program: &Path) -> Command {
    hear_signals();
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// Makes programs that are started hear SIGINT and SIGHUP also where the tests were started to ignore them (`nohup`, a job
/// in the background): what this process catches is back to its default in a child, what it ignores is not.
fn hear_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0);
        let kinds = [SignalKind::interrupt(), SignalKind::hangup()];
        let catch = move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let _context = runtime.as_ref().expect("a runtime can be made").enter();
            for kind in
                kinds.into_iter().filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 1)
            {
                drop(signal(kind).expect("a signal can be caught"));
            }
        };
        thread::spawn(catch).join().expect("signals can be caught");
    });
}

/// What a run printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) records: Vec<Value>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Ran {
    pub(crate) fn new(output: Output, took: Duration) -> Self {
        let stdout = String::from_utf8(output.stdout).expect("stdout is UTF-8");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let records = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self { status: output.status.code(), records, stdout, stderr, took }
    }

    /// The records of this type, in order.
    pub(crate) fn of_type(&self, name: &str) -> Vec<&Value> {
        self.records.iter().filter(|record| record["type"] == name).collect()
    }

    /// The texts of a field of the records of this type, sorted.
    pub(crate) fn texts(&self, name: &str, field: &str) -> Vec<String> {
        let mut texts: Vec<String> = self
            .of_type(name)
            .iter()
            .map(|record| record[field].as_str().expect("the field is a text").to_owned())
            .collect();
        texts.sort();
        texts
    }

    /// A number of the summary, which is the last line and the only one of its type.
    pub(crate) fn summary(&self, field: &str) -> u64 {
        let last = self.records.last().unwrap_or_else(|| panic!("nothing was printed: {self:?}"));
        assert_eq!(last["type"], "summary", "{self:?}");
        assert_eq!(self.of_type("summary").len(), 1);
        last[field].as_u64().unwrap_or_else(|| panic!("{field} is no number in {last}"))
    }
}
