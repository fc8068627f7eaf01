//! The ways to hear from another relay, each with the real program at both ends.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use nostr::event::Event;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    peers_support::{
        Passed, ScriptedPeer, announcement_for, patch, relay_with, relay_with_peers, served,
        stand_between,
    },
    serve_support::{Client, RelayProcess, assert_pushed, push, state_at, until},
    support::TestRepo,
    support_events::Person,
    support_server::TestServer,
};

/// R9, P14: a pull request whose commit lies only where its author says: the other relay fetches it there.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_with_a_source_of_its_own() {
    let first = RelayProcess::start_with(&crate::peers_support::EAGER, &[]);
    let second = relay_with_peers(&[first.websocket()]);
    let (dir, owner, contributor) = (TempDir::new().unwrap(), Person::new(1), Person::new(2));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let fork = TestRepo::init(dir.path().join("fork.git"));
    fork.commit("main", "a", "1");
    let tip = fork.commit("main", "b", "2");
    let server = TestServer::start("127.0.0.1", dir.path());
    let pull = contributor.pull_request(&owner, "lantern", tip, &[&server.url("fork.git")]);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    let mut client = Client::connect(&first).await;
    client.publish_held(&announcement_for(&[&first, &second], &owner, "lantern", &[])).await;
    client.publish_held(&state).await;
    assert_pushed(&push(&source, &first.repository_url(&owner, "lantern"), &["main"]));
    client.publish_held(&pull).await;
    served(&second, &state).await;
    served(&second, &pull).await;
    let repository = second.repository(&owner, "lantern");
    assert_eq!(repository.ref_oid("main"), Some(main));
    let name = format!("refs/nostr/{}", pull.id.to_hex());
    assert_eq!(repository.ref_oid(&name), Some(tip));
    // It came live, so the event has to have been told again: the first relay did not forget it either.
    served(&first, &pull).await;
}

/// What the second relay has to end up with, whatever stands between: what was there before, and what comes live.
async fn learns_through(
    front: &ScriptedPeer,
    first: &RelayProcess,
    more: &[Event],
) -> RelayProcess {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    // The announcement names the first relay, too: it shall not be asked but through what stands between.
    let second = relay_with(&[front.url()], &["--max-peers=1"]);
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    let mut client = Client::connect(first).await;
    client.publish_held(&announcement_for(&[first, &second], &owner, "lantern", &[])).await;
    for event in more {
        assert!(client.publish(event).await.0);
    }
    client.publish_held(&state).await;
    let url = first.repository_url(&owner, "lantern");
    assert_pushed(&push(&source, &url, &["main"]));
    served(&second, &state).await;
    for event in more {
        served(&second, event).await;
    }
    let newer = source.commit("main", "b", "2");
    let state = state_at(&owner, "lantern", 5, &[("refs/heads/main", newer)]);
    client.publish_held(&state).await;
    assert_pushed(&push(&source, &url, &["main"]));
    served(&second, &state).await;
    assert_eq!(second.repository(&owner, "lantern").ref_oid("main"), Some(newer));
    second
}

/// R9: where NIP-77 is refused, the peer is asked by REQ.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_without_nip_77() {
    let first = RelayProcess::start();
    let url = first.websocket();
    let front = ScriptedPeer::start(move |_, socket| {
        let refuse = |message: &serde_json::Value| match message[0].as_str() {
            Some("NEG-OPEN") => Passed::Back(json!(["NEG-ERR", message[1], "blocked: not here"])),
            _ => Passed::On,
        };
        stand_between(socket, url.clone(), refuse, |_| Passed::On)
    })
    .await;
    let second = learns_through(&front, &first, &[]).await;
    until("it is said how", || second.log().contains("by=\"REQ\"")).await;
    assert!(!second.log().contains("NIP-77"), "{}", second.log());
}

/// R9: a peer that does not know the message says so in a notice: that is a refusal, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_has_never_heard_of_nip_77() {
    let first = RelayProcess::start();
    let url = first.websocket();
    let front = ScriptedPeer::start(move |_, socket| {
        let refuse = |message: &serde_json::Value| match message[0].as_str() {
            Some("NEG-OPEN") => Passed::Back(json!(["NOTICE", "unknown message"])),
            _ => Passed::On,
        };
        stand_between(socket, url.clone(), refuse, |_| Passed::On)
    })
    .await;
    let second = learns_through(&front, &first, &[]).await;
    until("it is said how", || second.log().contains("by=\"REQ\"")).await;
}

/// R9: a peer that vanishes half way through its answers, twice, and comes back: what is missing comes then.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_vanishes_half_way_and_comes_back() {
    let first = RelayProcess::start();
    let (owner, author) = (Person::new(1), Person::new(2));
    let patches: Vec<_> = (0..20).map(|it| patch(&author, &owner, "lantern", it)).collect();
    let (url, cuts) = (first.websocket(), Arc::new(AtomicUsize::new(0)));
    let cut = Arc::clone(&cuts);
    let front = ScriptedPeer::start(move |_, socket| {
        let (cut, mut told) = (Arc::clone(&cut), 0);
        let cut_off = move |message: &serde_json::Value| {
            told += usize::from(message[0] == "EVENT");
            // Two connections end with their fifth event.
            if told < 5 || cut.load(Ordering::Relaxed) == 2 {
                return Passed::On;
            }
            cut.fetch_add(1, Ordering::Relaxed);
            Passed::Cut
        };
        stand_between(socket, url.clone(), |_| Passed::On, cut_off)
    })
    .await;
    learns_through(&front, &first, &patches).await;
    assert_eq!(cuts.load(Ordering::Relaxed), 2);
}

/// R9, P6: of three relays one has the state's data, another one the pull request's: the third learns both events and has
/// all of it.
#[tokio::test(flavor = "multi_thread")]
async fn partial_data_over_three_relays() {
    let (first, second) = (RelayProcess::start(), RelayProcess::start());
    let third = relay_with_peers(&[first.websocket(), second.websocket()]);
    let (dir, owner, contributor) = (TempDir::new().unwrap(), Person::new(1), Person::new(2));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    source.set_branch("change", main);
    let tip = source.commit("change", "b", "2");
    let announcement = announcement_for(&[&first, &second, &third], &owner, "lantern", &[]);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    let pull = contributor.pull_request(&owner, "lantern", tip, &[]);

    let mut client = Client::connect(&first).await;
    client.publish_held(&announcement).await;
    client.publish_held(&state).await;
    assert_pushed(&push(&source, &first.repository_url(&owner, "lantern"), &["main"]));
    let mut client = Client::connect(&second).await;
    client.publish_held(&announcement).await;
    client.publish_held(&pull).await;
    let to = format!("change:refs/nostr/{}", pull.id.to_hex());
    assert_pushed(&push(&source, &second.repository_url(&owner, "lantern"), &[&to]));

    served(&third, &state).await;
    served(&third, &pull).await;
    let repository = third.repository(&owner, "lantern");
    assert_eq!(repository.ref_oid("main"), Some(main));
    assert_eq!(repository.ref_oid(&format!("refs/nostr/{}", pull.id.to_hex())), Some(tip));
    assert!(repository.is_complete(tip));
}

/// R9: relays that served announcements name are peers, too: nobody has to set anything, and nobody asks itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_relays_of_an_announcement_are_peers() {
    let first = RelayProcess::start();
    let second = RelayProcess::start();
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let announcement = announcement_for(&[&first, &second], &owner, "lantern", &[]);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    // Published at both; pushed to the second, which serves the announcement then, and hears what the first one is told later.
    for relay in [&first, &second] {
        let mut client = Client::connect(relay).await;
        client.publish_held(&announcement).await;
        client.publish_held(&state).await;
    }
    assert_pushed(&push(&source, &second.repository_url(&owner, "lantern"), &["main"]));
    let patch = patch(&Person::new(2), &owner, "lantern", 3);
    let mut client = Client::connect(&first).await;
    assert!(client.publish(&patch).await.0);
    served(&second, &patch).await;
    let peers = || -> Vec<String> {
        let page = second.get("/").text();
        let table = page.split("id=\"peers\"").nth(1).unwrap_or_default();
        let rows = table.lines().filter_map(|line| line.strip_prefix("<tr><td>ws://"));
        rows.filter_map(|row| Some(row.split_once("</td>")?.0.to_owned())).collect()
    };
    assert_eq!(peers(), [format!("{}/", first.address())]);
    let live = || second.get("/metrics").text().contains("ngit_relay_peers{state=\"live\"} 1");
    until("it is counted", live).await;
}
