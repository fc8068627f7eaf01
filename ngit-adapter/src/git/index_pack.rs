//! Git's own `index-pack`, fed with a stranger's pack.

use std::{
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
};

use purgatory_sync::FetchErrorKind as Kind;
use rustix::process::Signal;
use tokio::process::ChildStdin;

use super::{
    Git, Limits, Quarantine,
    child::{ChildGroup, drain},
    failure::{Failure, quoted},
};

/// What old and honest history has, and no newer git minds: without these three, `--strict` would refuse well-known
/// repositories. All else that fsck calls an error stays one.
const STRICT: &str =
    "--strict=badTimezone=ignore,missingSpaceBeforeEmail=ignore,zeroPaddedFilemode=ignore";

/// Settings that keep the memory of the child small, and its files to the two that are wanted.
const SETTINGS: &[&str] = &[
    // Windows into packs that are here already: by default a whole pack is mapped.
    "core.packedGitWindowSize=16m",
    "core.packedGitLimit=128m",
    "core.deltaBaseCacheLimit=32m",
    // No object is let through because it is big: each has to pass the limit on objects.
    "core.bigFileThreshold=1048576g",
    "pack.threads=1",
    "pack.writeReverseIndex=false",
];

/// Runs `index-pack` in `quarantine` on what `feed` writes to it, until its end.
///
/// Before `feed` runs, the limits on the child hold. When the child ends early, writes fail with a broken pipe; `feed` may end with `Ok`
/// then: the child's end says why.
pub(super) async fn index_pack(
    git: &Git,
    quarantine: &Quarantine,
    limits: &Limits,
    feed: impl AsyncFnOnce(ChildStdin) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
    let mut command = git.command_with(&settings, "index-pack");
    command.args(["--stdin", "--fix-thin", "--threads=1", STRICT]);
    command.arg(format!("--max-input-size={}", limits.pack_bytes));
    command.env("GIT_ALLOC_LIMIT", limits.object_bytes.to_string());
    run(command, quarantine, limits, feed).await
}

/// Runs a git on the repository that the quarantine is.
pub(super) async fn run(
    mut command: tokio::process::Command,
    quarantine: &Quarantine,
    limits: &Limits,
    feed: impl AsyncFnOnce(ChildStdin) -> Result<(), Failure>,
) -> Result<(), Failure> {
    command.env("GIT_DIR", quarantine.git_dir());
    // The child holds the quarantine's lock as its standard output: while it lives nobody sweeps.
    command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(quarantine.lock_handle()?);
    let mut child = ChildGroup::spawn(&mut command, &limits.of_child())
        .map_err(Failure::local("git cannot be started"))?;
    let (Some(stdin), Some(stderr)) = (child.take_stdin(), child.take_stderr()) else {
        return Err(Failure::new(Kind::Local, "git was started without its streams"));
    };
    let ((), said) = futures::try_join!(feed(stdin), async { Ok(drain(stderr).await) })?;
    judge(child.wait().await?, &said)
}

/// Why the child ended as it did.
///
/// Of what it said only the last line counts. Git dies with that line, and puts no text of a pack into it.
fn judge(status: ExitStatus, said: &[u8]) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    if let Some(signal) = status.signal() {
        return Err(judge_signal(signal));
    }
    let last = said.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(last);
    let (kind, what) = match text.strip_prefix("fatal: ") {
        Some(words) if is_limit(words) => (Kind::TooLarge, "the pack needs more than it may have"),
        Some(words) if is_of_this_side(words) => (Kind::Local, "the pack cannot be stored"),
        _ => (Kind::Corrupt, "the pack failed the checks"),
    };
    Err(Failure::new(kind, format!("{what}: git says {}", quoted(last))))
}

fn judge_signal(signal: i32) -> Failure {
    let is = |other: Signal| signal == other.as_raw();
    if is(Signal::XCPU) || is(Signal::KILL) {
        Failure::too_large("checking the pack takes too much processor time")
    } else if is(Signal::XFSZ) {
        Failure::too_large("the pack grows beyond the limit on files")
    } else {
        Failure::corrupt(format!("git ended with signal {signal} on the pack"))
    }
}

fn is_limit(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    words.contains("out of memory")
        || words.ends_with("cannot allocate memory")
        || words.starts_with("attempting to allocate")
        || words.starts_with("data too large to fit into virtual memory")
        || words.starts_with("size_t overflow")
        || words.starts_with("pack exceeds maximum allowed size")
        || words.ends_with("file too large")
}

fn is_of_this_side(words: &str) -> bool {
    const ERRORS: [&str; 6] = [
        "No space left on device",
        "Disk quota exceeded",
        "Read-only file system",
        "Permission denied",
        "Input/output error",
        "Too many open files",
    ];
    ERRORS.iter().any(|error| words.ends_with(error))
}
