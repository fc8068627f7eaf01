//! What a peer says, read once at the edge.

use serde_json::value::RawValue;

/// A message of a relay.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// An event of a subscription, not checked yet.
    Event {
        subscription: String,
        json: &'a str,
    },
    EndOfStored(String),
    Closed(String, String),
    Notice(String),
    Reconcile(String, String),
    ReconcileRefused(String, String),
    /// Something of no use here.
    Other,
}

/// The most characters of a peer's words that are kept.
const MAX_WORDS: usize = 200;
/// The most bytes of a subscription's id: ours are short.
const MAX_ID: usize = 64;

/// Reads a message. Nothing if it is none.
pub(super) fn read(text: &str) -> Option<Said<'_>> {
    let parts: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let at = |index: usize| parts.get(index).and_then(|it| string(it));
    let id = || at(1).filter(|id| id.len() <= MAX_ID);
    let words = |index| clip(at(index).unwrap_or_default());
    Some(match at(0)?.as_str() {
        "EVENT" => Said::Event { subscription: id()?, json: parts.get(2)?.get() },
        "EOSE" => Said::EndOfStored(id()?),
        "CLOSED" => Said::Closed(id()?, words(2)),
        "NOTICE" => Said::Notice(words(1)),
        "NEG-MSG" => Said::Reconcile(id()?, at(2)?),
        "NEG-ERR" => Said::ReconcileRefused(id()?, words(2)),
        _ => Said::Other,
    })
}

fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

fn clip(mut words: String) -> String {
    if let Some((end, _)) = words.char_indices().nth(MAX_WORDS) {
        words.truncate(end);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_relays_say_is_read() {
        let json = r#"{"id":"x"}"#;
        let event = format!(r#"["EVENT","a",{json}]"#);
        assert_eq!(read(&event), Some(Said::Event { subscription: "a".to_owned(), json }));
        assert_eq!(read(r#"["EOSE","a"]"#), Some(Said::EndOfStored("a".to_owned())));
        let closed = Said::Closed("a".to_owned(), "no".to_owned());
        assert_eq!(read(r#"["CLOSED","a","no"]"#), Some(closed));
        let refused = Said::ReconcileRefused("a".to_owned(), String::new());
        assert_eq!(read(r#"["NEG-ERR","a"]"#), Some(refused));
        let reconcile = Said::Reconcile("a".to_owned(), "61".to_owned());
        assert_eq!(read(r#"["NEG-MSG","a","61"]"#), Some(reconcile));
        assert_eq!(read(r#"["AUTH","challenge"]"#), Some(Said::Other));
        let long = format!(r#"["NOTICE","{}"]"#, "ä".repeat(10_000));
        assert_eq!(read(&long), Some(Said::Notice(format!("{}…", "ä".repeat(MAX_WORDS)))));
    }

    #[test]
    fn what_is_no_message_is_none() {
        let long = format!(r#"["EOSE","{}"]"#, "x".repeat(MAX_ID + 1));
        let deep = "[".repeat(100_000);
        for text in ["", "{}", "[]", "[1]", r#"["EVENT","a"]"#, r#"["EVENT",1,{}]"#, &long, &deep] {
            assert_eq!(read(text), None);
        }
    }

    proptest! {
        /// R9: no text makes it panic.
        #[test]
        fn any_text_is_read_or_not(text in r#"[\["A-Z\-a-z{}:,0-9\\ ]{0,60}"#) {
            let _ = read(&text);
        }
    }
}
