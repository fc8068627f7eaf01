//! An event that a client sends: checked, admitted by the relay's policy, and answered with `OK`.

use nostr::{event::EventId, message::RelayMessage};

use super::{
    super::{
        admit::{self, Accepted, Rejected},
        shared::Shared,
    },
    message,
};
use crate::{nip34::VerifiedEvent, store::Arrival};

/// What is said of an event that is kept and not served yet.
const HELD: &str = "purgatory: won't be served until git data arrives";

pub(super) async fn submit(shared: &Shared, json: &str) -> RelayMessage<'static> {
    let event = match VerifiedEvent::from_json(json.as_bytes(), &shared.limits().event) {
        Ok(event) => event,
        Err(error) => {
            let why = format!("invalid: {error}");
            return match message::claimed_id(json) {
                Some(id) => RelayMessage::ok(id, false, why),
                None => RelayMessage::notice(why),
            };
        }
    };
    let id = event.id;
    answer(id, admit::admit(shared, event, Arrival::Submitted).await)
}

fn answer(id: EventId, result: Result<Accepted, Rejected>) -> RelayMessage<'static> {
    match result {
        Ok(Accepted::Held) => RelayMessage::ok(id, true, HELD),
        Ok(Accepted::Served) => RelayMessage::ok(id, true, ""),
        Ok(Accepted::Duplicate) => RelayMessage::ok(id, true, "duplicate: it is here already"),
        Err(rejected) => RelayMessage::ok(id, false, rejected.to_string()),
    }
}
