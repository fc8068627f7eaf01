//! Many events of one repository at once, from a peer.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use nostr::event::{Event, Kind};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::{
    peers_support::{ScriptedPeer, as_json, hear, honest, say, served},
    serve_support::RelayProcess,
    support::TestRepo,
    support_events::{Person, SOME_TIME},
    support_server::TestServer,
};

/// R9, D2: ten events for one repository within 100 ms from a peer: one run, once it was quiet for as long as it is set, and one
/// fetch, counted by the git server.
#[tokio::test(flavor = "multi_thread")]
async fn ten_events_within_100_ms_are_one_fetch() {
    // Longer than the default of 500 ms, so that a busy machine does not make two bursts of one.
    const QUIET: Duration = Duration::from_millis(1_500);
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let tips: Vec<_> = (0..9)
        .map(|number| {
            let branch = format!("change-{number}");
            source.set_branch(&branch, main);
            source.commit(&branch, "b", &number.to_string())
        })
        .collect();
    let server = TestServer::start("127.0.0.2", dir.path());

    let (publish, published) = watch::channel(Vec::<Event>::new());
    let last = Arc::new(Mutex::new(None));
    let sent = Arc::clone(&last);
    let peer = ScriptedPeer::start(move |_, mut socket| {
        let (mut published, sent) = (published.clone(), Arc::clone(&sent));
        async move {
            loop {
                tokio::select! {
                    message = hear(&mut socket) => {
                        let Some(message) = message else { return };
                        for answer in honest(&message, &[]) {
                            say(&mut socket, &answer).await;
                        }
                    }
                    changed = published.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        let events = published.borrow_and_update().clone();
                        for event in &events {
                            say(&mut socket, &json!(["EVENT", "live", as_json(event)])).await;
                        }
                        *sent.lock().unwrap() = Some(Instant::now());
                    }
                }
            }
        }
    })
    .await;
    let bootstrap = format!("--bootstrap-relay-url={}", peer.url());
    let relay = RelayProcess::start_with(
        &[
            &bootstrap,
            &format!("--sync-immediate-delay-ms={}", QUIET.as_millis()),
            "--sync-loop-interval-ms=1",
        ],
        &[],
    );
    let tags = [
        vec!["d".to_owned(), "lantern".to_owned()],
        vec!["clone".to_owned(), relay.repository_url(&owner, "lantern"), server.url("source.git")],
        vec!["relays".to_owned(), relay.websocket()],
    ];
    let mut events = vec![owner.sign(Kind::GitRepoAnnouncement, SOME_TIME, &tags)];
    events.push(owner.state("lantern", &[("refs/heads/main", main)]));
    let author = Person::new(2);
    events.extend(tips.iter().take(8).map(|tip| author.pull_request(&owner, "lantern", *tip, &[])));
    assert_eq!(events.len(), 10);
    crate::serve_support::until("the peer is heard", || {
        relay.get("/").text().contains("<td>live</td>")
    })
    .await;
    publish.send_replace(events.clone());
    for event in &events {
        served(&relay, event).await;
    }
    let entries = server.log().entries();
    assert_eq!((server.log().fetches(), server.log().advertisements()), (1, 1), "{entries:?}");
    let last = last.lock().unwrap().expect("they were sent");
    // It may have read the last one before the peer knew that it was sent.
    assert!(entries[0].at + Duration::from_millis(50) >= last + QUIET, "{entries:?}");
    let runs = relay.get("/metrics").text();
    assert!(runs.contains("purgatory_sync_attempts_total 1\n"), "{runs}");
}
