//! A nostr client that is not ours, at the real program.

use std::time::Duration;

use negentropy::{Id, Negentropy, NegentropyStorageVector};
use nostr::event::{Event, Kind};
use nostr_sdk::{Client as Sdk, JsonUtil, RelayPoolNotification};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    serve_support::{Client, HELD, PATIENCE, RelayProcess, assert_pushed, push},
    support::TestRepo,
    support_events::{Person, SOME_TIME},
};

/// The same event in the version of the other client.
fn theirs(event: &Event) -> nostr_sdk::Event {
    nostr_sdk::Event::from_json(event.as_json()).expect("an event is an event")
}

async fn sdk(relay: &RelayProcess) -> Sdk {
    let options = nostr_sdk::prelude::MemoryDatabaseOptions { events: true, max_events: None };
    let database = nostr_sdk::prelude::MemoryDatabase::with_opts(options);
    let client = Sdk::builder().database(database).build();
    client.add_relay(relay.websocket()).await.expect("a relay's URL");
    client.connect().await;
    client.wait_for_connection(PATIENCE).await;
    client
}

fn patch(author: &Person, owner: &Person, number: u64) -> Event {
    let a = format!("30617:{}:lantern", owner.key().to_hex());
    let tags = [vec!["a".to_owned(), a], vec!["n".to_owned(), number.to_string()]];
    author.sign(Kind::GitPatch, SOME_TIME + number % 97, &tags)
}

/// R2, R3, R9: it publishes, is told that its state is held, is told the state live once the push came, finds it when
/// it asks, and reconciles.
#[tokio::test(flavor = "multi_thread")]
async fn another_client_publishes_subscribes_and_reconciles() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let announcement = theirs(&relay.announcement(&owner, "lantern", &[]));
    let state = theirs(&owner.state("lantern", &[("refs/heads/main", main)]));

    let client = sdk(&relay).await;
    let mut notifications = client.notifications();
    let states = nostr_sdk::Filter::new().kind(nostr_sdk::Kind::from(30_618));
    client.subscribe(states.clone(), None).await.expect("it can subscribe");
    for event in [&announcement, &state] {
        let sent = client.send_event(event).await.expect("it is taken");
        assert!(sent.failed.is_empty() && sent.success.len() == 1, "{sent:?}");
    }
    let mut said = Vec::new();
    while said.len() < 2 {
        let next = tokio::time::timeout(PATIENCE, notifications.recv()).await.expect("an OK comes");
        if let Ok(RelayPoolNotification::Message { message, .. }) = next
            && let nostr_sdk::RelayMessage::Ok { message, .. } = message
        {
            said.push(message.into_owned());
        }
    }
    assert_eq!(said, [HELD, HELD]);
    assert!(client.fetch_events(states.clone(), PATIENCE).await.unwrap().is_empty());

    // Another one hears of it: whoever sent an event is not told it again by this client's own rules.
    let listener = sdk(&relay).await;
    let mut notifications = listener.notifications();
    listener.subscribe(states.clone(), None).await.expect("it can subscribe");
    assert_pushed(&push(&source, &relay.repository_url(&owner, "lantern"), &["main"]));
    loop {
        let next = tokio::time::timeout(PATIENCE, notifications.recv()).await.expect("it is told");
        if let Ok(RelayPoolNotification::Event { event, .. }) = next {
            assert_eq!(event.id, state.id);
            break;
        }
    }
    let found = client.fetch_events(states, PATIENCE).await.unwrap();
    assert_eq!(found.into_iter().map(|it| it.id).collect::<Vec<_>>(), [state.id]);

    let fresh = sdk(&relay).await;
    let all = nostr_sdk::Filter::new().kinds([30_617, 30_618].map(nostr_sdk::Kind::from));
    let options =
        nostr_sdk::prelude::SyncOptions::default().initial_timeout(Duration::from_secs(30));
    let synced = fresh.sync(all, &options).await.expect("it reconciles");
    let received: std::collections::HashSet<_> = [announcement.id, state.id].into();
    assert_eq!(synced.val.received, received, "{synced:?}");
    for client in [client, listener, fresh] {
        client.shutdown().await;
    }
}

/// R9: a reconciliation takes several rounds, and finds exactly the difference.
#[tokio::test(flavor = "multi_thread")]
async fn a_reconciliation_of_many_events_takes_several_rounds() {
    let relay = RelayProcess::start_with(
        &["--max-events-per-minute=100000", "--max-messages-per-minute=100000"],
        &[],
    );
    let (owner, author) = (Person::new(1), Person::new(2));
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    let patches: Vec<_> = (0..1_200).map(|number| patch(&author, &owner, number)).collect();
    for patch in &patches {
        let json: serde_json::Value = serde_json::from_str(&patch.as_json()).unwrap();
        client.send(&json!(["EVENT", json])).await;
    }
    for patch in &patches {
        assert_eq!(client.expect().await, json!(["OK", patch.id.to_hex(), true, ""]));
    }
    client.send(&json!(["COUNT", "count", {"kinds": [1617]}])).await;
    assert_eq!(client.expect().await, json!(["COUNT", "count", {"count": 1_200}]));

    let mut storage = NegentropyStorageVector::new();
    for patch in patches.iter().step_by(3) {
        storage
            .insert(patch.created_at.as_secs(), Id::from_byte_array(patch.id.to_bytes()))
            .unwrap();
    }
    let only_here = patch(&author, &owner, 4_000);
    storage
        .insert(only_here.created_at.as_secs(), Id::from_byte_array(only_here.id.to_bytes()))
        .unwrap();
    storage.seal().unwrap();
    let mut ours = Negentropy::owned(storage, 4_096).unwrap();
    let (mut have, mut need) = (Vec::new(), Vec::new());
    let first = hex(&ours.initiate().unwrap());
    client.send(&json!(["NEG-OPEN", "neg", {"kinds": [1617]}, first])).await;
    let mut rounds = 1;
    loop {
        let said = client.expect().await;
        assert_eq!((&said[0], &said[1]), (&json!("NEG-MSG"), &json!("neg")), "{said}");
        let message = unhex(said[2].as_str().unwrap());
        match ours.reconcile_with_ids(&message, &mut have, &mut need).unwrap() {
            Some(next) => client.send(&json!(["NEG-MSG", "neg", hex(&next)])).await,
            None => break,
        }
        rounds += 1;
    }
    assert!(rounds > 1, "{rounds}");
    let mut need: Vec<_> = need.iter().map(|id| hex(&**id)).collect();
    let missing = patches.iter().enumerate().filter(|(at, _)| at % 3 != 0);
    let mut missing: Vec<_> = missing.map(|(_, it)| it.id.to_hex()).collect();
    need.sort();
    missing.sort();
    assert_eq!(need, missing);
    assert_eq!(have.iter().map(|id| hex(&**id)).collect::<Vec<_>>(), [only_here.id.to_hex()]);

    client.send(&json!(["NEG-CLOSE", "neg"])).await;
    client.send(&json!(["NEG-MSG", "neg", "61"])).await;
    let said = client.expect().await;
    assert_eq!((&said[0], &said[1]), (&json!("NEG-ERR"), &json!("neg")));
    for bad in ["", "6", "zz", "61ff", "00"] {
        client.send(&json!(["NEG-OPEN", "bad", {"kinds": [1617]}, bad])).await;
        let said = client.expect().await;
        assert!(said[0] == "NEG-ERR" || said[0] == "NEG-MSG", "{bad}: {said}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    let pair = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.iter().map(pair).collect()
}
