//! The git server: real git as its client, and clients that no git is.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use ngit_adapter::git::Git;
use ngit_adapter::relay::{RequestKind, RequestLog, SmartHttp, SmartHttpLimits};
use purgatory_sync::Oid;
use tempfile::TempDir;

use crate::{
    support::{TestRepo, git_command},
    support_server::{TestServer, git_at, installed_git},
};

/// A folder with the repository `one.git` of 30 commits and a tag, served.
fn served() -> (TempDir, TestRepo, Vec<Oid>, TestServer) {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("one.git"));
    let commits = repo.commits("main", 30);
    repo.annotated_tag("v1", commits[20]);
    let server = TestServer::start("127.0.0.1", dir.path());
    (dir, repo, commits, server)
}

#[test]
fn git_clones_with_every_protocol_version() {
    let (dir, repo, commits, server) = served();
    for version in ["0", "1", "2"] {
        let clone = dir.path().join(format!("clone-{version}"));
        let output = git_command()
            .args(["-c", &format!("protocol.version={version}"), "clone", "--quiet", "--mirror"])
            .arg(server.url("one.git"))
            .arg(&clone)
            .output()
            .expect("git can be started");
        assert!(output.status.success(), "v{version}: {}", String::from_utf8_lossy(&output.stderr));
        let clone = TestRepo::open(clone);
        assert_eq!(clone.refs(), repo.refs(), "v{version}");
        assert!(clone.is_complete(commits[29]), "v{version}");
    }
    assert_eq!(server.log().fetches(), 3);
    // v0 and v1: two requests each. v2 lists the refs with one of its own.
    assert_eq!(server.log().requests(), 2 + 2 + 3);
    let kinds = |kind| server.log().entries().iter().filter(|entry| entry.kind == kind).count();
    assert_eq!(kinds(RequestKind::Advertisement), 3);
    assert_eq!(kinds(RequestKind::Fetch), 3);
}

#[test]
fn a_gzipped_body_and_a_chunked_body_are_understood() {
    let (dir, repo, _, server) = served();
    // So many wanted objects make a body of 80 KB: git compresses it, or sends it in chunks after a probe.
    let commits = repo.commits("many", 1_600);
    for (name, post_buffer) in [("gzipped", 1 << 20), ("chunked", 65_536)] {
        let target = TestRepo::init(dir.path().join(name));
        let mut args = vec!["-c".to_owned(), format!("http.postBuffer={post_buffer}")];
        args.extend(["fetch", "--quiet", "--no-tags"].map(str::to_owned));
        args.push(server.url("one.git"));
        args.extend(commits.iter().map(Oid::to_string));
        target.git(&args);
        assert!(target.is_complete(commits[1_599]), "{name}");
    }
    assert_eq!(server.log().fetches(), 2, "the probe is no fetch");
    assert!(server.log().requests() >= 5, "the probe came");
}

#[test]
fn an_unreachable_commit_is_served_by_its_id() {
    let (dir, repo, _, server) = served();
    let gone = repo.commit("topic", "a", "b");
    repo.delete_branch("topic");
    let target = TestRepo::init(dir.path().join("target"));
    target.git(["fetch", "--quiet", &server.url("one.git"), &gone.to_string()]);
    assert!(target.is_complete(gone));
}

#[test]
fn what_is_no_fetch_is_refused_with_its_status() {
    let (_dir, _, _, server) = served();
    let status = |request: &str| exchange(&server, request.as_bytes()).status;
    let get = |path: &str| {
        status(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    };
    let post = |path: &str, headers: &str| {
        status(&format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n{headers}\r\n0000"
        ))
    };
    assert_eq!(get("/one.git/info/refs?service=git-upload-pack"), 200);
    assert_eq!(get("/one.git/info/refs?service=git-receive-pack"), 403);
    assert_eq!(get("/one.git/info/refs"), 403);
    assert_eq!(get("/one.git/HEAD"), 404);
    assert_eq!(get("/none.git/info/refs?service=git-upload-pack"), 404);
    assert_eq!(get("/one.git/git-upload-pack"), 405);
    let typed = "Content-Type: application/x-git-upload-pack-request\r\n";
    assert_eq!(post("/one.git/git-upload-pack", typed), 200);
    assert_eq!(post("/one.git/git-upload-pack", ""), 415);
    assert_eq!(post("/one.git/git-receive-pack", typed), 404);
    let brotli = format!("{typed}Content-Encoding: br\r\n");
    assert_eq!(post("/one.git/git-upload-pack", &brotli), 415);
    assert_eq!(server.log().fetches(), 0);
}

#[test]
fn no_spelling_of_a_path_leaves_the_folder() {
    let dir = TempDir::new().expect("a temporary folder");
    for inside in ["secret.git", "served/.hidden.git", "served/owner/one.git"] {
        TestRepo::init(dir.path().join(inside)).commit("main", "a", "b");
    }
    let server = TestServer::start("127.0.0.1", dir.path().join("served"));
    let status = |path: &str| {
        let request = format!(
            "GET {path}/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        );
        exchange(&server, request.as_bytes()).status
    };
    assert_eq!(status("/owner/one.git"), 200);
    let secret = dir.path().join("secret.git");
    for path in [
        "/../secret.git",
        "/owner/../../secret.git",
        "/%2e%2e/secret.git",
        "/..%2fsecret.git",
        "/owner%2f..%2f..%2fsecret.git",
        "/owner/..%5c..%5csecret.git",
        "//secret.git",
        "/./owner/one.git",
        "/owner//one.git",
        "/owner%2fone.git",
        "/owner/one.git%00",
        "/.hidden.git",
        "/%ff.git",
        "/owner/one.git/",
        "",
        &format!("/{}", secret.display()),
        &format!("/{}", "a/".repeat(3_000)),
    ] {
        assert_eq!(status(path), 404, "{path:?}");
    }
}

#[test]
fn a_body_that_inflates_over_the_limit_is_refused() {
    let (dir, ..) = served();
    let limits = SmartHttpLimits { body_bytes: 1 << 20, ..SmartHttpLimits::default() };
    let router = SmartHttp::folder(installed_git(), dir.path()).with_limits(limits).into_router();
    let server = TestServer::start_with("127.0.0.1", router, RequestLog::default());
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    // Lines that upload-pack keeps reading, so it is not git that ends it.
    gzip.write_all(b"0012command=fetch\n0001").expect("memory takes all");
    let have = format!("0032have {}\n", "a".repeat(40));
    gzip.write_all(have.repeat(40_000).as_bytes()).expect("memory takes all");
    let bomb = gzip.finish().expect("memory takes all");
    assert!(bomb.len() < 100_000);
    assert_eq!(post_gzip(&server, &bomb).status, 413);
    assert_eq!(post_gzip(&server, b"this is not gzip").status, 400);
    assert_eq!(post_gzip(&server, &bomb[..bomb.len() / 100]).status, 400, "cut off");
}

#[test]
fn what_git_is_told_comes_from_a_short_list() {
    let dir = TempDir::new().expect("a temporary folder");
    TestRepo::init(dir.path().join("one.git"));
    let git = script(&dir, "cat > /dev/null; echo \"[$GIT_PROTOCOL] $*\"; env");
    let router = SmartHttp::folder(git, dir.path()).into_router();
    let server = TestServer::start_with("127.0.0.1", router, RequestLog::default());
    for (sent, passed) in [
        ("", ""),
        ("version=2", "version=2"),
        ("version=1", "version=1"),
        ("version=2:evil=$(id)", "version=2"),
        ("evil:version=2", "version=2"),
        ("version=22", ""),
        ("version=0", ""),
    ] {
        let answer = exchange(
            &server,
            format!(
                "POST /one.git/git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                 Content-Type: application/x-git-upload-pack-request\r\nContent-Length: 4\r\n\
                 Git-Protocol: {sent}\r\n\r\n0000"
            )
            .as_bytes(),
        );
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            body.contains(&format!("[{passed}] "))
                && body.contains(" upload-pack --strict --stateless-rpc -- "),
            "{sent:?}: {body}"
        );
        assert!(!body.contains("CARGO"), "the environment is cleared: {body}");
    }
}

#[test]
fn all_processes_end_when_the_client_goes() {
    let dir = TempDir::new().expect("a temporary folder");
    TestRepo::init(dir.path().join("one.git"));
    let fifo = dir.path().join("alive");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    // Whoever of the two lives holds the pipe open.
    let script_text = format!("exec 3> '{}'; echo up >&3; sleep 600 & wait", fifo.display());
    let git = script(&dir, &script_text);
    let log = RequestLog::default();
    let router = SmartHttp::folder(git, dir.path()).with_log(log.clone()).into_router();
    let server = TestServer::start_with("127.0.0.1", router, log);

    let mut client = TcpStream::connect(server.address()).expect("the server listens");
    client
        .write_all(b"GET /one.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("the server reads");
    let mut alive = BufReader::new(File::open(&fifo).expect("the pipe can be read"));
    let mut line = String::new();
    alive.read_line(&mut line).expect("the script says that it is up");
    assert_eq!(line, "up\n");
    drop(client);
    let end = alive.read_to_end(&mut Vec::new()).expect("the pipe ends when nobody holds it");
    assert_eq!(end, 0);
}

#[test]
fn a_request_has_a_deadline_and_so_many_may_be_on_at_once() {
    let dir = TempDir::new().expect("a temporary folder");
    TestRepo::init(dir.path().join("one.git"));
    let fifo = dir.path().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let git = script(&dir, &format!("echo up > '{}'; sleep 600", fifo.display()));
    let limits = SmartHttpLimits {
        at_once: std::num::NonZeroU32::MIN,
        deadline: Duration::from_secs(1),
        ..SmartHttpLimits::default()
    };
    let router = SmartHttp::folder(git, dir.path()).with_limits(limits).into_router();
    let server = TestServer::start_with("127.0.0.1", router, RequestLog::default());
    let request = b"GET /one.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    let mut first = TcpStream::connect(server.address()).expect("the server listens");
    first.write_all(request).expect("the server reads");
    assert_eq!(std::fs::read_to_string(&fifo).expect("the first is on"), "up\n");
    assert_eq!(exchange(&server, request).status, 503);
    assert_eq!(read_answer(first).status, 504);
}

/// A large answer and a large request are streamed at the same time: neither side waits for the other to be done.
#[test]
fn both_directions_are_streamed_at_once() {
    let dir = TempDir::new().expect("a temporary folder");
    TestRepo::init(dir.path().join("one.git"));
    // More than any buffer in between holds: if one of the two were read to its end first, it would stand still.
    let git = script(&dir, "exec cat");
    let server = TestServer::start_with(
        "127.0.0.1",
        SmartHttp::folder(git, dir.path()).into_router(),
        RequestLog::default(),
    );
    let body = vec![b'x'; 15 << 20];
    let head = format!(
        "POST /one.git/git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: application/x-git-upload-pack-request\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let stream = TcpStream::connect(server.address()).expect("the server listens");
    let mut sending = stream.try_clone().expect("a socket can be cloned");
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            sending.write_all(head.as_bytes()).expect("the server reads");
            sending.write_all(&body).expect("the server reads");
        });
        read_answer(stream)
    });
    assert_eq!(answer.status, 200);
    // The answer is in chunks: what is between them is small.
    let echoed = answer.body.iter().filter(|&&byte| byte == b'x').count();
    assert_eq!(echoed, body.len());
}

/// The deadline holds for a client that reads nothing, too: its processes end.
#[test]
fn a_client_that_does_not_read_is_left_at_the_deadline() {
    let dir = TempDir::new().expect("a temporary folder");
    TestRepo::init(dir.path().join("one.git"));
    let fifo = dir.path().join("alive");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let git = script(&dir, &format!("exec 3> '{}'; echo up >&3; exec yes", fifo.display()));
    let limits = SmartHttpLimits { deadline: Duration::from_secs(1), ..SmartHttpLimits::default() };
    let router = SmartHttp::folder(git, dir.path()).with_limits(limits).into_router();
    let server = TestServer::start_with("127.0.0.1", router, RequestLog::default());
    let mut client = TcpStream::connect(server.address()).expect("the server listens");
    client
        .write_all(b"GET /one.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("the server reads");
    let mut alive = String::new();
    File::open(&fifo)
        .and_then(|mut fifo| fifo.read_to_string(&mut alive))
        .expect("the pipe ends when nobody holds it");
    assert_eq!(alive, "up\n");
    drop(client);
}

/// A program that runs these lines of shell. It is written by another process: a file that this one has open for
/// writing could not be started while another test starts a child.
fn script(dir: &TempDir, lines: &str) -> Git {
    let path = dir.path().join("git-script");
    let mut child = std::process::Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh can be started");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let version = "case \"$*\" in *version) echo git version 2.40.0; exit;; esac";
    write!(stdin, "#!/bin/sh\n{version}\n{lines}\n").expect("sh reads");
    drop(stdin);
    assert!(child.wait().expect("sh ends").success());
    git_at(path)
}

struct Answer {
    status: u16,
    body: Vec<u8>,
}

fn post_gzip(server: &TestServer, body: &[u8]) -> Answer {
    let mut request = format!(
        "POST /one.git/git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\nGit-Protocol: version=2\r\n\
         Content-Type: application/x-git-upload-pack-request\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    exchange(server, &request)
}

fn exchange(server: &TestServer, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(server.address()).expect("the server listens");
    stream.write_all(request).expect("the server reads");
    read_answer(stream)
}

fn read_answer(mut stream: TcpStream) -> Answer {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server answers");
    let head = String::from_utf8_lossy(&answer).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
    Answer { status: status.expect("an answer has a status"), body: answer.split_off(body) }
}
