//! Real git repositories for tests, made without the configuration of whoever runs them.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use purgatory_sync::Oid;

/// `git` with nothing of the user's or the system's configuration, and with fixed names and dates.
pub(crate) fn git_command() -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("LC_ALL", "C")
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "A U Thor")
        .env("GIT_AUTHOR_EMAIL", "author@example.org")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_NAME", "C O Mitter")
        .env("GIT_COMMITTER_EMAIL", "committer@example.org")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000");
    command
}

/// A bare repository on disk. It does not own its folder: put it into a `tempfile::TempDir`.
#[derive(Clone, Debug)]
pub(crate) struct TestRepo {
    path: PathBuf,
}

impl TestRepo {
    /// Makes an empty bare repository at `path`, with `HEAD` on `main`.
    pub(crate) fn init(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let output = git_command()
            .args(["init", "--quiet", "--bare", "--initial-branch=main", "--template="])
            .arg(&path)
            .output()
            .expect("git can be started");
        assert!(output.status.success(), "git init: {}", String::from_utf8_lossy(&output.stderr));
        Self { path }
    }

    /// A repository that is there already.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs git in the repository. Panics if it fails. Gives its trimmed standard output.
    pub(crate) fn git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> String {
        let output = self.try_git(args);
        assert!(output.status.success(), "git failed: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("git prints UTF-8 here").trim().to_owned()
    }

    /// Runs git in the repository, whatever comes of it.
    pub(crate) fn try_git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Output {
        git_command()
            .arg("--git-dir")
            .arg(&self.path)
            .args(args)
            .output()
            .expect("git can be started")
    }

    /// Runs git in the repository with `input` on its standard input. Panics if it fails.
    pub(crate) fn git_with_input(&self, args: &[&str], input: &[u8]) -> String {
        let mut child = git_command()
            .arg("--git-dir")
            .arg(&self.path)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git can be started");
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input).expect("git reads its input"));
            let output = child.wait_with_output().expect("git ends");
            assert!(output.status.success(), "git {args:?} failed");
            String::from_utf8(output.stdout).expect("git prints UTF-8 here").trim().to_owned()
        })
    }

    /// Puts one commit that changes one file on top of `branch` (`main`, not `refs/heads/main`).
    pub(crate) fn commit(&self, branch: &str, file: &str, content: &str) -> Oid {
        let mut stream = String::new();
        write_commit(&mut stream, branch, self.ref_oid(branch), 0, &[(file, content)]);
        self.import(&stream, 1).remove(0)
    }

    /// Puts `count` commits, one after the other, on top of `branch`, with one git process. Oldest first.
    pub(crate) fn commits(&self, branch: &str, count: usize) -> Vec<Oid> {
        let mut stream = String::new();
        for number in 0..count {
            let parent = if number == 0 { self.ref_oid(branch) } else { None };
            let file = format!("dir{}/file{}.txt", number % 5, number % 17);
            let content = format!("{branch} {number}\n{}\n", "some text\n".repeat(number % 7));
            write_commit(&mut stream, branch, parent, number, &[(&file, &content)]);
        }
        self.import(&stream, count)
    }

    /// Makes `branch` start at `oid`, or moves it there.
    pub(crate) fn set_branch(&self, branch: &str, oid: Oid) {
        self.git(["update-ref", &format!("refs/heads/{branch}"), &oid.to_string()]);
    }

    /// Takes a branch away. Its commits stay in the repository.
    pub(crate) fn delete_branch(&self, branch: &str) {
        self.git(["update-ref", "-d", &format!("refs/heads/{branch}")]);
    }

    /// Makes an annotated tag and gives the id of the tag object.
    pub(crate) fn annotated_tag(&self, name: &str, target: Oid) -> Oid {
        self.git(["tag", "--annotate", "--message", name, name, &target.to_string()]);
        self.ref_oid(&format!("refs/tags/{name}")).expect("the tag was just made")
    }

    /// Where a ref points; a short name is a branch.
    pub(crate) fn ref_oid(&self, name: &str) -> Option<Oid> {
        let full =
            if name.starts_with("refs/") { name.to_owned() } else { format!("refs/heads/{name}") };
        self.refs().remove(&full)
    }

    /// All refs but `HEAD`.
    pub(crate) fn refs(&self) -> BTreeMap<String, Oid> {
        self.git(["for-each-ref", "--format=%(objectname) %(refname)"])
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(oid, name)| (name.to_owned(), oid.parse().expect("git prints object ids")))
            .collect()
    }

    /// What `HEAD` names, in full.
    pub(crate) fn head(&self) -> String {
        self.git(["symbolic-ref", "HEAD"])
    }

    /// Whether the object and all it reaches are in the repository.
    pub(crate) fn is_complete(&self, oid: Oid) -> bool {
        let output = self.try_git(["rev-list", "--objects", "--quiet", &oid.to_string(), "--"]);
        output.status.success()
    }

    /// How many files are in the object folder: packs, loose objects, and what should not be there.
    pub(crate) fn object_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.path.join("objects")];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().expect("the object folder can be read") {
                let entry = entry.expect("an entry can be read");
                if entry.file_type().expect("it has a type").is_dir() {
                    folders.push(entry.path());
                } else {
                    files.push(entry.path());
                }
            }
        }
        files.sort();
        files
    }

    fn import(&self, stream: &str, count: usize) -> Vec<Oid> {
        let mut stream = stream.to_owned();
        for mark in 1..=count {
            writeln!(stream, "get-mark :{mark}").expect("a string takes all");
        }
        stream.push_str("done\n");
        // Without `unpackLimit` a small import would be loose objects: as good, but slower to serve.
        let marks = self.git_with_input(
            &["fast-import", "--quiet", "--force", "--done", "--cat-blob-fd=1"],
            stream.as_bytes(),
        );
        marks.lines().map(|oid| oid.parse().expect("fast-import prints object ids")).collect()
    }
}

fn write_commit(
    stream: &mut String,
    branch: &str,
    parent: Option<Oid>,
    number: usize,
    files: &[(&str, &str)],
) {
    let time = 1_700_000_000 + number;
    let message = format!("{branch} {number}");
    write!(
        stream,
        "commit refs/heads/{branch}\nmark :{mark}\n\
         author A U Thor <author@example.org> {time} +0000\n\
         committer C O Mitter <committer@example.org> {time} +0000\n\
         data {length}\n{message}\n",
        mark = number + 1,
        length = message.len(),
    )
    .expect("a string takes all");
    if let Some(parent) = parent {
        writeln!(stream, "from {parent}").expect("a string takes all");
    }
    for (path, content) in files {
        writeln!(stream, "M 100644 inline {path}\ndata {}\n{content}", content.len())
            .expect("a string takes all");
    }
    stream.push('\n');
}
