//! R8: what was acknowledged is there after any end of the process, and a damaged file is no dead end.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use ngit_adapter::{
    RepositoryId,
    nostr::event::Event,
    store::{Outcome, StoreConfig},
};
use purgatory_sync::{EventStore, Identifier};

use crate::store_support::*;

async fn world(journal: &Path) -> World {
    World::with(StoreConfig::default(), Some(journal)).await
}

fn some_events() -> Vec<Event> {
    let mut events = Vec::new();
    for (number, id) in (0u8..).zip(["r", "a:b", "", "\u{0}\n\"\\é🦀", &"x".repeat(8_000)]) {
        let at = u64::from(number);
        events.push(announcement(1, id, at, &[2]));
        events.push(state(2, id, at, &[oid(u32::from(number))]));
        events.push(pull_request(5, &[1], id, at, oid(100)));
    }
    events
}

/// R8: all that is held, in its every form, is held again.
#[tokio::test]
async fn what_is_held_is_held_again() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("below").join("journal");
    let mut world = world(&journal).await;
    let events = some_events();
    for event in &events {
        world.admit(event).await;
    }
    let before = world.store.held().await.unwrap();
    let needs = world.needs("a:b").await;
    world.restart(&journal).await;
    assert_eq!(world.store.held().await.unwrap(), before);
    assert_eq!(world.needs("a:b").await, needs);
    assert_eq!(before.len(), 10);
    for event in &events {
        assert_eq!(world.admit(event).await.outcome, Outcome::Duplicate);
    }
    // What went is not held again.
    world.release("a:b", &[oid(1), oid(100)]).await;
    world.restart(&journal).await;
    assert_eq!(world.held().await.len(), 8);
}

/// R8: cut off at any byte, the journal opens, and holds everything whose line is whole.
#[tokio::test]
async fn a_journal_cut_off_at_any_byte_opens() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = world(&journal).await;
    let mut sizes = vec![fs::metadata(&journal).unwrap().len()];
    for number in 0..3 {
        world.admit(&state(number, "r", 1, &[oid(1)])).await;
        sizes.push(fs::metadata(&journal).unwrap().len());
    }
    let whole = fs::read(&journal).unwrap();
    let cut = folder.path().join("cut");
    let every_byte = (0..=whole.len())
        .filter(|at| at % 7 == 0 || sizes.iter().any(|size| size.abs_diff(*at as u64) < 3));
    for at in every_byte {
        fs::write(&cut, &whole[..at]).unwrap();
        world.restart(&cut).await;
        let acknowledged =
            sizes.iter().filter(|size| **size <= at as u64).count().saturating_sub(1);
        assert_eq!(world.held().await.len(), acknowledged, "cut at {at}");
        // It can be written again: nothing is glued to the half line.
        world.admit(&state(9, "r", 1, &[oid(1)])).await;
        world.restart(&cut).await;
        assert_eq!(world.held().await.len(), acknowledged + 1, "written after a cut at {at}");
    }
}

/// R8: a line that went bad on the disk costs that line and no other; nothing forged comes in by it.
#[tokio::test]
async fn a_damaged_line_costs_that_line_alone() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = world(&journal).await;
    let events: Vec<_> = (0..5).map(|it| state(it, "r", 1, &[oid(1)])).collect();
    for event in &events {
        world.admit(event).await;
    }
    let text = fs::read_to_string(&journal).unwrap();
    let other = oid(2).to_string();
    let damaged = text.lines().enumerate().map(|(at, line)| match at {
        3 => line.replace(&oid(1).to_string(), &other) + "\n",
        _ => line.to_owned() + "\n",
    });
    let damaged: String = damaged.collect();
    fs::write(&journal, damaged).unwrap();
    OpenOptions::new().append(true).open(&journal).unwrap().write_all(&[0; 5_000]).unwrap();
    world.restart(&journal).await;
    let held = world.held().await;
    assert_eq!(held.len(), 4);
    assert!(!held.contains(&events[2].id));
}

/// R1, R8: a journal that somebody has written with care is not trusted with what is served.
#[tokio::test]
async fn a_forged_line_is_never_served() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = world(&journal).await;
    world.admit(&announcement(1, "r", 1, &[])).await;
    world.admit(&state(1, "r", 2, &[oid(1)])).await;
    let forged: Vec<String> = fs::read_to_string(&journal)
        .unwrap()
        .lines()
        .map(|line| match line.split_once(" held ") {
            Some((_, rest)) => {
                let body =
                    format!("held {}", rest.replace(&oid(1).to_string(), &oid(2).to_string()));
                format!("{} {body}", checksum(&body))
            }
            None => line.to_owned(),
        })
        .collect();
    fs::write(&journal, forged.join("\n") + "\n").unwrap();
    world.restart(&journal).await;
    assert_eq!(world.needs("r").await.wants[0].oids, [oid(2)]);
    assert_eq!(world.release("r", &[oid(2)]).await.released, 0);
    assert!(world.told().is_empty() && world.refs.all().is_empty());
    assert!(world.held().await.is_empty());
}

fn checksum(body: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(body.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// R8: one journal, one process: two would lose each other's lines.
#[tokio::test]
async fn a_journal_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let world = world(&journal).await;
    let error = world.reopen(&journal).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("in use by another process"), "{source}");
}

/// A file that is no journal is not overwritten.
#[tokio::test]
async fn a_file_that_is_no_journal_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new().await;
    for text in ["my diary\n", "ngit-purgatory journal 2\n", "x"] {
        let path = folder.path().join("journal");
        fs::write(&path, text).unwrap();
        let error = world.reopen(&path).await.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("is no journal of this version"), "{source}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

/// R8: the file does not grow with what went: it is written anew when most of it is of no use.
#[tokio::test]
async fn the_journal_does_not_grow_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = world(&journal).await;
    let kept = pull_request(5, &[1], "kept", 1, oid(1));
    world.admit(&kept).await;
    let repository = RepositoryId::new(key(1), Identifier::from("r"));
    world.store.place(state(8, "r", 1, &[]).id, repository, oid(8)).await.unwrap();
    let many: Vec<_> = (1..1_500).map(oid).collect();
    let mut largest = 0;
    for at in 0..150 {
        // Each takes the place of the one before.
        world.admit(&state(1, "r", at, &many)).await;
        largest = largest.max(fs::metadata(&journal).unwrap().len());
    }
    let one = state(1, "r", 0, &many).as_json().len() as u64;
    assert!(largest < 4_300_000 + 2 * one, "{largest}");
    assert!(150 * one > 2 * largest, "the test writes too little");
    world.restart(&journal).await;
    assert_eq!(world.held().await.len(), 2);
    assert!(world.held().await.contains(&kept.id));
    assert!(!journal.with_extension("new").exists());
}

/// R8: where the disk takes nothing, the event is not acknowledged and not held; later ones are.
#[tokio::test]
async fn an_event_that_cannot_be_written_is_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    let journal = below.join("journal");
    let mut world = world(&journal).await;
    let (first, second) = (state(1, "r", 1, &[oid(1)]), state(2, "r", 1, &[oid(2)]));
    world.admit(&first).await;
    // A full disk is not to be had here; a folder that is not there stops a new file in the same way.
    let many: Vec<_> = (1..1_500).map(oid).collect();
    let away = folder.path().join("away");
    fs::rename(&below, &away).unwrap();
    let mut refused = None;
    for at in 0..60 {
        let event = state(3, "r", at, &many);
        if let Err(error) = world.try_admit(&event).await {
            assert!(!error.is_rejection(), "{error}");
            refused = Some(event);
            break;
        }
    }
    let refused = refused.expect("the journal wants to be written anew");
    assert!(!world.held().await.contains(&refused.id));
    assert!(world.try_admit(&second).await.is_err());
    fs::rename(&away, &below).unwrap();
    assert_eq!(world.admit(&second).await.outcome, Outcome::Held { data_first: false });
    world.restart(&journal).await;
    let held = world.held().await;
    assert!(held.contains(&first.id) && held.contains(&second.id) && !held.contains(&refused.id));
}

/// R8, P8: an event that was not taken for want of room on the disk has not cost the older one of its author.
#[tokio::test]
async fn an_event_that_cannot_be_written_leaves_the_one_that_it_would_replace() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    let journal = below.join("journal");
    let mut world = world(&journal).await;
    let many: Vec<_> = (1..1_500).map(oid).collect();
    let away = folder.path().join("away");
    fs::rename(&below, &away).unwrap();
    let mut kept = None;
    let mut is_refused = false;
    for at in 0..60 {
        let event = state(3, "r", at, &many);
        if world.try_admit(&event).await.is_err() {
            is_refused = true;
            break;
        }
        kept = Some(event);
    }
    assert!(is_refused, "the journal wants to be written anew");
    let kept = BTreeSet::from([kept.unwrap().id]);
    assert_eq!(world.held().await, kept);
    fs::rename(&away, &below).unwrap();
    world.admit(&pull_request(5, &[1], "s", 1, oid(1))).await;
    world.restart(&journal).await;
    assert!(world.held().await.is_superset(&kept));
}

/// R8: killed at any byte of the write by which a newer event takes the place of an older one: one of the two is held.
#[tokio::test]
async fn a_kill_while_an_event_is_replaced_costs_none() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = world(&journal).await;
    world.admit(&state(1, "r", 1, &[oid(1)])).await;
    let older = fs::metadata(&journal).unwrap().len();
    world.admit(&state(1, "r", 2, &[oid(2)])).await;
    let whole = fs::read(&journal).unwrap();
    let cut = folder.path().join("cut");
    for at in usize::try_from(older).unwrap()..=whole.len() {
        fs::write(&cut, &whole[..at]).unwrap();
        world.restart(&cut).await;
        assert_eq!(world.held().await.len(), 1, "cut at {at} of {}", whole.len());
    }
}

/// R8: many who wait for the disk at once are served together.
#[tokio::test]
async fn many_admissions_at_once_are_all_durable() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut world = world(&journal).await;
    let events: Vec<_> =
        (0..100).map(|it| pull_request(5, &[1], &format!("r{it}"), 1, oid(1))).collect();
    futures::future::join_all(events.iter().map(|event| world.admit(event))).await;
    world.restart(&journal).await;
    assert_eq!(world.store.held_identifiers().await.unwrap().len(), 100);
}
