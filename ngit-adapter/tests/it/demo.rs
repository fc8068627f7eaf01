//! The demo: the first thing anybody sees of this.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support_program::{PROGRAM, clean_command};

/// The demo, with a home and a temporary folder of its own.
struct Home(TempDir);

impl Home {
    /// A home in which everything that git could read is set against us.
    fn hostile() -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        let config = "[init]\n\tdefaultBranch = evil\n\ttemplateDir = /nonexistent\n\
                      [core]\n\thooksPath = /nonexistent\n\tautocrlf = true\n\
                      [commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n\
                      [transfer]\n\thideRefs = refs\n[uploadpack]\n\thideRefs = refs\n\
                      [protocol]\n\tallow = never\n\tversion = 0\n\
                      [http]\n\tproxy = http://127.0.0.1:1\n\
                      [fetch]\n\tfsckObjects = nonsense\n[broken\n";
        std::fs::write(dir.path().join(".gitconfig"), config).expect("a file can be written");
        std::fs::create_dir(dir.path().join("tmp")).expect("a folder can be made");
        Self(dir)
    }

    fn command(&self) -> Command {
        let mut command = clean_command(Path::new(PROGRAM));
        command
            .arg("demo")
            .env("HOME", self.0.path())
            .env("TMPDIR", self.tmp())
            .env("GIT_DIR", "/nonexistent")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "uploadpack.hideRefs")
            .env("GIT_CONFIG_VALUE_0", "refs")
            .env("http_proxy", "http://127.0.0.1:1")
            .env("ALL_PROXY", "http://127.0.0.1:1")
            .current_dir("/");
        command
    }

    fn tmp(&self) -> std::path::PathBuf {
        self.0.path().join("tmp")
    }

    fn left_behind(&self) -> Vec<std::path::PathBuf> {
        let entries = self.tmp().read_dir().expect("the folder can be read");
        entries.map(|entry| entry.expect("an entry can be read").path()).collect()
    }
}

fn text(output: &Output) -> String {
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("the demo prints UTF-8")
}

/// G2: it works whatever is configured, from any folder, and ends with what the servers counted.
#[test]
fn the_demo_tells_the_whole_story_and_leaves_nothing_behind() {
    let home = Home::hostile();
    let started = Instant::now();
    let output = home.command().output().expect("the program can be started");
    let took = started.elapsed();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(text.matches("released").count() >= 11, "{text}");
    assert!(text.contains("127.0.0.1"), "{text}");
    assert!(text.contains(&"de".repeat(20)), "the missing commit is named: {text}");
    let row = |name: &str| {
        let line = text.lines().rev().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("there is a row {name}: {text}"))
            .split_whitespace()
            .filter_map(|word| word.parse::<u64>().ok())
            .collect::<Vec<_>>()
    };
    // events, released, held
    assert_eq!(row("lantern"), [4, 4, 0]);
    assert_eq!(row("compass"), [4, 4, 0]);
    assert_eq!(row("almanac"), [4, 3, 1]);
    assert_eq!(row("together"), [12, 11, 1]);
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
    assert_eq!(home.left_behind(), Vec::<std::path::PathBuf>::new());
}

/// Ctrl-C, and the end of whoever reads, leave nothing behind either.
#[test]
fn a_demo_that_is_interrupted_leaves_nothing_behind() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = Home::hostile();
        let mut child = home
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be started");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let mut line = String::new();
        while !line.contains("127.0.0.1") {
            line.clear();
            assert_ne!(stdout.read_line(&mut line).expect("stdout can be read"), 0);
        }
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it has an id");
        kill_process(pid, signal).expect("our own child can be signalled");
        stdout.read_to_string(&mut line).expect("stdout can be read");
        assert!(child.wait().expect("it ends").code().is_some(), "it ends by itself");
        assert_eq!(home.left_behind(), Vec::<std::path::PathBuf>::new());
    }
    let home = Home::hostile();
    let mut child = home
        .command()
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it can be started");
    drop(child.stdout.take());
    child.wait().expect("it ends");
    assert_eq!(home.left_behind(), Vec::<std::path::PathBuf>::new());
}
