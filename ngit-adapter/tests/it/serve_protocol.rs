//! What the relay says to each message, at the real program, in plain JSON.

use nostr::event::Kind;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::Message;

use crate::{
    serve_support::{Client, HELD, RelayProcess, assert_pushed, push, state_at, until},
    support::TestRepo,
    support_events::{Person, SOME_TIME},
};

async fn notice(client: &mut Client) -> String {
    let said = client.expect().await;
    assert_eq!(said[0], "NOTICE", "{said}");
    said[1].as_str().expect("a text").to_owned()
}

/// R10: what is malformed gets a notice, or its own answer where it names one, and the connection lives on.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_frames_get_an_answer_and_the_connection_lives_on() {
    let relay = RelayProcess::start();
    let mut client = Client::connect(&relay).await;
    let deep = "[".repeat(100_000);
    for bad in [
        "",
        "x",
        "{}",
        "[]",
        "null",
        "[\"EVENT\"]",
        "[\"NOPE\",\"a\"]",
        "[\"REQ\"]",
        "[\"CLOSE\",\"\"]",
        &deep,
        "[\"EVENT\",{}]",
        "\u{0}",
    ] {
        client.send_text(bad).await;
        assert!(notice(&mut client).await.starts_with("invalid: "));
    }
    client.send_frame(Message::binary(vec![0, 159, 146, 150])).await;
    assert!(notice(&mut client).await.contains("not binary"));
    let too_large = format!("[\"REQ\",\"a\",{{\"#d\":[\"{}\"]}}]", "x".repeat(1_100_000));
    client.send_text(too_large).await;
    assert!(notice(&mut client).await.contains("bytes, at most"));
    for (message, word) in [
        (json!(["REQ", "a", {"ids": "x"}]), "CLOSED"),
        (json!(["REQ", "a", {"search": "x"}]), "CLOSED"),
        (json!(["COUNT", "a", 7]), "CLOSED"),
        (json!(["NEG-OPEN", "a", {}]), "NEG-ERR"),
        (json!(["NEG-MSG", "a", "61"]), "NEG-ERR"),
    ] {
        client.send(&message).await;
        let said = client.expect().await;
        assert_eq!((&said[0], &said[1]), (&json!(word), &json!("a")), "{said}");
    }
    assert!(client.request("good", json!({})).await.is_empty());
}

/// R1: an event is answered by its id, whatever is wrong with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_event_is_answered_by_its_id() {
    let (relay, owner) = (RelayProcess::start(), Person::new(1));
    let mut client = Client::connect(&relay).await;
    let good = relay.announcement(&owner, "lantern", &[]);
    let good: Value = serde_json::from_str(&good.as_json()).unwrap();
    let mut tampered = good.clone();
    tampered["content"] = json!("x");
    let mut unsigned = good.clone();
    unsigned["sig"] = json!("0".repeat(128));
    for bad in [tampered, unsigned] {
        client.send(&json!(["EVENT", bad])).await;
        let said = client.expect().await;
        assert_eq!((&said[0], &said[1], &said[2]), (&json!("OK"), &good["id"], &json!(false)));
        assert!(said[3].as_str().unwrap().starts_with("invalid: "), "{said}");
    }
    let future = owner.sign(Kind::RepoState, 4_000_000_000, &[["d", "lantern"]]);
    let (taken, why) = client.publish(&future).await;
    assert!(!taken && why.contains("future"), "{why}");
    for c in ["+refs/heads/*:refs/heads/*", "HEAD", "--upload-pack=x", &"F".repeat(40), ""] {
        let a = format!("30617:{}:lantern", owner.key().to_hex());
        let bad = owner.sign(Kind::GitPullRequest, SOME_TIME, &[["a", &a], ["c", c]]);
        let (taken, why) = client.publish(&bad).await;
        assert!(!taken && why.starts_with("invalid: its `c` tag is no commit"), "{c}: {why}");
    }
}

/// R11: an announcement that does not list this service in both of its lists is refused, with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_has_to_list_this_service() {
    let (relay, owner) = (RelayProcess::start(), Person::new(1));
    let mut client = Client::connect(&relay).await;
    let (own, socket) = (relay.repository_url(&owner, "a"), relay.websocket());
    let other = relay.repository_url(&owner, "b");
    let port = relay.address().port();
    let elsewhere = format!("ws://127.0.0.1:{}", port.wrapping_add(1).max(1));
    let sign = |clone: &str, relays: &str| {
        let tags =
            [vec!["d", "a"], vec!["clone", clone], vec!["relays", "wss://x.example", relays]];
        owner.sign(Kind::GitRepoAnnouncement, SOME_TIME, &tags)
    };
    let npub = owner.npub();
    let foreign = format!("http://127.0.0.1.example.org:{port}/{npub}/a.git");
    let further = format!("https://git.example.org/{npub}/a.git");
    let other_port = own.replace(&format!(":{port}/"), ":1/");
    for clone in ["https://git.example.org/a.git", &foreign, &further, &other_port, &other, ""] {
        let (taken, why) = client.publish(&sign(clone, &socket)).await;
        assert!(!taken && why.starts_with("blocked: its `clone` does not list"), "{clone}: {why}");
    }
    for relays in ["wss://relay.example.org", &elsewhere, &socket.replace("ws:", "http:"), "x"] {
        let (taken, why) = client.publish(&sign(&own, relays)).await;
        assert!(
            !taken && why.starts_with("blocked: its `relays` does not list"),
            "{relays}: {why}"
        );
    }
    client.publish_held(&sign(&own, &format!("{socket}/"))).await;
}

/// What is about nothing that is known is refused; what is about a known repository or a served event is kept and told.
#[tokio::test(flavor = "multi_thread")]
async fn events_about_what_is_known_are_kept() {
    let (relay, owner, guest) = (RelayProcess::start(), Person::new(1), Person::new(2));
    let mut client = Client::connect(&relay).await;
    let a = format!("30617:{}:lantern", owner.key().to_hex());
    let issue = guest.sign(Kind::GitIssue, SOME_TIME, &[["a", &a]]);
    let (taken, why) = client.publish(&issue).await;
    assert!(!taken && why.starts_with("blocked: "), "{why}");
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.request("live", json!({"kinds": [1621, 1111, 1617]})).await;
    assert_eq!(client.publish(&issue).await, (true, String::new()));
    let comment = owner.sign(Kind::Comment, SOME_TIME, &[["E", &issue.id.to_hex()]]);
    let json: Value = serde_json::from_str(&comment.as_json()).unwrap();
    client.send(&json!(["EVENT", json])).await;
    assert_eq!(client.live("live").await, issue.id.to_hex());
    assert_eq!(client.live("live").await, comment.id.to_hex());
    assert_eq!(client.publish(&comment).await, (true, "duplicate: it is here already".to_owned()));
    let note = guest.sign(Kind::TextNote, SOME_TIME, &[["t", "x"]]);
    assert!(!client.publish(&note).await.0);
    let profile = guest.sign(Kind::Metadata, SOME_TIME, &[["t", "x"]]);
    assert!(client.publish(&profile).await.0, "of somebody who has events here");
    let profile = Person::new(9).sign(Kind::Metadata, SOME_TIME, &[["t", "x"]]);
    assert!(!client.publish(&profile).await.0, "of somebody who has none");
    let ephemeral = guest.sign(Kind::from(20_001), SOME_TIME, &[["a", &a]]);
    assert!(!client.publish(&ephemeral).await.0);
    // Its author takes it back.
    let deletion = guest.sign(Kind::EventDeletion, SOME_TIME + 1, &[["e", &issue.id.to_hex()]]);
    assert!(client.publish(&deletion).await.0);
    assert!(client.served(json!({"kinds": [1621]})).await.is_empty());
    let (taken, why) = client.publish(&issue).await;
    assert!(!taken && why.contains("deleted"), "{why}");
}

/// There is no gap and no repetition between what is stored and what is live: while patches come, every subscription
/// sees each of them exactly once.
#[tokio::test(flavor = "multi_thread")]
async fn each_event_comes_once_whether_stored_or_live() {
    let relay = RelayProcess::start_with(
        &["--max-events-per-minute=100000", "--max-messages-per-minute=100000"],
        &[],
    );
    let (owner, author) = (Person::new(1), Person::new(2));
    let mut writer = Client::connect(&relay).await;
    writer.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    let a = format!("30617:{}:lantern", owner.key().to_hex());
    const PATCHES: u32 = 400;
    const READERS: usize = 8;
    const SUBSCRIPTIONS: usize = 20;
    let patches: Vec<_> = (0..PATCHES)
        .map(|number| author.sign(Kind::GitPatch, SOME_TIME + u64::from(number), &[["a", &a]]))
        .collect();
    let mut wanted: Vec<_> = patches.iter().map(|it| it.id.to_hex()).collect();
    wanted.sort();
    let writing = tokio::spawn(async move {
        for patch in &patches {
            let json: Value = serde_json::from_str(&patch.as_json()).unwrap();
            writer.send(&json!(["EVENT", json])).await;
        }
        for patch in &patches {
            assert_eq!(writer.expect().await, json!(["OK", patch.id.to_hex(), true, ""]));
        }
    });
    let readers = (0..READERS).map(|_| async {
        let mut reader = Client::connect(&relay).await;
        let mut seen = std::collections::BTreeMap::<String, Vec<String>>::new();
        let (mut opened, mut heard) = (0, 0);
        // Subscriptions are opened one after the other while patches come.
        while opened < SUBSCRIPTIONS || heard < SUBSCRIPTIONS * wanted.len() {
            if opened < SUBSCRIPTIONS && heard >= opened * 40 {
                reader.send(&json!(["REQ", format!("s{opened}"), {"kinds": [1617]}])).await;
                opened += 1;
            }
            let said = reader.expect().await;
            if said[0] == "EVENT" {
                let name = said[1].as_str().unwrap().to_owned();
                seen.entry(name).or_default().push(said[2]["id"].as_str().unwrap().to_owned());
                heard += 1;
            }
        }
        // Whatever came twice would come before this answer.
        reader.send(&json!(["COUNT", "end", {"kinds": [1617]}])).await;
        let said = reader.expect().await;
        assert!(matches!(said[0].as_str(), Some("COUNT" | "EOSE")), "{said}");
        seen
    });
    for seen in futures::future::join_all(readers).await {
        assert_eq!(seen.len(), SUBSCRIPTIONS);
        for (name, mut ids) in seen {
            ids.sort();
            assert_eq!(ids, wanted, "{name}");
        }
    }
    writing.await.expect("all were taken");
}

/// R10: there is a limit on subscriptions; with 1,000 of them on, each is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_subscriptions_are_told_and_one_more_is_refused() {
    let relay = RelayProcess::start_with(&["--max-messages-per-minute=100000"], &[]);
    let (owner, author) = (Person::new(1), Person::new(2));
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    for number in 0..1_000 {
        client.request(&format!("s{number}"), json!({"kinds": [1617]})).await;
    }
    client.send(&json!(["REQ", "one more", {}])).await;
    let said = client.expect().await;
    assert_eq!((&said[0], &said[1]), (&json!("CLOSED"), &json!("one more")), "{said}");
    let a = format!("30617:{}:lantern", owner.key().to_hex());
    let patch = author.sign(Kind::GitPatch, SOME_TIME, &[["a", &a]]);
    let mut other = Client::connect(&relay).await;
    assert!(other.publish(&patch).await.0);
    let mut told = std::collections::HashSet::new();
    for _ in 0..1_000 {
        let said = client.expect().await;
        assert_eq!((&said[0], &said[2]["id"]), (&json!("EVENT"), &json!(patch.id.to_hex())));
        told.insert(said[1].to_string());
    }
    assert_eq!(told.len(), 1_000);
    client.send(&json!(["CLOSE", "s0"])).await;
    assert_eq!(client.request("one more", json!({"limit": 1})).await.len(), 1);
}

/// R10: a client that sends more than its share is told, and read more slowly; nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_too_much_is_read_more_slowly() {
    let relay = RelayProcess::start_with(&["--max-messages-per-minute=60"], &[]);
    let mut client = Client::connect(&relay).await;
    let begun = std::time::Instant::now();
    for number in 0..62 {
        client.send(&json!(["COUNT", format!("c{number}"), {}])).await;
    }
    let (mut counts, mut notices) = (0, 0);
    while counts < 62 {
        match client.expect().await[0].as_str() {
            Some("COUNT") => counts += 1,
            Some("NOTICE") => notices += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(notices, 1);
    assert!(begun.elapsed() >= std::time::Duration::from_millis(1_900), "{:?}", begun.elapsed());
}

/// R5: of two states of one author the newer one is kept; an older one is refused with a word for machines.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_state_is_refused() {
    let (relay, owner, dir) = (RelayProcess::start(), Person::new(1), TempDir::new().unwrap());
    let source = TestRepo::init(dir.path().join("source.git"));
    let (one, two) = (source.commit("main", "a", "1"), source.commit("main", "a", "2"));
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    let newer = state_at(&owner, "lantern", 5, &[("refs/heads/main", two)]);
    let older = state_at(&owner, "lantern", 4, &[("refs/heads/main", one)]);
    client.publish_held(&newer).await;
    let (taken, why) = client.publish(&older).await;
    assert!(!taken && why.starts_with("replaced: "), "{why}");
    assert_eq!(client.publish(&newer).await, (true, "duplicate: it is here already".to_owned()));
    assert_pushed(&push(&source, &relay.repository_url(&owner, "lantern"), &["main"]));
    assert_eq!(client.served(json!({"kinds": [30618]})).await, [newer.id.to_hex()]);
}

/// R6: what is held too long goes, and may be sent again by its author.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_too_long_goes() {
    let (relay, owner) = (RelayProcess::start_with(&["--hold-secs=1"], &[]), Person::new(1));
    let mut client = Client::connect(&relay).await;
    let announcement = relay.announcement(&owner, "lantern", &[]);
    client.publish_held(&announcement).await;
    until("it is given up", || relay.log().contains("held events given up")).await;
    assert_eq!(client.publish(&announcement).await, (true, HELD.to_owned()));
}
