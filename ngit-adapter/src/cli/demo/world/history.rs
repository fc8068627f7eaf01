use std::{fmt::Write as _, io, path::Path, process::Stdio};

use purgatory_sync::Oid;
use tokio::io::AsyncWriteExt;

use crate::git::Git;

/// A history that is to be written into repositories: commits with files, on branches, and tags.
///
/// The same calls make the same commits, with the same ids, on every machine.
pub(super) struct History {
    stream: String,
    marks: usize,
    seconds: u64,
}

/// A commit or tag of a [`History`], until it has an id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(usize);

/// When the first commit of every history was made.
const EPOCH: u64 = 1_735_689_600;
/// One pack instead of a file for each object, and no wait for the disk: it is gone in a moment.
const THROWN_AWAY: [&str; 2] = ["fastimport.unpackLimit=1", "core.fsync=none"];
/// How far commits are apart.
const STEP_SECS: u64 = 5_400;

impl History {
    pub(super) fn new() -> Self {
        Self { stream: String::new(), marks: 0, seconds: EPOCH }
    }

    /// A commit by `author` on `branch`, on top of `parent`, or the first of all.
    pub(super) fn commit(
        &mut self,
        branch: &str,
        parent: Option<Mark>,
        author: &str,
        message: &str,
        (file, content): (&str, &str),
    ) -> Mark {
        let mark = self.next_mark();
        let person = format!("{author} <{author}@example.org> {} +0000", self.seconds);
        self.write(format_args!(
            "commit refs/heads/{branch}\nmark :{}\nauthor {person}\ncommitter {person}\ndata {}\n{message}\n",
            mark.0,
            message.len(),
        ));
        if let Some(parent) = parent {
            self.write(format_args!("from :{}\n", parent.0));
        }
        let length = content.len();
        self.write(format_args!("M 100644 inline {file}\ndata {length}\n{content}\n\n"));
        mark
    }

    /// An annotated tag.
    pub(super) fn tag(&mut self, name: &str, target: Mark, author: &str) -> Mark {
        let mark = self.next_mark();
        let message = format!("{name}\n");
        let seconds = self.seconds;
        self.write(format_args!(
            "tag {name}\nmark :{}\nfrom :{}\ntagger {author} <{author}@example.org> {} +0000\ndata {}\n{message}\n",
            mark.0,
            target.0,
            seconds,
            message.len(),
        ));
        mark
    }

    /// Makes a bare repository at `path` with all of it, and gives the ids by mark.
    pub(super) async fn write_to(&self, git: &Git, path: &Path) -> io::Result<Ids> {
        let mut init = git.command("init");
        init.args([
            "--quiet",
            "--bare",
            "--initial-branch=main",
            "--template=",
            "--end-of-options",
        ]);
        run(init.arg(path), b"").await?;

        let mut stream = self.stream.clone();
        for mark in 1..=self.marks {
            writeln!(stream, "get-mark :{mark}").expect("a string takes all");
        }
        stream.push_str("done\n");
        let mut import = git.command_with(&THROWN_AWAY.map(str::to_owned), "fast-import");
        import.env("GIT_DIR", path).args(["--quiet", "--done", "--cat-blob-fd=1"]);
        let printed = run(&mut import, stream.as_bytes()).await?;
        let ids: Option<Vec<Oid>> = printed.lines().map(|line| line.parse().ok()).collect();
        ids.filter(|ids| ids.len() == self.marks)
            .map(Ids)
            .ok_or_else(|| io::Error::other("git fast-import did not say what it made"))
    }

    fn next_mark(&mut self) -> Mark {
        self.marks += 1;
        self.seconds += STEP_SECS;
        Mark(self.marks)
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        self.stream.write_fmt(text).expect("a string takes all");
    }
}

/// The ids that a history's marks got.
pub(super) struct Ids(Vec<Oid>);

impl std::ops::Index<Mark> for Ids {
    type Output = Oid;

    fn index(&self, mark: Mark) -> &Oid {
        &self.0[mark.0 - 1]
    }
}

async fn run(command: &mut tokio::process::Command, input: &[u8]) -> io::Result<String> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let write = async move {
        // If git ends early, its own words say why.
        let _ = stdin.write_all(input).await;
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), write);
    let output = output?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("git failed: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
