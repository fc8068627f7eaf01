//! R1: no event is looked at before its size, its id and its signature were checked.

use ngit_adapter::{
    nip34::{EventError, EventLimits, GitEvent, VerifiedEvent},
    nostr::event::{Event, Tag},
};
use proptest::prelude::*;

use crate::store_support::{event, keys, oid, state};

fn read(json: impl AsRef<[u8]>) -> Result<VerifiedEvent, EventError> {
    VerifiedEvent::from_json(json.as_ref(), &EventLimits::default())
}

fn sample() -> Event {
    state(1, "r", 10, &[oid(1)])
}

/// R1: events as nostr clients print them; real ones among them.
#[test]
fn real_events_are_taken_and_sorted_by_kind() {
    let mut counts = [0; 5];
    for line in include_str!("../data/nip34-events.jsonl").lines() {
        let event = read(line).unwrap();
        let at = match GitEvent::read(&event).unwrap() {
            GitEvent::Announcement(_) => 0,
            GitEvent::State(state) => {
                assert!(state.oids().count() > 0);
                1
            }
            GitEvent::Patch(_) => 2,
            GitEvent::Other => 3,
            _ => 4,
        };
        counts[at] += 1;
    }
    assert_eq!(counts, [14, 12, 1, 2, 0]);
}

/// R1: an event that was changed after it was signed has another id, whatever else fits.
#[test]
fn a_tampered_event_is_refused() {
    let event = sample();
    let mut tampered = event.clone();
    tampered.content.push('x');
    assert_eq!(VerifiedEvent::check(tampered, &EventLimits::default()), Err(EventError::Id));
    let mut tampered = event.clone();
    tampered.tags.push(Tag::parse(["refs/heads/evil", &oid(2).to_string()]).unwrap());
    // It reuses an id that is known and that was fine.
    assert!(read(event.as_json()).is_ok());
    assert_eq!(read(tampered.as_json()), Err(EventError::Id));
}

/// R1: the author is who signed.
#[test]
fn somebody_elses_signature_or_key_is_refused() {
    let (event, other) = (sample(), state(2, "r", 10, &[oid(1)]));
    let mut forged = event.clone();
    forged.sig = other.sig;
    assert_eq!(read(forged.as_json()), Err(EventError::Signature));
    let mut forged = event.clone();
    forged.pubkey = keys(2).public_key();
    assert_eq!(read(forged.as_json()), Err(EventError::Id));
    // With the id of the forged event the signature does not fit.
    let json = event.as_json().replace(&event.pubkey.to_hex(), &keys(2).public_key().to_hex());
    let mut forged: Event = serde_json::from_str(&json).unwrap();
    forged.id = other.id;
    forged.sig = event.sig;
    assert_eq!(VerifiedEvent::check(forged, &EventLimits::default()), Err(EventError::Signature));
    // A key that is no point of the curve can sign nothing.
    let mut forged = event;
    forged.pubkey = ngit_adapter::nostr::key::PublicKey::from_byte_array([0xff; 32]);
    assert_eq!(read(forged.as_json()), Err(EventError::Id));
}

/// R1: text that is no event: nested, cut, doubled, of another type, with NUL, not UTF-8.
#[test]
fn hostile_json_is_no_event() {
    let json = sample().as_json();
    let nested = "[".repeat(2_000) + &"]".repeat(2_000);
    let inside = json.replacen("{", &format!("{{\"x\":{nested},"), 1);
    let array: Vec<serde_json::Value> = {
        let object: serde_json::Value = serde_json::from_str(&json).unwrap();
        let fields = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"];
        fields.iter().map(|name| object[name].clone()).collect()
    };
    let as_array = serde_json::to_string(&array).unwrap();
    let doubled = json.replacen("{", "{\"kind\":1,", 1);
    let with_nul = json.replacen("{", "{\u{0}", 1);
    let half = &json[..json.len() / 2];
    let negative = json.replace("\"created_at\":10", "\"created_at\":-1");
    let float = json.replace("\"created_at\":10", "\"created_at\":1e1");
    let big_kind = json.replace("\"kind\":30618", "\"kind\":96154");
    let nested_tag = json.replace("[\"d\",\"r\"]", "[\"d\",[\"r\"]]");
    let empty_tag = json.replace("[\"d\",\"r\"]", "[]");
    for bad in [
        "",
        " ",
        "{}",
        "null",
        "1",
        "\"x\"",
        "[]",
        "not json",
        &nested,
        &inside,
        &as_array,
        &doubled,
        &with_nul,
        half,
        &negative,
        &float,
        &big_kind,
        &nested_tag,
        &empty_tag,
        &format!("{json}{json}"),
    ] {
        let error = read(bad).unwrap_err();
        assert!(matches!(error, EventError::NotAnEvent(_)), "{error}: {bad:.80}");
        assert!(error.to_string().len() < 300, "{error}");
    }
    assert!(matches!(read([0xff, 0xfe, b'{']), Err(EventError::NotAnEvent(_))));
    // Brackets in a string are text, and an unknown field is passed over.
    let text = event(1, 1, 1, &[&["t", &"[\\\"[".repeat(100)]]).as_json();
    assert!(read(text.replacen('{', "{\"seen\":[[\"x\"]],", 1)).is_ok());
    // A stranger's text does not fill the log.
    let loud = json.replace("\"kind\":30618", &format!("\"kind\":\"{}\"", "é".repeat(10_000)));
    assert!(read(loud).unwrap_err().to_string().chars().count() < 300);
}

/// R1: sizes and counts have bounds, also for events that somebody else has read.
#[test]
fn sizes_and_counts_are_bounded() {
    let limits = EventLimits { max_bytes: 2_000, max_tags: 5 };
    let tags: Vec<Vec<String>> = (0..6).map(|it| vec![format!("t{it}")]).collect();
    let tags: Vec<Vec<&str>> =
        tags.iter().map(|it| it.iter().map(String::as_str).collect()).collect();
    let many = event(1, 1, 1, &tags.iter().map(Vec::as_slice).collect::<Vec<_>>());
    assert_eq!(
        VerifiedEvent::check(many, &limits),
        Err(EventError::TooManyTags { tags: 6, most: 5 })
    );
    let long = event(1, 1, 1, &[&["t", &"x".repeat(2_000)]]);
    let too_long = |it| matches!(it, Err(EventError::TooManyBytes { most: 2_000, .. }));
    assert!(too_long(VerifiedEvent::from_json(long.as_json().as_bytes(), &limits)));
    assert!(too_long(VerifiedEvent::check(long, &limits)));
    assert!(too_long(VerifiedEvent::from_json(&vec![b'['; 50_000_000], &limits)));
}

proptest! {
    /// R1: whatever byte of an event is changed, it is refused or it is the same event.
    #[test]
    fn a_changed_byte_is_noticed(at in 0usize..600, byte in any::<u8>()) {
        let event = sample();
        let mut json = event.as_json().into_bytes();
        let at = at % json.len();
        json[at] = byte;
        if let Ok(read) = read(&json) {
            prop_assert_eq!(read.into_event(), event);
        }
    }
}
