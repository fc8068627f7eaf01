//! When the program ends, and with which status.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use nostr::event::Event;
use purgatory_sync::Oid;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{
    support_events::{Person, lines},
    support_program::{PROGRAM, Ran, SyncRun, clean_command},
    support_project::Project,
    support_server::TestServer,
};

/// An announcement at this URL, and a state that waits for something.
fn held_at(url: &str) -> [Event; 2] {
    let owner = Person::new(1);
    let state = owner.state("project", &[("refs/heads/main", Oid::sha1([1; 20]))]);
    [owner.announcement("project", &[url]), state]
}

/// A server that accepts and never says a word.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    (listener, format!("http://{address}/project.git"))
}

#[test]
fn nothing_in_is_nothing_held() {
    let ran = SyncRun::new("").run();
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!((ran.summary("events"), ran.summary("held")), (0, 0));
}

#[test]
fn it_ends_when_no_source_is_left_long_before_the_deadline() {
    let served = TempDir::new().expect("a temporary folder");
    let server = TestServer::start("127.0.0.1", served.path());
    for url in [server.url("none.git"), "ssh://127.0.0.1/x.git".to_owned()] {
        let ran = SyncRun::new(&lines(&held_at(&url))).arg("--deadline-secs=100").run();
        assert_eq!(ran.status, Some(3), "{ran:?}");
        assert!(ran.took < Duration::from_secs(50), "{url}: {:?}", ran.took);
        assert_eq!(ran.summary("held"), 1);
    }
    assert_eq!(server.log().requests(), 1);
}

/// G4: a fetch that is on at the deadline is cancelled, and the end comes within five seconds.
#[test]
fn it_ends_at_the_deadline_whatever_a_server_does() {
    let (listener, url) = silent_server();
    let ran = SyncRun::new(&lines(&held_at(&url))).arg("--deadline-secs=3").run();
    drop(listener);
    assert_eq!(ran.status, Some(3), "{ran:?}");
    assert!(ran.took >= Duration::from_secs(3), "{:?}", ran.took);
    assert!(ran.took < Duration::from_secs(8), "{:?}", ran.took);
    let fetches = ran.of_type("fetch");
    assert_eq!(fetches.len(), 1, "{ran:?}");
    assert_eq!(fetches[0]["outcome"], "cancelled");
    assert_eq!(ran.of_type("held")[0]["missing"], serde_json::json!(["01".repeat(20)]));
}

#[test]
fn a_server_that_cannot_be_reached_is_waited_for() {
    let (listener, url) = silent_server();
    drop(listener);
    let ran = SyncRun::new(&lines(&held_at(&url))).arg("--deadline-secs=3").run();
    assert_eq!(ran.status, Some(3), "{ran:?}");
    assert!(ran.took >= Duration::from_secs(3), "{:?}", ran.took);
    assert_eq!(ran.of_type("fetch")[0]["outcome"], "network");
}

/// An input that does not end is left at the deadline, too.
#[test]
fn an_input_that_does_not_end_is_left_at_the_deadline() {
    let sync = SyncRun::new("").arg("--events=-").arg("--deadline-secs=2");
    let started = Instant::now();
    let mut child = start(&sync);
    let _open = child.stdin.take();
    let ran = end(child, started);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.took >= Duration::from_secs(2) && ran.took < Duration::from_secs(7), "{ran:?}");
    assert!(ran.stderr.contains("input"), "{ran:?}");
}

#[test]
fn events_come_on_standard_input_and_go_one_by_one() {
    let project = Project::served();
    let Project { announcement, state, .. } = &project;

    let sync = SyncRun::new("").arg("--events=-");
    let started = Instant::now();
    let mut child = start(&sync);
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin.write_all(lines([announcement, state]).as_bytes()).expect("the program reads");
    // Before the input ends, the event is released and said to be.
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut seen = String::new();
    while !seen.contains("\"released\"") {
        assert_ne!(stdout.read_line(&mut seen).expect("stdout can be read"), 0, "{seen}");
    }
    drop(stdin);
    stdout.read_to_string(&mut seen).expect("stdout can be read");
    let ran = end(child, started);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(seen.lines().last().is_some_and(|last| last.contains("\"summary\"")), "{seen}");
}

/// The first signal ends it in good order.
#[test]
fn a_signal_ends_it_in_good_order() {
    for signal in [Signal::INT, Signal::TERM] {
        let (listener, url) = silent_server();
        let sync = SyncRun::new(&lines(&held_at(&url)));
        let started = Instant::now();
        let child = start(&sync);
        let connection = listener.accept().expect("the program asks");
        kill(&child, signal);
        let ran = end(child, started);
        drop(connection);
        assert_eq!(ran.status, Some(3), "{ran:?}");
        assert_eq!(ran.summary("held"), 1);
        assert!(ran.took < Duration::from_secs(30), "{:?}", ran.took);
    }
}

/// `nohup` means what it says.
#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let sync = SyncRun::new("").arg("--events=-");
    let program = sync.command(Path::new(PROGRAM));
    let started = Instant::now();
    let mut child = clean_command(Path::new("sh"))
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh can be started");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    // An answer shows that the program is up.
    writeln!(stdin, "no event").expect("the program reads");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut seen = String::new();
    stdout.read_line(&mut seen).expect("stdout can be read");
    kill(&child, Signal::HUP);
    writeln!(stdin, "no event either").expect("the program reads on");
    stdout.read_line(&mut seen).expect("stdout can be read");
    drop(stdin);
    stdout.read_to_string(&mut seen).expect("stdout can be read");
    let ran = end(child, started);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!(seen.matches("\"rejected\",\"line\"").count(), 2, "{seen}");
}

/// Whoever reads the output may go: the work is done all the same.
#[test]
fn a_closed_stdout_is_no_failure() {
    let project = Project::served();
    let Project { announcement, state, .. } = &project;
    let sync = SyncRun::new(&lines([announcement, state]));
    let started = Instant::now();
    let mut child = start(&sync);
    drop(child.stdin.take());
    drop(child.stdout.take());
    let ran = end(child, started);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let out = std::fs::read_to_string(sync.out_file()).expect("the file was written");
    assert_eq!(out.lines().count(), 2);
}

fn start(sync: &SyncRun) -> Child {
    sync.command(Path::new(PROGRAM))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started")
}

fn end(child: Child, started: Instant) -> Ran {
    let output = child.wait_with_output().expect("the program ends");
    Ran::new(output, started.elapsed())
}

fn kill(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has an id");
    kill_process(pid, signal).expect("our own child can be signalled");
}
