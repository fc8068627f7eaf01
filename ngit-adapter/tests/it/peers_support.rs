//! Relays that hear from each other.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::{net::SocketAddr, time::Duration};

use futures::{SinkExt, StreamExt};
use ngit_adapter::relay::{Backend, PeerSettings, Relay, RelayConfig};
use nostr::{
    event::{Event, Kind},
    filter::{Filter, MatchEventOptions},
};
use purgatory_sync::keyed_debounce::Exponential;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};
use tokio_tungstenite::{WebSocketStream, accept_async, connect_async, tungstenite::Message};

use crate::{
    e2e_support::announcement_on,
    serve_support::{Answer, Client, PATIENCE, RelayProcess},
    support_events::{Person, SOME_TIME},
};

/// Settings under which a relay hunts at once, for events of clients too.
pub(crate) const EAGER: [&str; 2] = ["--sync-default-delay-secs=1", "--sync-loop-interval-ms=50"];

/// A relay whose peers are these, beside those that announcements name.
pub(crate) fn relay_with_peers(peers: &[String]) -> RelayProcess {
    relay_with(peers, &[])
}

/// And with these arguments.
pub(crate) fn relay_with(peers: &[String], args: &[&str]) -> RelayProcess {
    let bootstrap = format!("--bootstrap-relay-url={}", peers.join(","));
    RelayProcess::start_with(&[&[bootstrap.as_str()], &EAGER[..], args].concat(), &[])
}

/// An announcement that lists all of these relays, and then these clone URLs.
pub(crate) fn announcement_for(
    relays: &[&RelayProcess],
    owner: &Person,
    identifier: &str,
    urls: &[&str],
) -> Event {
    let urls: Vec<_> = urls.iter().map(|url| (*url).to_owned()).collect();
    announcement_on(relays, owner, identifier, &urls, 0)
}

/// Waits until the relay serves this event.
pub(crate) async fn served(relay: &RelayProcess, event: &Event) {
    served_at(&relay.websocket(), event).await;
}

async fn served_at(url: &str, event: &Event) {
    let mut client = Client::connect_to(url).await;
    let id = event.id.to_hex();
    // First the subscription, so that it is told if it comes later.
    if !client.request("served", json!({"ids": [id]})).await.contains(&id) {
        assert_eq!(client.live("served").await, id);
    }
}

/// A peer's end of a websocket.
pub(crate) type PeerSocket = WebSocketStream<TcpStream>;

/// A relay that does what a script says, in this test. Each connection is given to the script with its number.
pub(crate) struct ScriptedPeer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl ScriptedPeer {
    pub(crate) async fn start<S, F>(script: S) -> Self
    where
        S: Fn(usize, PeerSocket) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let task = tokio::spawn(async move {
            let mut scripts = JoinSet::new();
            for number in 0.. {
                let (stream, _) = listener.accept().await.expect("connections come");
                if let Ok(socket) = accept_async(stream).await {
                    scripts.spawn(script(number, socket));
                }
            }
        });
        Self { address, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ScriptedPeer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the relay says next; none once it has closed.
pub(crate) async fn hear(socket: &mut PeerSocket) -> Option<Value> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => {
                return Some(serde_json::from_str(&text).expect("the relay speaks JSON"));
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            Some(Ok(_)) => {}
        }
    }
}

/// Says something. Whether it could be said.
pub(crate) async fn say(socket: &mut PeerSocket, message: &Value) -> bool {
    socket.send(Message::text(message.to_string())).await.is_ok()
}

pub(crate) fn as_json(event: &Event) -> Value {
    serde_json::from_str(&event.as_json()).expect("an event is JSON")
}

/// What an honest relay with these events, and without NIP-77, answers.
pub(crate) fn honest(message: &Value, events: &[Event]) -> Vec<Value> {
    let id = &message[1];
    match message[0].as_str() {
        Some("REQ") => {
            let mut answers = Vec::new();
            for filter in message.as_array().expect("a message").iter().skip(2) {
                let filter: Filter = serde_json::from_value(filter.clone()).expect("a filter");
                let fits = |it: &&Event| filter.match_event(it, MatchEventOptions::new());
                let most = filter.limit.unwrap_or(500);
                let mut fitting: Vec<_> = events.iter().filter(fits).collect();
                fitting.sort_by_key(|it| std::cmp::Reverse(it.created_at));
                let fitting = fitting.into_iter().take(most);
                answers.extend(fitting.map(|it| json!(["EVENT", id, as_json(it)])));
            }
            answers.push(json!(["EOSE", id]));
            answers
        }
        Some("NEG-OPEN") => vec![json!(["NEG-ERR", id, "unsupported: no NIP-77 here"])],
        _ => Vec::new(),
    }
}

/// Answers as an honest relay does, until the connection ends.
pub(crate) async fn answer_honestly(socket: &mut PeerSocket, events: &[Event]) {
    while let Some(message) = hear(socket).await {
        for answer in honest(&message, events) {
            if !say(socket, &answer).await {
                return;
            }
        }
    }
}

/// Stands between a relay and its peer: passes on what `from_client` and `from_peer` let through. What they give is sent on, or
/// back, instead; nothing ends the connection.
pub(crate) async fn stand_between(
    mut client: PeerSocket,
    peer: String,
    mut from_client: impl FnMut(&Value) -> Passed,
    mut from_peer: impl FnMut(&Value) -> Passed,
) {
    let Ok((mut relay, _)) = connect_async(peer).await else { return };
    loop {
        let (frame, is_client) = tokio::select! {
            frame = client.next() => (frame, true),
            frame = relay.next() => (frame, false),
        };
        let Some(Ok(frame)) = frame else { return };
        let passed = match &frame {
            Message::Text(text) => {
                let message = serde_json::from_str(text).expect("both speak JSON");
                if is_client { from_client(&message) } else { from_peer(&message) }
            }
            _ => Passed::On,
        };
        let sent = match passed {
            Passed::On if is_client => relay.send(frame).await,
            Passed::On => client.send(frame).await,
            Passed::Back(answer) => client.send(Message::text(answer.to_string())).await,
            Passed::Cut => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// What becomes of a message on its way.
pub(crate) enum Passed {
    On,
    Back(Value),
    Cut,
}

/// A relay in this process, with settings that no operator needs.
pub(crate) struct Here {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    _dir: TempDir,
}

impl Here {
    /// With these bootstrap relays. Nothing takes long.
    pub(crate) async fn open(peers: &[String], adjust: impl FnOnce(&mut PeerSettings)) -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let domain = address.to_string().parse().expect("an address is a name");
        let mut config = RelayConfig::new(domain, dir.path().join("git"), dir.path().join("relay"));
        config.backend = Backend::Memory;
        config.allow_private_networks = true;
        config.peers.bootstrap = peers.iter().map(|it| it.parse().expect("a URL")).collect();
        config.peers.idle_timeout = PATIENCE;
        config.peers.reconnect =
            Exponential::new(Duration::from_millis(20), 2, Duration::from_millis(100));
        adjust(&mut config.peers);
        let relay = Relay::open(config).await.expect("it can be opened");
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(relay.serve(listener, async {
            let _ = stopped.await;
        }));
        Self { address, stop: Some(stop), task: Some(task), _dir: dir }
    }

    pub(crate) fn websocket(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub(crate) fn page(&self) -> String {
        let request =
            format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        Answer::read(self.address, request.as_bytes()).text()
    }

    /// An announcement that lists this relay alone.
    pub(crate) fn announcement(&self, owner: &Person, identifier: &str) -> Event {
        let id = ngit_adapter::RepositoryId::new(owner.key(), identifier.into());
        let tags = [
            vec!["d".to_owned(), identifier.to_owned()],
            vec!["clone".to_owned(), format!("http://{}{}", self.address, id.url_path())],
            vec!["relays".to_owned(), self.websocket()],
        ];
        owner.sign(Kind::GitRepoAnnouncement, SOME_TIME, &tags)
    }

    /// Whether it serves these, now.
    pub(crate) async fn serves(&self, events: &[&Event]) -> bool {
        let mut client = Client::connect_to(&self.websocket()).await;
        let ids: Vec<_> = events.iter().map(|it| it.id.to_hex()).collect();
        client.served(json!({"ids": ids})).await.len() == events.len()
    }

    /// Waits until it serves this event.
    pub(crate) async fn served(&self, event: &Event) {
        served_at(&self.websocket(), event).await;
    }

    /// Ends it, and waits for its end.
    pub(crate) async fn end(mut self) {
        drop(self.stop.take());
        self.task.take().expect("it runs").await.expect("it does not panic");
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// A patch to a repository: it carries its data, so it is served at once.
pub(crate) fn patch(author: &Person, owner: &Person, identifier: &str, number: u64) -> Event {
    let a = format!("30617:{}:{identifier}", owner.key().to_hex());
    let tags = [vec!["a".to_owned(), a], vec!["n".to_owned(), number.to_string()]];
    author.sign(Kind::GitPatch, SOME_TIME + number, &tags)
}
