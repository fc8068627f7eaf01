use std::fmt::Write as _;

use nostr::{
    event::{Event, EventId},
    key::PublicKey,
};
use purgatory_sync::{Identifier, Oid};
use sha2::{Digest, Sha256};

use super::placeholders::Placeholder;
use crate::RepositoryId;

/// One change of what is held, as a line of the journal.
///
/// A line is a checksum of 16 hex digits, a space, and the change in words that a person can read.
/// It has no line break inside: an event's JSON and a JSON string escape it.
#[derive(Debug)]
pub(super) enum Record<'a> {
    /// An event is held until then.
    Held { until: u64, hunted: bool, json: &'a str },
    /// An event is not held any more.
    Gone(EventId),
    /// An event has more time.
    Extended(EventId, u64),
    /// A fetch for a repository ended.
    Hunted(&'a Identifier),
    /// An event was given up, and its id is remembered until then.
    GivenUp(EventId, u64),
    /// An id is not remembered any more.
    Forgotten(EventId),
    /// Data came before its event.
    Placeholder(EventId, &'a Placeholder),
    /// A placeholder is not needed any more.
    Filled(EventId),
}

/// What a line says, read back.
#[derive(Debug)]
pub(super) enum Replay {
    Held { until: u64, hunted: bool, event: Box<Event> },
    Gone(EventId),
    Extended(EventId, u64),
    Hunted(Identifier),
    GivenUp(EventId, u64),
    Forgotten(EventId),
    Placeholder(EventId, Placeholder),
    Filled(EventId),
}

/// Hex digits of a line's checksum.
const CHECKSUM: usize = 16;

impl Record<'_> {
    /// Adds the line.
    pub(super) fn write(&self, to: &mut String) {
        let start = to.len();
        to.push_str(&" ".repeat(CHECKSUM + 1));
        let body = to.len();
        self.write_body(to).expect("writing to a string cannot fail");
        let checksum = checksum(&to.as_bytes()[body..]);
        to.replace_range(start..start + CHECKSUM, &checksum);
        to.push('\n');
    }

    fn write_body(&self, to: &mut String) -> std::fmt::Result {
        match self {
            Self::Held { until, hunted, json } => {
                write!(to, "held {until} {} {json}", u8::from(*hunted))
            }
            Self::Gone(id) => write!(to, "gone {id}"),
            Self::Extended(id, until) => write!(to, "extended {id} {until}"),
            Self::Hunted(identifier) => write!(to, "hunted {}", quoted(identifier)),
            Self::GivenUp(id, until) => write!(to, "given-up {id} {until}"),
            Self::Forgotten(id) => write!(to, "forgotten {id}"),
            Self::Placeholder(id, it) => {
                let RepositoryId { owner, identifier } = &it.repository;
                let Placeholder { tip, until, .. } = it;
                write!(to, "placeholder {id} {owner} {tip} {until} {}", quoted(identifier))
            }
            Self::Filled(id) => write!(to, "filled {id}"),
        }
    }
}

fn quoted(identifier: &Identifier) -> String {
    serde_json::Value::from(identifier.as_str()).to_string()
}

/// The first 8 bytes of the SHA-256, in hex.
fn checksum(body: &[u8]) -> String {
    let hash = Sha256::digest(body);
    let mut hex = String::with_capacity(CHECKSUM);
    for byte in &hash[..CHECKSUM / 2] {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
    }
    hex
}

/// Reads a line without its line break. `None` if it is damaged.
pub(super) fn read(line: &[u8]) -> Option<Replay> {
    let (sum, body) = line.split_at_checked(CHECKSUM)?;
    let body = body.strip_prefix(b" ")?;
    if checksum(body).as_bytes() != sum {
        return None;
    }
    let (word, rest) = std::str::from_utf8(body).ok()?.split_once(' ')?;
    Some(match word {
        "held" => {
            let mut parts = rest.splitn(3, ' ');
            let until = parts.next()?.parse().ok()?;
            let hunted = parts.next()? == "1";
            Replay::Held { until, hunted, event: serde_json::from_str(parts.next()?).ok()? }
        }
        "gone" => Replay::Gone(id(rest)?),
        "extended" => id_and_time(rest).map(|(id, until)| Replay::Extended(id, until))?,
        "hunted" => Replay::Hunted(identifier(rest)?),
        "given-up" => id_and_time(rest).map(|(id, until)| Replay::GivenUp(id, until))?,
        "forgotten" => Replay::Forgotten(id(rest)?),
        "placeholder" => placeholder(rest)?,
        "filled" => Replay::Filled(id(rest)?),
        _ => return None,
    })
}

fn id(text: &str) -> Option<EventId> {
    EventId::from_hex(text).ok()
}

fn id_and_time(text: &str) -> Option<(EventId, u64)> {
    let (first, time) = text.split_once(' ')?;
    Some((id(first)?, time.parse().ok()?))
}

fn identifier(text: &str) -> Option<Identifier> {
    serde_json::from_str::<String>(text).ok().map(Identifier::from)
}

fn placeholder(text: &str) -> Option<Replay> {
    let mut parts = text.splitn(5, ' ');
    let event = id(parts.next()?)?;
    let owner = PublicKey::from_hex(parts.next()?).ok()?;
    let tip = parts.next()?.parse::<Oid>().ok()?;
    let until = parts.next()?.parse().ok()?;
    let repository = RepositoryId::new(owner, identifier(parts.next()?)?);
    Some(Replay::Placeholder(event, Placeholder { repository, tip, until }))
}
