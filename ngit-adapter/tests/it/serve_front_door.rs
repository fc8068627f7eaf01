//! The front door under attack: paths, names, slow and rude clients.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use nostr::event::Kind;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    serve_support::{Answer, Client, RelayProcess, assert_pushed, clone, push, stderr},
    support::TestRepo,
    support_events::{Person, SOME_TIME},
};

/// G11: whatever an identifier is made of, it is pushed and cloned by its URL, and lies inside the folder.
#[tokio::test(flavor = "multi_thread")]
async fn any_identifier_is_pushed_and_cloned() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let mut client = Client::connect(&relay).await;
    let long = "é".repeat(300);
    let identifiers = [
        "a:b",
        "a/b",
        "../../etc/passwd",
        "..",
        ".",
        ".git",
        "a.git",
        " ",
        "%2e%2e",
        "a?b#c&d=e",
        "\\..\\x",
        ".hidden",
        "日本 🏮",
        &long,
    ];
    for (at, identifier) in identifiers.into_iter().enumerate() {
        client.publish_held(&relay.announcement(&owner, identifier, &[])).await;
        client.publish_held(&owner.state(identifier, &[("refs/heads/main", main)])).await;
        let url = relay.repository_url(&owner, identifier);
        assert_pushed(&push(&source, &url, &["main"]));
        let to = dir.path().join(format!("clone{at}.git"));
        let cloned = clone(&url, &to, &[]);
        assert!(cloned.status.success(), "{identifier:?}: {}", stderr(&cloned));
        assert_eq!(TestRepo::open(to).ref_oid("main"), Some(main), "{identifier:?}");
    }
    // What is too long for a URL is too long for an announcement that has to list it. The reason stays short.
    for too_long in ["é".repeat(2_500), "x".repeat(10_240), "x".repeat(100_000)] {
        let (taken, why) = client.publish(&relay.announcement(&owner, &too_long, &[])).await;
        assert!(!taken && why.len() < 600, "{} bytes", why.len());
    }
    // Git itself takes no URL with a newline.
    client.publish_held(&relay.announcement(&owner, "a\nb", &[])).await;
    let path = format!("/{}/a%0Ab.git/info/refs?service=git-receive-pack", owner.npub());
    assert_eq!(relay.get(&path).status, 200);
    let folders = std::fs::read_dir(relay.git_data().join(owner.npub())).unwrap().count();
    assert_eq!(folders, identifiers.len());
    let mut all: Vec<_> = std::fs::read_dir(relay.git_data())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    assert_eq!(all, [".quarantine".to_owned(), owner.npub()]);
}

/// G11: no spelling of a path leads out of the folder, or to a repository by another name than its own.
#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_elsewhere() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", main)])).await;
    assert_pushed(&push(&source, &relay.repository_url(&owner, "lantern"), &["main"]));
    // A repository outside of the folder of repositories, where a path could lead.
    std::fs::create_dir_all(relay.git_data().parent().unwrap().join("outside.git")).unwrap();
    TestRepo::init(relay.git_data().parent().unwrap().join("outside.git"));
    let npub = owner.npub();
    let query = "info/refs?service=git-upload-pack";
    assert_eq!(relay.get(&format!("/{npub}/lantern.git/{query}")).status, 200);
    let paths = [
        format!("/{npub}/lantern/{query}"),
        format!("/{npub}/lantern.git.git/{query}"),
        format!("/{npub}/../outside.git/{query}"),
        format!("/{npub}/..%2Foutside.git/{query}"),
        format!("/{npub}/%2e%2e%2foutside.git/{query}"),
        format!("/{npub}/%2e%2e/outside.git/{query}"),
        format!("/{npub}/..%5Coutside.git/{query}"),
        format!("/{npub}/%252e%252e%252foutside.git/{query}"),
        format!("/{npub}//lantern.git/{query}"),
        format!("//{npub}/lantern.git/{query}"),
        format!("/{npub}/lantern.git%00/{query}"),
        format!("/{npub}/lantern%00.git/{query}"),
        format!("/{npub}/%ff.git/{query}"),
        format!("/{npub}/%zz.git/{query}"),
        format!("/{}/lantern.git/{query}", npub.to_uppercase()),
        format!("/{}/lantern.git/{query}", owner.key().to_hex()),
        format!("/../outside.git/{query}"),
        format!("/outside.git/{query}"),
        format!("/.quarantine/lock.git/{query}"),
        format!("/{npub}/lantern.git/config"),
        format!("/{npub}/lantern.git/objects/info/packs"),
        format!("/{npub}/lantern.git/info/refs"),
        format!("/{npub}/{}.git/{query}", "a".repeat(10_000)),
        format!("/{npub}/{}.git/{query}", "%41".repeat(10_000)),
    ];
    for path in paths {
        let status = relay.get(&path).status;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    for (method, path) in
        [("PUT", "/x"), ("DELETE", "/"), ("POST", "/"), ("GET", "/x"), ("POST", "/metrics")]
    {
        let status = relay.request(method, path, &[], b"").status;
        assert!((400..500).contains(&status), "{method} {path}: {status}");
    }
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&"[/.%a-f0-9\\-_~:@!$&'()*+,;=]{1,80}", |path| {
            let answer = relay.get(&format!("/{path}/{query}"));
            prop_assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
            Ok(())
        })
        .unwrap();
}

/// GRASP-01: pages of any origin may ask, on every path and whatever the answer is.
#[tokio::test(flavor = "multi_thread")]
async fn any_origin_may_ask() {
    let relay = RelayProcess::start();
    for path in ["/", "/healthz", "/metrics", "/nothing/here", "/npub1x/a.git/info/refs"] {
        for method in ["GET", "OPTIONS"] {
            let answer = relay.request(method, path, &[("Origin", "https://x.example")], b"");
            assert!(
                answer.head.contains("access-control-allow-origin: *"),
                "{method} {path}: {}",
                answer.head
            );
            assert!(
                answer.head.contains("access-control-allow-methods: get, post"),
                "{}",
                answer.head
            );
            assert!(method == "GET" || answer.status == 204, "{path}: {}", answer.status);
        }
    }
    let document = relay.request("GET", "/", &[("Accept", "application/nostr+json")], b"");
    let document: serde_json::Value = serde_json::from_slice(&document.body).unwrap();
    assert_eq!(document["supported_grasps"], json!(["GRASP-01"]));
    assert!(document["supported_nips"].as_array().unwrap().contains(&json!(77)));
    assert_eq!(document["limitation"]["max_subscriptions"], 1_000);
}

/// G4: a bomb in a push's body ends at a limit, and so does a head without end.
#[tokio::test(flavor = "multi_thread")]
async fn rude_requests_are_refused() {
    let (relay, owner) = (RelayProcess::start(), Person::new(1));
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    let path = format!("/{}/lantern.git/git-receive-pack", owner.npub());
    let kind = ("Content-Type", "application/x-git-receive-pack-request");
    let post = |headers: &[(&str, &str)], body: &[u8]| relay.request("POST", &path, headers, body);
    assert_eq!(post(&[], b"0000").status, 415);
    assert_eq!(post(&[kind, ("Content-Encoding", "br")], b"0000").status, 415);
    assert_eq!(post(&[kind, ("Content-Encoding", "gzip")], b"nonsense").status, 400);
    assert_eq!(post(&[kind], b"zzzz").status, 400);
    assert_eq!(post(&[kind], b"0032 no command at all, just words of some length").status, 400);
    let probe = post(&[kind], b"0000");
    assert_eq!((probe.status, probe.body.len()), (200, 0));
    let mut many = Vec::new();
    for number in 0..10_001 {
        let line = format!("{} {} refs/heads/b{number}", "0".repeat(40), "1".repeat(40));
        many.extend(format!("{:04x}{line}", line.len() + 4).into_bytes());
    }
    many.extend(b"0000");
    let answer = post(&[kind], &many);
    assert_eq!(answer.status, 400, "{}", answer.text());
    let endless = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200_000));
    let answer = Answer::read(relay.address(), endless.as_bytes());
    assert!((400..500).contains(&answer.status));
}

/// R10: clients that open connections and say nothing, or drip, hold up nobody; over the limit they wait, and those who end make room.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_hold_up_nobody() {
    let relay = RelayProcess::start_with(&["--max-connections=40"], &[]);
    let mut slow: Vec<TcpStream> = Vec::new();
    for _ in 0..30 {
        let mut stream = TcpStream::connect(relay.address()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").unwrap();
        slow.push(stream);
    }
    assert_eq!(relay.get("/healthz").text(), "ok\n");
    let mut client = Client::connect(&relay).await;
    assert!(client.request("a", json!({})).await.is_empty());
    for _ in 0..30 {
        slow.push(TcpStream::connect(relay.address()).unwrap());
    }
    // A client that is in already goes on; one more waits until some go.
    assert!(client.request("b", json!({})).await.is_empty());
    let mut waiting = TcpStream::connect(relay.address()).unwrap();
    waiting.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "there is no room yet");
    drop(slow);
    waiting.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
}

/// R10: a client that asks for much and reads nothing is cut off by itself, and others are served meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_holds_up_nobody() {
    let relay = RelayProcess::start_with(
        &["--max-events-per-minute=100000", "--max-messages-per-minute=100000"],
        &[],
    );
    let (owner, author) = (Person::new(1), Person::new(2));
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    let a = format!("30617:{}:lantern", owner.key().to_hex());
    let text = "x".repeat(200_000);
    for number in 0..20 {
        let patch =
            author.sign(Kind::GitPatch, SOME_TIME + number, &[vec!["a", &a], vec!["x", &text]]);
        assert!(client.publish(&patch).await.0);
    }
    let mut deaf = Client::connect(&relay).await;
    for number in 0..20 {
        deaf.send(&json!(["REQ", format!("d{number}"), {}])).await;
    }
    for number in 0..10 {
        assert_eq!(client.served(json!({"kinds": [1617], "limit": 3})).await.len(), 3, "{number}");
    }
    assert_eq!(relay.get("/healthz").text(), "ok\n");
    drop(deaf);
}
