//! What a client says, read once at the edge.

use nostr::{
    event::EventId,
    filter::Filter,
    message::{ClientMessage, SubscriptionId},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::limits::{MAX_FILTERS, MAX_QUERY_BYTES, MAX_SUBSCRIPTION_ID};

/// A message of a client.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// An event, not checked yet.
    Event(&'a str),
    Request {
        id: SubscriptionId,
        filters: Vec<Filter>,
    },
    Count {
        id: SubscriptionId,
        filter: Filter,
    },
    Close(SubscriptionId),
    Reconcile {
        id: SubscriptionId,
        filter: Filter,
        first: String,
    },
    ReconcileOn {
        id: SubscriptionId,
        next: String,
    },
    ReconcileEnd(SubscriptionId),
}

/// What is wrong with a message, said where its sender looks for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// For no subscription of theirs.
    Notice(String),
    /// For this subscription or count.
    Closed(SubscriptionId, String),
    /// For this reconciliation.
    NegErr(SubscriptionId, String),
}

/// Reads a message.
pub(super) fn read(text: &str) -> Result<Message<'_>, Malformed> {
    let parts: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|_| notice("a message is a JSON array, with its name first"))?;
    let name = parts.first().and_then(|it| string(it)).unwrap_or_default();
    if name == "EVENT" {
        return match parts.get(1) {
            Some(event) => Ok(Message::Event(event.get())),
            None => Err(notice("EVENT without an event")),
        };
    }
    let id = parts.get(1).and_then(|it| string(it));
    if !matches!(name.as_str(), "REQ" | "COUNT" | "CLOSE" | "NEG-OPEN" | "NEG-MSG" | "NEG-CLOSE") {
        return Err(notice(
            "this message is not known here: EVENT, REQ, CLOSE, COUNT, NEG-OPEN, NEG-MSG and NEG-CLOSE are",
        ));
    }
    let id = match id {
        Some(id) if !id.is_empty() && id.len() <= MAX_SUBSCRIPTION_ID => SubscriptionId::new(id),
        _ => {
            return Err(notice(&format!("{name} needs an id of 1 to {MAX_SUBSCRIPTION_ID} bytes")));
        }
    };
    query(&name, &id, text).map_err(|why| match name.as_str() {
        "REQ" | "COUNT" => Malformed::Closed(id, why),
        "CLOSE" | "NEG-CLOSE" => Malformed::Notice(why),
        _ => Malformed::NegErr(id, why),
    })
}

fn query<'a>(name: &str, id: &SubscriptionId, text: &str) -> Result<Message<'a>, String> {
    if text.len() > MAX_QUERY_BYTES {
        return Err(format!(
            "invalid: the message has {} bytes, at most {MAX_QUERY_BYTES} are taken",
            text.len()
        ));
    }
    let message = serde_json::from_str(text)
        .map_err(|_| format!("invalid: this {name} has not the parts that it needs"))?;
    let id = id.clone();
    Ok(match message {
        ClientMessage::Req { filters, .. } => {
            let filters: Vec<_> = filters.into_iter().map(|it| it.into_owned()).collect();
            if filters.len() > MAX_FILTERS {
                return Err(format!("invalid: at most {MAX_FILTERS} filters are taken"));
            }
            filters.iter().try_for_each(usable)?;
            Message::Request { id, filters }
        }
        ClientMessage::Count { filter, .. } => {
            usable(&filter)?;
            Message::Count { id, filter: filter.into_owned() }
        }
        ClientMessage::Close(_) => Message::Close(id),
        ClientMessage::NegOpen { filter, initial_message, .. } => {
            usable(&filter)?;
            Message::Reconcile {
                id,
                filter: filter.into_owned(),
                first: initial_message.into_owned(),
            }
        }
        ClientMessage::NegMsg { message, .. } => {
            Message::ReconcileOn { id, next: message.into_owned() }
        }
        ClientMessage::NegClose { .. } => Message::ReconcileEnd(id),
        ClientMessage::Event(_) | ClientMessage::Auth(_) => {
            return Err("invalid: a message of two kinds".to_owned());
        }
    })
}

fn usable(filter: &Filter) -> Result<(), String> {
    if filter.search.is_some() {
        return Err("unsupported: this relay does not search".to_owned());
    }
    Ok(())
}

/// The id that something says it has, if it is worth an answer of its own.
pub(super) fn claimed_id(event: &str) -> Option<EventId> {
    #[derive(Deserialize)]
    struct Claim {
        id: EventId,
    }
    serde_json::from_str::<Claim>(event).ok().map(|claim| claim.id)
}

fn notice(what: &str) -> Malformed {
    Malformed::Notice(format!("invalid: {what}"))
}

fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// R10: whatever is wrong is said, and said to the subscription if there is one.
    #[test]
    fn what_is_wrong_is_said_where_it_belongs() {
        for text in [
            "",
            "{}",
            "[",
            "nonsense",
            "[]",
            "[1]",
            "[[]]",
            r#"["HELLO"]"#,
            r#"["EVENT"]"#,
            r#"["REQ"]"#,
            r#"["REQ",5,{}]"#,
            r#"["CLOSE",""]"#,
            r#"["AUTH",{}]"#,
        ] {
            assert!(matches!(read(text), Err(Malformed::Notice(_))), "{text}");
        }
        let long = format!(r#"["REQ","{}",{{}}]"#, "x".repeat(257));
        assert!(matches!(read(&long), Err(Malformed::Notice(_))));
        for text in [
            r#"["REQ","a"]"#,
            r#"["REQ","a",5]"#,
            r#"["COUNT","a",{"kinds":"x"}]"#,
            r#"["REQ","a",{"search":"x"}]"#,
            r#"["REQ","a",{"ids":["zz"]}]"#,
        ] {
            assert!(matches!(read(text), Err(Malformed::Closed(_, _))), "{text}");
        }
        for text in [
            r#"["NEG-OPEN","a",{}]"#,
            r#"["NEG-MSG","a"]"#,
            r#"["NEG-OPEN","a",{"search":""},"61"]"#,
        ] {
            assert!(matches!(read(text), Err(Malformed::NegErr(_, _))), "{text}");
        }
        let many = format!(r#"["REQ","a"{}]"#, ",{}".repeat(21));
        assert!(matches!(read(&many), Err(Malformed::Closed(_, _))));
    }

    #[test]
    fn what_is_right_is_read() {
        assert!(matches!(read(r#"["EVENT",{"id":1}]"#), Ok(Message::Event(r#"{"id":1}"#))));
        assert!(
            matches!(read(r#"["REQ","a",{},{"limit":0}]"#), Ok(Message::Request { filters, .. }) if filters.len() == 2)
        );
        assert!(matches!(read(r#"["COUNT","a",{}]"#), Ok(Message::Count { .. })));
        assert!(matches!(read(r#"["CLOSE","a"]"#), Ok(Message::Close(_))));
        assert!(matches!(read(r#"["NEG-OPEN","a",{},"61"]"#), Ok(Message::Reconcile { .. })));
        assert!(matches!(read(r#"["NEG-MSG","a","61"]"#), Ok(Message::ReconcileOn { .. })));
        assert!(matches!(read(r#"["NEG-CLOSE","a"]"#), Ok(Message::ReconcileEnd(_))));
    }

    proptest! {
        /// R10: no text makes it panic.
        #[test]
        fn any_text_is_answered(text in r#"[\["A-Z\-a-z{}:,0-9\\ ]{0,60}"#) {
            let _ = read(&text);
            let _ = claimed_id(&text);
        }
    }
}
