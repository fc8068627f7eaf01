//! Peers that mean no good: whatever one of them does, the relay lives on, and an honest one is heard.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::SinkExt;
use ngit_adapter::relay::PeerSettings;
use nostr::event::{Event, Kind};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    peers_support::{
        Here, PeerSocket, ScriptedPeer, answer_honestly, as_json, hear, honest, patch, say,
    },
    serve_support::{Client, PATIENCE},
    support_events::{Person, SOME_TIME},
};

const NAME: &str = "lantern";

/// A hostile peer and an honest one, and the relay between them, which knows a repository.
struct Stage {
    here: Here,
    owner: Person,
    author: Person,
    honest: Event,
    hostile: String,
    _peers: [ScriptedPeer; 2],
}

impl Stage {
    async fn set<S, F>(script: S, adjust: impl FnOnce(&mut PeerSettings)) -> Self
    where
        S: Fn(usize, PeerSocket) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (owner, author) = (Person::new(1), Person::new(2));
        let patch = patch(&author, &owner, NAME, 1);
        let events = vec![patch.clone()];
        let honest = ScriptedPeer::start(move |_, mut socket| {
            let events = events.clone();
            async move { answer_honestly(&mut socket, &events).await }
        })
        .await;
        let hostile = ScriptedPeer::start(script).await;
        let here = Here::open(&[hostile.url(), honest.url()], adjust).await;
        let mut client = Client::connect_to(&here.websocket()).await;
        client.publish_held(&here.announcement(&owner, NAME)).await;
        let address = hostile.address().to_string();
        let _peers = [hostile, honest];
        Self { here, owner, author, honest: patch, hostile: address, _peers }
    }

    /// The honest peer was heard, and nothing of these is served.
    async fn lives_without(&self, unwanted: &[&Event]) {
        self.here.served(&self.honest).await;
        for event in unwanted {
            assert!(!self.here.serves(&[event]).await, "{event:?}");
        }
    }

    /// Waits until the page says this of the hostile peer.
    async fn page_says(&self, what: &str) {
        let begun = Instant::now();
        loop {
            let page = self.here.page();
            let row = page.lines().find(|line| line.contains(&self.hostile)).unwrap_or_default();
            if row.contains(what) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {row}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn comes(what: &str, notify: &Notify) {
    timeout(PATIENCE, notify.notified()).await.unwrap_or_else(|_| panic!("{what} has not come"));
}

/// Says this for ever, whatever is asked, until the relay has enough; then tells.
async fn say_for_ever(
    socket: &mut PeerSocket,
    enough: &Notify,
    mut next: impl FnMut(usize) -> Value,
) {
    for number in 0.. {
        if !say(socket, &next(number)).await {
            break;
        }
    }
    enough.notify_one();
}

/// A script that says one thing for ever.
async fn has_enough_of(next: impl Fn(usize) -> Value + Clone + Send + Sync + 'static) -> Stage {
    let enough = Arc::new(Notify::new());
    let told = Arc::clone(&enough);
    let stage = Stage::set(
        move |_, mut socket| {
            let (told, next) = (Arc::clone(&told), next.clone());
            async move { say_for_ever(&mut socket, &told, next).await }
        },
        |peers| peers.frames_per_minute = std::num::NonZeroU32::MAX,
    )
    .await;
    comes("the end of the relay's patience", &enough).await;
    stage
}

/// R9: garbage ends the conversation, not the relay.
#[tokio::test(flavor = "multi_thread")]
async fn garbage_without_end() {
    let stage = has_enough_of(|number| match number % 4 {
        0 => json!("garbage"),
        1 => json!(["EVENT", "live", {"id": "0", "kind": number}]),
        2 => json!(["EVENT", "live", [[[[[[1]]]]]]]),
        _ => json!({"a": "b"}),
    })
    .await;
    stage.lives_without(&[]).await;
}

/// R1, R9: an event whose id and signature are another's is not taken, once or without end.
#[tokio::test(flavor = "multi_thread")]
async fn tampered_events_without_end() {
    let (owner, author) = (Person::new(1), Person::new(2));
    let real = patch(&author, &owner, NAME, 7);
    let mut tampered = as_json(&real);
    tampered["content"] = json!("not what was signed");
    let stage = has_enough_of(move |_| json!(["EVENT", "live", tampered])).await;
    stage.lives_without(&[&real]).await;
}

/// R9: events that were not asked for are not taken: of another kind, or for a subscription that there is not.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_were_not_asked_for_without_end() {
    let (owner, author) = (Person::new(1), Person::new(2));
    let elsewhere = patch(&author, &owner, NAME, 7);
    let note = author.sign::<[&str; 2], &str>(Kind::TextNote, SOME_TIME, &[]);
    let messages =
        [json!(["EVENT", "live", as_json(&note)]), json!(["EVENT", "other", as_json(&elsewhere)])];
    let stage = has_enough_of(move |number| messages[number % 2].clone()).await;
    stage.lives_without(&[&note, &elsewhere]).await;
}

/// R9: the same event for ever is one event, and then too much.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_event_without_end() {
    let (owner, author) = (Person::new(1), Person::new(2));
    let again = json!(["EVENT", "live", as_json(&patch(&author, &owner, NAME, 7))]);
    let stage = has_enough_of(move |_| again.clone()).await;
    stage.lives_without(&[]).await;
}

/// R9: a message that is larger than any event may be is not read to its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large() {
    let stage = has_enough_of(|_| json!(["NOTICE", "x".repeat(3 << 20)])).await;
    stage.lives_without(&[]).await;
}

/// R9: a peer that answers nothing is asked by REQ where it does not compare, is left with what it does not answer, and is
/// heard when it has something new.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_never_answers() {
    let asked = Arc::new(Mutex::new(Vec::<String>::new()));
    let noted = Arc::clone(&asked);
    let late = patch(&Person::new(2), &Person::new(1), NAME, 7);
    let event = as_json(&late);
    let stage = Stage::set(
        move |_, mut socket| {
            let (noted, event) = (Arc::clone(&noted), event.clone());
            async move {
                while let Some(message) = hear(&mut socket).await {
                    let name = message[0].as_str().unwrap_or_default().to_owned();
                    let is_page = name == "REQ" && message[2]["limit"] == 500;
                    let about = message[2].to_string().contains("30617:");
                    noted.lock().unwrap().push(name);
                    if is_page && about {
                        say(&mut socket, &json!(["EVENT", "live", event])).await;
                    }
                }
            }
        },
        |peers| {
            peers.idle_timeout = Duration::from_millis(500);
            // The honest one may be as slow as that, once.
            peers.again_every = Duration::from_secs(2);
        },
    )
    .await;
    stage.here.served(&late).await;
    stage.lives_without(&[]).await;
    let asked = asked.lock().unwrap();
    assert_eq!(asked[..2], ["REQ", "NEG-OPEN"]);
    let opened = asked.iter().filter(|it| *it == "NEG-OPEN").count();
    assert_eq!(opened, 1, "what it does not do is not tried again: {asked:?}");
}

/// R9: a peer that goes half way is asked again when it is back, and nothing is missing then.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_closes_half_way() {
    let (owner, author) = (Person::new(1), Person::new(2));
    let patches: Vec<_> = (10..14).map(|it| patch(&author, &owner, NAME, it)).collect();
    let events = patches.clone();
    let stage = Stage::set(
        move |number, mut socket| {
            let events = events.clone();
            async move {
                let mut sent = 0;
                while let Some(message) = hear(&mut socket).await {
                    for answer in honest(&message, &events) {
                        sent += usize::from(answer[0] == "EVENT" && answer[1] != "live");
                        if number < 2 && sent > 2 || !say(&mut socket, &answer).await {
                            return;
                        }
                    }
                }
            }
        },
        |_| {},
    )
    .await;
    for patch in &patches {
        stage.here.served(patch).await;
    }
    stage.lives_without(&[]).await;
}

/// R9: a peer that ends what is heard live in the middle of a catch-up is not taken for one that tells what is new: it is left, and
/// asked anew.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_what_is_live_in_the_middle_of_a_catch_up() {
    let anew = Arc::new(Notify::new());
    let told = Arc::clone(&anew);
    let stage = Stage::set(
        move |number, mut socket| {
            let told = Arc::clone(&told);
            async move {
                if number > 0 {
                    told.notify_one();
                    return answer_honestly(&mut socket, &[]).await;
                }
                while let Some(message) = hear(&mut socket).await {
                    if message[0] == "NEG-OPEN" {
                        say(&mut socket, &json!(["CLOSED", "live", "error: shutting down idle"]))
                            .await;
                    }
                    for answer in honest(&message, &[]) {
                        say(&mut socket, &answer).await;
                    }
                }
            }
        },
        |_| {},
    )
    .await;
    comes("another connection", &anew).await;
    stage.page_says("live").await;
    stage.lives_without(&[]).await;
}

/// R9: ids without end in a comparison: a bounded number of them is asked for, and that is that.
#[tokio::test(flavor = "multi_thread")]
async fn ids_without_end() {
    let named = Arc::new(AtomicUsize::new(0));
    let wanted = Arc::new(AtomicUsize::new(0));
    let (naming, wanting) = (Arc::clone(&named), Arc::clone(&wanted));
    let stage = Stage::set(
        move |number, mut socket| {
            let (naming, wanting) = (Arc::clone(&naming), Arc::clone(&wanting));
            async move {
                while let Some(message) = hear(&mut socket).await {
                    let id = &message[1];
                    let answer = match message[0].as_str() {
                        Some("NEG-OPEN" | "NEG-MSG") => {
                            let round = naming.fetch_add(8_000, Ordering::Relaxed);
                            json!(["NEG-MSG", id, many_ids(round, 8_000)])
                        }
                        Some("REQ") => {
                            let ids = message[2]["ids"].as_array().map_or(0, Vec::len);
                            if number == 0 {
                                wanting.fetch_add(ids, Ordering::Relaxed);
                            }
                            json!(["EOSE", id])
                        }
                        _ => continue,
                    };
                    if !say(&mut socket, &answer).await {
                        return;
                    }
                }
            }
        },
        |_| {},
    )
    .await;
    stage.page_says("live").await;
    stage.lives_without(&[]).await;
    let (named, wanted) = (named.load(Ordering::Relaxed), wanted.load(Ordering::Relaxed));
    // Per question, of which there are five: as many as are noted before they are asked for, and one message more.
    assert!((20_000..=5 * 28_000).contains(&wanted), "{wanted} of {named}");
    assert!(wanted <= named && named <= 5 * 28_000, "{wanted} of {named}");
}

/// A message of the comparison that names ids which nobody has, and says that there is more.
fn many_ids(first: usize, count: usize) -> String {
    // The version; up to second 1, no id: a list of ids.
    let mut message = vec![0x61, 2, 0, 2];
    let mut digits = vec![u8::try_from(count & 0x7f).unwrap()];
    let mut rest = count >> 7;
    while rest > 0 {
        digits.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    message.extend(digits.iter().rev());
    for number in first..first + count {
        let mut id = [0xee; 32];
        id[..8].copy_from_slice(&number.to_be_bytes());
        message.extend(id);
    }
    // Up to the end: a fingerprint that is never right.
    message.extend([0, 0, 1]);
    message.extend([0x5a; 16]);
    message.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// R9: pages without end: a catch-up takes so many events, and then the peer is heard live.
#[tokio::test(flavor = "multi_thread")]
async fn pages_without_end() {
    let made = Arc::new(AtomicUsize::new(0));
    let making = Arc::clone(&made);
    let stage = Stage::set(
        move |number, mut socket| {
            let making = Arc::clone(&making);
            async move {
                let (owner, author) = (Person::new(1), Person::new(2));
                while let Some(message) = hear(&mut socket).await {
                    let id = &message[1];
                    let about = message[2]["#a"].is_array();
                    if message[0] == "NEG-OPEN" {
                        say(&mut socket, &json!(["NEG-ERR", id, "no"])).await;
                    } else if message[0] == "REQ" {
                        for _ in 0..if about { 3 } else { 0 } {
                            let n = making.fetch_add(1, Ordering::Relaxed);
                            let n = 1_000_000 - u64::try_from(n + number * 1_000).unwrap();
                            let patch = patch(&author, &owner, NAME, n);
                            say(&mut socket, &json!(["EVENT", id, as_json(&patch)])).await;
                        }
                        say(&mut socket, &json!(["EOSE", id])).await;
                    }
                }
            }
        },
        |peers| peers.catch_up_events = 40,
    )
    .await;
    stage.lives_without(&[]).await;
    let until = Instant::now();
    while made.load(Ordering::Relaxed) < 39 {
        assert!(until.elapsed() < PATIENCE, "nothing was asked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stage.page_says("live").await;
    // Three more may be on their way when there is enough.
    assert!(made.load(Ordering::Relaxed) <= 43, "{made:?}");
}

/// R9: a peer that sends more than is read in a minute is read more slowly: TCP makes it wait.
#[tokio::test(flavor = "multi_thread")]
async fn more_than_is_read() {
    const MOST: usize = 2_000;
    let stuck = Arc::new(Notify::new());
    let told = Arc::clone(&stuck);
    let stage = Stage::set(
        move |_, mut socket| {
            let told = Arc::clone(&told);
            async move {
                let message = Message::text(json!(["NOTICE", "x".repeat(100 << 10)]).to_string());
                for _ in 0..MOST {
                    let sent = socket.send(message.clone());
                    match timeout(Duration::from_secs(2), sent).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return,
                        Err(_) => return told.notify_one(),
                    }
                }
            }
        },
        |peers| peers.frames_per_minute = std::num::NonZeroU32::new(60).unwrap(),
    )
    .await;
    comes("the wait", &stuck).await;
    stage.lives_without(&[]).await;
}

/// R9: the relay stops at once, whatever its peers are doing: silent, half way through an answer, or not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_no_peer() {
    let asked = Arc::new(Notify::new());
    let told = Arc::clone(&asked);
    let stage = Stage::set(
        move |_, mut socket| {
            let told = Arc::clone(&told);
            async move {
                hear(&mut socket).await;
                told.notify_one();
                std::future::pending::<()>().await;
            }
        },
        |peers| peers.idle_timeout = 10 * PATIENCE,
    )
    .await;
    comes("a question", &asked).await;
    let Stage { here, owner, author, .. } = stage;
    drop((owner, author));
    timeout(PATIENCE, here.end()).await.expect("it ends");
}
