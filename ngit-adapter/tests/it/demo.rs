//! The demo: the first thing anybody sees of this.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support_program::{PROGRAM, clean_command};

/// Enough for a machine that does much else: then nothing is cut off, and the end is always the same.
const NO_HURRY: &str = "--deadline-secs=600";

/// The demo, with a home and a temporary folder of its own.
pub(crate) struct Home(TempDir);

impl Home {
    /// A home in which everything that git could read is set against us.
    pub(crate) fn hostile() -> Self {
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

    pub(crate) fn command(&self) -> Command {
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

    /// Starts it with its standard output in a pipe.
    fn start(&self) -> Child {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it can be started")
    }

    fn tmp(&self) -> PathBuf {
        self.0.path().join("tmp")
    }

    pub(crate) fn left_behind(&self) -> Vec<PathBuf> {
        let entries = self.tmp().read_dir().expect("the folder can be read");
        entries.map(|entry| entry.expect("an entry can be read").path()).collect()
    }
}

/// What a whole run printed.
struct Told(String);

impl Told {
    fn new(output: Output) -> Self {
        let text = String::from_utf8(output.stdout).expect("the demo prints UTF-8");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(complaints.is_empty(), "{complaints}");
        assert_eq!(output.status.code(), Some(0), "{text}");
        Self(text)
    }

    fn line(&self, with: &[&str]) -> &str {
        let has_all = |line: &&str| with.iter().all(|part| line.contains(part));
        let found = self.0.lines().find(has_all);
        found.unwrap_or_else(|| panic!("there is a line with {with:?}: {}", self.0))
    }

    /// The numbers of the rows of the table, by their names, in the order in which they stand.
    fn table(&self) -> BTreeMap<&str, Vec<u64>> {
        let lines = self.0.lines().skip_while(|line| !line.contains("counted by the servers"));
        let rows = lines.skip(1).take_while(|line| !line.is_empty()).map(|line| {
            let mut words = line.split_whitespace();
            (words.next().expect("a row has a name"), numbers(line))
        });
        rows.collect()
    }
}

fn numbers(line: &str) -> Vec<u64> {
    let words = line.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// G2, P1: whatever is configured, from any folder, all that has data somewhere is released, within what each
/// server may be asked, with much fewer fetches than events. That it says in plain lines, where no terminal is.
#[test]
fn the_demo_tells_the_whole_story_and_leaves_nothing_behind() {
    let home = Home::hostile();
    let output = home.command().arg(NO_HURRY).output().expect("the program can be started");
    let told = Told::new(output);
    assert_eq!(home.left_behind(), Vec::<PathBuf>::new());
    let text = &told.0;
    assert!(!text.contains(['\u{1b}', '\r']), "nothing is drawn or coloured: {text}");
    let wide = text.lines().find(|line| line.chars().count() > 79);
    assert_eq!(wide, None, "a small terminal is 80 wide");

    each_server_played_its_part(&told);
    what_stays_held_is_said(&told);
    no_limit_was_passed(&told);
}

/// P3, P4, P6, P14, D8: what the demo is made to show is in it.
fn each_server_played_its_part(told: &Told) {
    told.line(&["lantern", "quick.test", "5 of 5 objects"]);
    told.line(&["lantern", "4 events released"]);
    told.line(&["compass", "older.test", "1 of 3 objects"]);
    told.line(&["compass", "quick.test", "2 of 2 objects"]);
    told.line(&["almanac", "forks.test", "1 of 1 object"]);
    told.line(&["almanac", "forks.test", "no such repository"]);
    told.line(&["sextant", "closed.test", "no connection"]);
    told.line(&["sextant", "slow.test", "4 of 4 objects"]);
    told.line(&["bellows", "strict.test", "asks to come later"]);
    told.line(&["bellows", "one more event"]);
    told.line(&["bellows", "strict.test", "3 of 3 objects"]);
    told.line(&["lantern", "1 event released: the data is here already"]);
}

fn what_stays_held_is_said(told: &Told) {
    let text = &told.0;
    let waited = numbers(told.line(&["events waited for git data"]));
    assert_eq!(waited, [46, 41, 5], "{text}");
    told.line(&["Still held in almanac: Erin's PR \"Add the comets\""]);
    told.line(&[&"de".repeat(20), "on none of its servers"]);
    told.line(&["Still held in mooring: 4 events."]);
    assert_eq!(text.matches("Still held in").count(), 2, "{text}");
}

/// L1, L2: as the servers counted it.
fn no_limit_was_passed(told: &Told) {
    let text = &told.0;
    let mut table = told.table();
    let together = table.remove("together").expect("there is a sum");
    let refused = table.remove("closed.test").expect("it has a row")[0];
    assert_eq!(table.len(), 5, "{text}");
    for (server, row) in &table {
        let [fetches, requests, at_once, at_once_limit, in_window, window_limit, _] = row[..]
        else {
            panic!("{server} has all numbers: {text}");
        };
        assert!(1 <= fetches && fetches <= requests, "{server}: {text}");
        assert!(1 <= at_once && at_once <= at_once_limit, "{server}: {text}");
        assert!(1 <= in_window && in_window <= window_limit.min(fetches), "{server}: {text}");
        assert_eq!((at_once_limit, window_limit), (5, 30));
    }
    let sum = |column: usize| table.values().map(|row| row[column]).sum::<u64>();
    assert_eq!(together, [sum(0), sum(1), sum(6)], "{text}");
    assert!(table["strict.test"][6] >= 1, "the strict server sent somebody away: {text}");
    let made = numbers(told.line(&["One fetch for each of them"]));
    assert_eq!(made, [46, together[0] + refused, refused], "{text}");
    assert!(made[1] < made[0], "fewer fetches than events: {text}");
}

/// It ends in time, whatever is still on, and its numbers still fit.
#[test]
fn a_demo_whose_time_is_over_says_so_and_ends_well() {
    let home = Home::hostile();
    let output = home.command().arg("--deadline-secs=1").output().expect("it can be started");
    let told = Told::new(output);
    told.line(&["the time is over"]);
    let waited = numbers(told.line(&["events waited for git data"]));
    assert_eq!(waited[0], waited[1] + waited[2], "{}", told.0);
    assert!(waited[2] > 0, "the slow server needs longer: {}", told.0);
    told.line(&["The time was over before all of its data had come."]);
    assert_eq!(home.left_behind(), Vec::<PathBuf>::new());
}

/// Ctrl-C, and the end of whoever reads, leave nothing behind either.
#[test]
fn a_demo_that_is_interrupted_leaves_nothing_behind() {
    for (signal, after) in [(Signal::INT, "quick.test"), (Signal::TERM, "the hunt begins")] {
        let home = Home::hostile();
        let mut child = home.start();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let mut line = String::new();
        while !line.contains(after) {
            line.clear();
            assert_ne!(stdout.read_line(&mut line).expect("stdout can be read"), 0);
        }
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it has an id");
        kill_process(pid, signal).expect("our own child can be signalled");
        stdout.read_to_string(&mut line).expect("stdout can be read");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "it ends by itself");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("interrupted; nothing is left behind"), "{said}");
        assert_eq!(home.left_behind(), Vec::<PathBuf>::new());
    }
    let home = Home::hostile();
    let mut child = home.start();
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "whoever went away has seen enough");
    assert_eq!(home.left_behind(), Vec::<PathBuf>::new());
}
