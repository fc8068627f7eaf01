use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use nostr::{
    event::{Event, Kind, Signature, Tag},
    key::PublicKey,
    types::Timestamp,
};

use super::*;
use crate::nip34::GitEvent;

/// A state that nobody has signed: what is looked up does not depend on it.
fn state(number: u32, identifier: &str, created_at: u64) -> Entry {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    let tags = [
        vec!["d".to_owned(), identifier.to_owned()],
        vec!["refs/heads/main".to_owned(), format!("{number:040x}")],
    ];
    let event = Event::new(
        EventId::from_byte_array(bytes),
        PublicKey::from_byte_array(bytes),
        Timestamp::from_secs(created_at),
        Kind::RepoState,
        tags.map(|tag| Tag::parse(tag).expect("a tag with a name")),
        "",
        Signature::from_slice(&[1; 64]).expect("64 bytes"),
    );
    let read = GitEvent::read(&event).expect("a state");
    let held = Held::new(&event, read).expect("states are held");
    Entry::new(Arc::new(held), created_at)
}

/// `events` states of `identifiers` repositories.
fn filled(events: u32, identifiers: u32) -> Purgatory {
    let mut purgatory = Purgatory::default();
    for number in 0..events {
        let identifier = format!("r{}", number % identifiers);
        let entry = state(number, &identifier, u64::from(number));
        purgatory.insert(entry, &StoreConfig::default());
    }
    purgatory
}

/// The time of the fastest of many rounds of what a look, an arrival and an expiry do.
#[expect(clippy::disallowed_methods, reason = "a test of cost measures real time")]
fn cost(purgatory: &mut Purgatory) -> Duration {
    const ROUND: u32 = 200;
    let extra: Vec<_> = (0..ROUND).map(|it| state(u32::MAX - it, "r5", 1 << 40)).collect();
    let identifier = Identifier::from("r5");
    let one = || {
        let started = Instant::now();
        for entry in &extra {
            let id = entry.held.id;
            black_box(purgatory.entries(&identifier).len());
            black_box(purgatory.next_expired(0).is_some());
            purgatory.insert(entry.clone(), &StoreConfig::default());
            black_box(purgatory.find(&id).is_some());
            purgatory.extend(&id, 1 << 41);
            purgatory.remove(&id);
        }
        started.elapsed()
    };
    std::iter::repeat_with(one).take(50).min().unwrap_or_default()
}

/// No look-up scans what is held: with 1,000 times as many events it costs about the same. A scan
/// would cost 1,000 times as much; caches and the depth of trees are allowed 30 times.
#[test]
fn a_look_up_costs_the_same_with_100_000_held_as_with_100() {
    let few = cost(&mut filled(100, 10));
    let many = cost(&mut filled(100_000, 10_000));
    assert!(many < few * 30, "{few:?} with 100, {many:?} with 100,000");
}

/// What a naive list says, after any insertions and removals.
#[test]
fn indexes_agree_with_a_plain_list() {
    let config = StoreConfig { max_held: 40, max_states: 5, ..StoreConfig::default() };
    let mut purgatory = Purgatory::default();
    let mut list: Vec<Entry> = Vec::new();
    let mut random = 12345_u32;
    for _ in 0..5_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (number, at) = (random >> 8 & 63, u64::from(random >> 16 & 7));
        let identifier = format!("r{}", number % 12);
        let entry = state(number, &identifier, at);
        let known = list.iter().position(|it| it.held.id == entry.held.id);
        if random >> 30 == 0 {
            let removed = purgatory.remove(&entry.held.id);
            assert_eq!(removed.is_some(), known.is_some());
            known.map(|at| list.remove(at));
        } else {
            let siblings = list.iter().filter(|it| it.held.identifier == entry.held.identifier);
            let room = list.len() < 40 && siblings.count() < 5;
            match purgatory.insert(entry.clone(), &config) {
                Inserted::Duplicate => assert!(known.is_some()),
                Inserted::Full(..) => assert!(known.is_none() && !room),
                Inserted::New { replaced: None } => {
                    assert!(known.is_none() && room);
                    list.push(entry);
                }
                other => panic!("each number is an author of its own: {other:?}"),
            }
        }
        assert_eq!(purgatory.len(), list.len());
        assert_eq!(purgatory.bytes(), list.iter().map(|it| it.held.json.len()).sum::<usize>());
        let drawn = (0..list.len() as u64).filter_map(|it| Some(purgatory.drawn(it)?.held.id));
        let drawn: BTreeSet<_> = drawn.collect();
        assert_eq!(drawn, list.iter().map(|it| it.held.id).collect());
        assert_eq!(purgatory.next_deadline(), list.iter().map(|it| it.deadline).min());
        let waiting = list.iter().map(|it| it.held.identifier.clone());
        let waiting: BTreeSet<_> = waiting.collect();
        assert_eq!(purgatory.waiting().cloned().collect::<BTreeSet<_>>(), waiting);
    }
    assert!(list.iter().all(|it| purgatory.find(&it.held.id).is_some()));
}
