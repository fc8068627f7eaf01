use purgatory_sync::{IdentifierSnapshot, Oid, Snapshot, State};
use tokio::time::Instant;

use super::{
    story::Heard,
    words::{count, whole_seconds},
    world::World,
};
use crate::store::HeldEvent;

/// What is held of one repository at the end, and why.
pub(super) struct StillHeld {
    pub(super) what: String,
    pub(super) why: String,
}

/// One for each repository of which something is held.
pub(super) fn still_held(
    world: &World,
    heard: &Heard,
    snapshot: &Snapshot,
    held: &[(HeldEvent, Vec<Oid>)],
    now: Instant,
) -> Vec<StillHeld> {
    let of_one = held.chunk_by(|(one, _), (next, _)| one.identifier == next.identifier);
    let all = of_one.map(|events| {
        let repository = &events[0].0.identifier;
        let stands = snapshot.identifiers.iter().find(|each| each.identifier == *repository);
        let named = match events {
            [(event, _)] => world.told(&event.id).map(|told| told.what.clone()),
            _ => None,
        };
        let what = named.unwrap_or_else(|| count(events.len(), "event"));
        let next = match stands.map(|each| &each.state) {
            Some(State::Backoff { until } | State::Paused { until }) => {
                let time = Instant::from(*until).saturating_duration_since(now);
                format!(" Next try in {}.", whole_seconds(time))
            }
            _ => String::new(),
        };
        StillHeld {
            what: format!("Still held in {repository}: {what}.{next}"),
            why: why(heard, stands, events),
        }
    });
    all.collect()
}

fn why(
    heard: &Heard,
    stands: Option<&IdentifierSnapshot>,
    events: &[(HeldEvent, Vec<Oid>)],
) -> String {
    let last_pass = stands.and_then(|each| each.last_pass.as_ref());
    let missing: Vec<&Oid> = events.iter().flat_map(|(_, missing)| missing).collect();
    if let [first, rest @ ..] = &missing[..]
        && last_pass.is_some_and(|pass| pass.no_source_left)
    {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return format!("{first}{more}: on none of its servers.");
    }
    let repository = &events[0].0.identifier;
    let failed = heard.failed.iter().filter(|((of, _), _)| of == repository);
    let failed: Vec<_> =
        failed.map(|((_, host), answer)| format!("{}: {answer}", host.name())).collect();
    if failed.is_empty() {
        "The time was over before all of its data had come.".to_owned()
    } else {
        format!("{}.", failed.join(", "))
    }
}
