//! The relay as it was built, in a process of its own, and a plain client for it.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{
    fs::File,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use futures::{SinkExt, StreamExt};
use nostr::event::Event;
use purgatory_sync::Oid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use crate::{
    support::{TestRepo, git_command},
    support_events::{Person, SOME_TIME},
    support_program::{PROGRAM, clean_command},
};

/// The longest that a test waits for something that has to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const HELD: &str = "purgatory: won't be served until git data arrives";

/// A running `ngit-purgatory serve`. It is killed when it is dropped.
pub(crate) struct RelayProcess {
    child: Child,
    address: SocketAddr,
    dir: TempDir,
}

impl RelayProcess {
    pub(crate) fn start() -> Self {
        Self::start_with(&[], &[])
    }

    /// With these arguments and this environment.
    pub(crate) fn start_with(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        Self::start_in(dir, args, environment)
    }

    /// On the data of an earlier one.
    pub(crate) fn start_in(dir: TempDir, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Self::command(&dir, args, environment);
        let mut child = command.spawn().expect("the program can be started");
        let mut first = String::new();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(stdout).read_line(&mut first).expect("the program says something");
        let address = first
            .trim()
            .strip_prefix("listening on http://")
            .and_then(|address| address.parse().ok())
            .unwrap_or_else(|| panic!("{first:?}, {}", read(&dir.path().join("log"))));
        Self { child, address, dir }
    }

    /// Starts one on this data, and kills it after that long, whether or not it listens by then.
    pub(crate) fn killed_after(dir: &TempDir, args: &[&str], life: Duration) {
        let mut command = Self::command(dir, args, &[]);
        let mut child = command.spawn().expect("the program can be started");
        std::thread::sleep(life);
        child.kill().expect("it can be killed");
        child.wait().expect("it can be waited for");
    }

    fn command(dir: &TempDir, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let log = File::options().create(true).append(true).open(dir.path().join("log"));
        let mut command = clean_command(Path::new(PROGRAM));
        command
            .args(["serve", "--bind-address=127.0.0.1:0", "--allow-private-networks"])
            .arg("--git-data-path")
            .arg(dir.path().join("git"))
            .arg("--relay-data-path")
            .arg(dir.path().join("relay"))
            .args(args)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log.expect("a log file"));
        command
    }

    /// Its process, for a look at what it takes.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn http(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn websocket(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// The URL of a repository, for git.
    pub(crate) fn repository_url(&self, owner: &Person, identifier: &str) -> String {
        self.http(&self.repository_id(owner, identifier).url_path())
    }

    fn repository_id(&self, owner: &Person, identifier: &str) -> ngit_adapter::RepositoryId {
        ngit_adapter::RepositoryId::new(owner.key(), identifier.into())
    }

    /// An announcement that lists this relay, and then these clone URLs.
    pub(crate) fn announcement(&self, owner: &Person, identifier: &str, urls: &[&str]) -> Event {
        self.announcement_with(owner, identifier, urls, &[])
    }

    pub(crate) fn announcement_with(
        &self,
        owner: &Person,
        identifier: &str,
        urls: &[&str],
        maintainers: &[&Person],
    ) -> Event {
        let own = self.repository_url(owner, identifier);
        let mut tags = vec![
            vec!["d".to_owned(), identifier.to_owned()],
            vec!["clone".to_owned(), own],
            vec!["relays".to_owned(), self.websocket()],
        ];
        tags[1].extend(urls.iter().map(|url| (*url).to_owned()));
        if !maintainers.is_empty() {
            let keys = maintainers.iter().map(|it| it.key().to_hex());
            tags.push(std::iter::once("maintainers".to_owned()).chain(keys).collect());
        }
        owner.sign(nostr::event::Kind::GitRepoAnnouncement, SOME_TIME, &tags)
    }

    /// The repository on the relay's disk.
    pub(crate) fn repository(&self, owner: &Person, identifier: &str) -> TestRepo {
        let name = self.repository_id(owner, identifier).url_path();
        TestRepo::open(self.git_data().join(name.trim_start_matches('/')))
    }

    pub(crate) fn git_data(&self) -> PathBuf {
        self.dir.path().join("git")
    }

    pub(crate) fn log(&self) -> String {
        read(&self.dir.path().join("log"))
    }

    /// `GET`, with its status, headers in lower case, and body.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        Answer::read(self.address, &[head.as_bytes(), b"\r\n", body].concat())
    }

    /// Asks it to end by this signal, and waits.
    pub(crate) fn end_by(&mut self, signal: rustix::process::Signal) -> ExitStatus {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("a child has an id"), signal).expect("it runs");
        self.child.wait().expect("it can be waited for")
    }

    /// Ends it and gives its data, for the next one.
    pub(crate) fn into_dir(mut self) -> TempDir {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let empty = TempDir::new().expect("a temporary folder");
        std::mem::replace(&mut self.dir, empty)
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let log = self.log();
        if std::thread::panicking() {
            eprintln!("--- the relay's log\n{log}---");
        } else {
            assert!(!log.contains("panicked"), "{log}");
        }
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Sends these bytes and reads until the end.
    pub(crate) fn read(address: SocketAddr, request: &[u8]) -> Self {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(address).expect("the relay listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        // It may answer and close before all was sent.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|it| it == b"\r\n\r\n");
        let end =
            end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&answer)));
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let mut body = answer.split_off(end + 4);
        if head.contains("transfer-encoding: chunked") {
            body = dechunk(&body);
        }
        Self { status, head, body }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn dechunk(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|it| it == b"\r\n") {
        let length = std::str::from_utf8(&body[..end]).expect("a length");
        let length = usize::from_str_radix(length, 16).expect("a length");
        whole.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[(end + 4 + length).min(body.len())..];
    }
    whole
}

/// A websocket client that speaks plain JSON.
pub(crate) struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Client {
    pub(crate) async fn connect(relay: &RelayProcess) -> Self {
        Self::connect_to(&relay.websocket()).await
    }

    pub(crate) async fn connect_to(url: &str) -> Self {
        let (socket, _) = connect_async(url).await.expect("the relay listens");
        Self { socket }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: impl Into<String>) {
        self.send_frame(Message::text(text.into())).await;
    }

    pub(crate) async fn send_frame(&mut self, frame: Message) {
        self.socket.send(frame).await.expect("the relay reads");
    }

    /// The next message; none once the relay has closed.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            match frame.expect("a message has to come") {
                Some(Ok(Message::Text(text))) => {
                    return Some(serde_json::from_str(&text).expect("the relay speaks JSON"));
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    pub(crate) async fn expect(&mut self) -> Value {
        self.next().await.expect("the connection lives")
    }

    /// Sends an event and gives what is said to it, passing over what else comes.
    pub(crate) async fn publish(&mut self, event: &Event) -> (bool, String) {
        let event: Value = serde_json::from_str(&event.as_json()).expect("an event is JSON");
        let id = event["id"].clone();
        self.send(&json!(["EVENT", event])).await;
        loop {
            let said = self.expect().await;
            if said[0] == "OK" && said[1] == id {
                let text = said[3].as_str().expect("a text").to_owned();
                return (said[2].as_bool().expect("a truth"), text);
            }
        }
    }

    /// Sends an event and gives what is said to it, unless the connection ends first.
    pub(crate) async fn try_publish(&mut self, event: &Event) -> Option<(bool, String)> {
        let id = event.id.to_hex();
        let message = format!("[\"EVENT\",{}]", event.as_json());
        self.socket.send(Message::text(message)).await.ok()?;
        loop {
            let said = self.next().await?;
            if said[0] == "OK" && said[1] == id {
                return Some((said[2] == true, said[3].as_str().unwrap_or_default().to_owned()));
            }
        }
    }

    /// Sends an event that has to be held.
    pub(crate) async fn publish_held(&mut self, event: &Event) {
        assert_eq!(self.publish(event).await, (true, HELD.to_owned()));
    }

    /// The ids of what is stored, in the order in which it comes, and leaves the subscription open.
    pub(crate) async fn request(&mut self, id: &str, filter: Value) -> Vec<String> {
        self.send(&json!(["REQ", id, filter])).await;
        let mut ids = Vec::new();
        loop {
            let said = self.expect().await;
            assert_eq!(said[1], id, "{said}");
            match said[0].as_str() {
                Some("EVENT") => ids.push(said[2]["id"].as_str().expect("an id").to_owned()),
                Some("EOSE") => return ids,
                _ => panic!("{said}"),
            }
        }
    }

    /// What is served of these kinds, once.
    pub(crate) async fn served(&mut self, filter: Value) -> Vec<String> {
        let ids = self.request("once", filter).await;
        self.send(&json!(["CLOSE", "once"])).await;
        ids
    }

    /// The next live event of a subscription.
    pub(crate) async fn live(&mut self, id: &str) -> String {
        loop {
            let said = self.expect().await;
            if said[0] == "EVENT" && said[1] == id {
                return said[2]["id"].as_str().expect("an id").to_owned();
            }
        }
    }
}

/// Pushes with real git, over HTTP, to the relay.
pub(crate) fn push(from: &TestRepo, url: &str, refs: &[&str]) -> Output {
    push_with(from, url, refs, &[])
}

pub(crate) fn push_with(from: &TestRepo, url: &str, refs: &[&str], settings: &[&str]) -> Output {
    let mut command = git_command();
    for setting in settings {
        command.arg("-c").arg(setting);
    }
    with_proxy_off(&mut command);
    command.arg("--git-dir").arg(from.path()).arg("push").arg(url).args(refs);
    command.output().expect("git can be started")
}

/// Clones, bare, with real git.
pub(crate) fn clone(url: &str, to: &Path, settings: &[&str]) -> Output {
    let mut command = git_command();
    for setting in settings {
        command.arg("-c").arg(setting);
    }
    with_proxy_off(&mut command);
    command.args(["clone", "--quiet", "--bare", url]).arg(to).output().expect("git can be started")
}

fn with_proxy_off(command: &mut Command) {
    command.env("NO_PROXY", "*");
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(crate) fn assert_pushed(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

/// Looks until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} has not come to be");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A later state of the same author than [`Person::state`].
pub(crate) fn state_at(
    author: &Person,
    identifier: &str,
    later: u64,
    refs: &[(&str, Oid)],
) -> Event {
    let mut tags = vec![
        vec!["d".to_owned(), identifier.to_owned()],
        vec!["HEAD".to_owned(), "ref: refs/heads/main".to_owned()],
    ];
    tags.extend(refs.iter().map(|(name, oid)| vec![(*name).to_owned(), oid.to_string()]));
    author.sign(nostr::event::Kind::RepoState, SOME_TIME + later, &tags)
}
