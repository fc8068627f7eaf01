//! A server that does with each request what a test says: the truth, half of it, or something else.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use crate::support::{TestRepo, git_command};

/// A request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_discovery(&self) -> bool {
        self.method == "GET"
    }

    /// Whether it asks for a pack.
    pub(crate) fn wants(&self) -> bool {
        self.contains("want ")
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.body).contains(text)
    }
}

/// A server on loopback that answers each request by a function, one per connection. It ends when it is dropped.
pub(crate) struct ScriptedServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

type Script = dyn Fn(&Request, &mut TcpStream) -> io::Result<()> + Send + Sync;

impl ScriptedServer {
    pub(crate) fn start(
        script: impl Fn(&Request, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::start_at("127.0.0.1:0", script)
    }

    pub(crate) fn start_at(
        address: &str,
        script: impl Fn(&Request, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let script: Arc<Script> = Arc::new(script);
        let serve = move |mut stream: TcpStream| {
            let Ok(request) = read_request(&stream) else { return };
            seen.lock().expect("no panic").push(request.clone());
            // A client that goes away in the middle is what these tests are about.
            let _ = script(&request, &mut stream);
            let _ = stream.shutdown(Shutdown::Both);
        };
        Self::listen(address, requests, serve)
    }

    /// A server that does not even speak HTTP, unless `serve` does.
    pub(crate) fn start_raw(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::listen("127.0.0.1:0", Arc::default(), serve)
    }

    fn listen(
        address: &str,
        requests: Arc<Mutex<Vec<Request>>>,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (stop, open) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, streams, serve) = (stop.clone(), open.clone(), Arc::new(serve));
        let thread = std::thread::spawn(move || {
            let mut threads = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let copy = stream.try_clone().expect("a socket can be cloned");
                streams.lock().expect("no panic").push(copy);
                let serve = serve.clone();
                threads.push(std::thread::spawn(move || serve(stream)));
            }
            for thread in threads {
                thread.join().expect("the script does not panic");
            }
        });
        Self { address, requests, open, stop, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/project.git", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic").clone()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        for stream in self.open.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            if !std::thread::panicking() {
                joined.expect("the server did not panic");
            }
        }
    }
}

fn read_request(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { method, path, headers, body })
}

pub(crate) const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
pub(crate) const RESULT: &str = "application/x-git-upload-pack-result";

/// A whole answer with a status line, such as `404 Not Found`, more header lines, and a body.
pub(crate) fn answer(
    stream: &mut TcpStream,
    status: &str,
    headers: &[&str],
    body: &[u8],
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// The head of an answer that ends when the connection does.
pub(crate) fn endless_head(stream: &mut TcpStream, content_type: &str) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {content_type}\r\n\r\n");
    stream.write_all(head.as_bytes())
}

/// A whole answer with the status 200.
pub(crate) fn ok(stream: &mut TcpStream, content_type: &str, body: &[u8]) -> io::Result<()> {
    answer(stream, "200 OK", &[&format!("Content-Type: {content_type}")], body)
}

/// What the server of `repo` truly answers.
pub(crate) fn truth(repo: &TestRepo, request: &Request) -> Vec<u8> {
    let mut command = git_command();
    command.env("GIT_PROTOCOL", request.header("git-protocol").unwrap_or_default());
    command.args(["upload-pack", "--strict", "--stateless-rpc"]);
    if request.is_discovery() {
        command.arg("--http-backend-info-refs");
    }
    let mut child = command
        .arg(repo.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("git can be started");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = stdin.write_all(&request.body);
        });
        child.wait_with_output().expect("git ends").stdout
    })
}

/// Answers with what the server of `repo` would say.
pub(crate) fn answer_truly(
    repo: &TestRepo,
    request: &Request,
    stream: &mut TcpStream,
) -> io::Result<()> {
    let kind = if request.is_discovery() { ADVERTISEMENT } else { RESULT };
    ok(stream, kind, &truth(repo, request))
}

/// Waits until the client goes away.
pub(crate) fn hang(stream: &mut TcpStream) -> io::Result<()> {
    let mut byte = [0; 64];
    while stream.read(&mut byte)? > 0 {}
    Ok(())
}

/// Text as a packet line.
pub(crate) fn packet(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    let mut line = format!("{:04x}", text.len() + 4).into_bytes();
    line.extend_from_slice(text);
    line
}

/// An advertisement of protocol v2 with these features of `fetch`.
pub(crate) fn capabilities(fetch: &str) -> Vec<u8> {
    let lines = ["version 2\n", "agent=script/1\n", "ls-refs\n", fetch, "object-format=sha1\n"];
    let mut body: Vec<u8> = lines.iter().flat_map(packet).collect();
    body.extend_from_slice(b"0000");
    body
}

/// The answer to a fetch that sends this pack.
pub(crate) fn pack_answer(pack: &[u8]) -> Vec<u8> {
    let mut body = packet("packfile\n");
    for part in pack.chunks(60_000) {
        let mut line = vec![1];
        line.extend_from_slice(part);
        body.extend(packet(line));
    }
    body.extend_from_slice(b"0000");
    body
}

/// The pack in the answer to a fetch.
pub(crate) fn pack_of(answer: &[u8]) -> Vec<u8> {
    let (mut pack, mut rest) = (Vec::new(), answer);
    while rest.len() >= 4 {
        let length = std::str::from_utf8(&rest[..4]).expect("hex digits");
        let length = usize::from_str_radix(length, 16).expect("hex digits");
        if length >= 5 && rest[4] == 1 {
            pack.extend_from_slice(&rest[5..length]);
        }
        rest = &rest[length.max(4)..];
    }
    pack
}

/// A server that answers discovery as one that can be probed does, and every request for objects with this.
pub(crate) fn serves_pack(answer: Vec<u8>) -> ScriptedServer {
    ScriptedServer::start(move |request, stream| {
        if request.is_discovery() {
            ok(stream, ADVERTISEMENT, &capabilities("fetch=shallow wait-for-done filter\n"))
        } else {
            ok(stream, RESULT, &answer)
        }
    })
}
