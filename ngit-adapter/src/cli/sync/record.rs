use serde::Serialize;

/// One line of `--json`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Record<'a> {
    /// A line of the input that is not used.
    Rejected { line: u64, reason: String },
    /// One request for objects.
    Fetch {
        identifier: &'a str,
        url: &'a str,
        domain: &'a str,
        wanted: usize,
        received: usize,
        outcome: &'a str,
        ms: u64,
    },
    /// An event was let go.
    Released { id: String, kind: u16, identifier: &'a str },
    /// An event is held at the end.
    Held {
        id: String,
        kind: u16,
        identifier: &'a str,
        missing: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The last line.
    Summary(Summary),
}

/// What came and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    /// Lines that are events, whatever their kind.
    pub(super) events: u64,
    /// Lines that are not used.
    pub(super) rejected: u64,
    /// Announcements.
    pub(super) announcements: u64,
    /// Patches: they carry their data.
    pub(super) passed: u64,
    /// Events of other kinds.
    pub(super) other: u64,
    /// States, pull requests and their updates that are held at the end.
    pub(super) held: u64,
    /// Those that were let go.
    pub(super) released: u64,
    /// Requests for objects.
    pub(super) fetches: u64,
    /// What they took on the wire.
    pub(super) http_requests: u64,
    /// How long all took, in milliseconds.
    pub(super) ms: u64,
}

impl Record<'_> {
    pub(super) fn to_line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written as JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_fields_that_are_promised_in_their_order() {
        let rejected = Record::Rejected { line: 3, reason: "it is \"bad\"\n".into() };
        assert_eq!(
            rejected.to_line(),
            r#"{"type":"rejected","line":3,"reason":"it is \"bad\"\n"}"#
        );
        let fetch = Record::Fetch {
            identifier: "a",
            url: "http://h/a",
            domain: "h",
            wanted: 3,
            received: 2,
            outcome: "partial",
            ms: 7,
        };
        assert_eq!(
            fetch.to_line(),
            r#"{"type":"fetch","identifier":"a","url":"http://h/a","domain":"h","wanted":3,"received":2,"outcome":"partial","ms":7}"#
        );
        let released = Record::Released { id: "00".into(), kind: 30_618, identifier: "a" };
        assert_eq!(
            released.to_line(),
            r#"{"type":"released","id":"00","kind":30618,"identifier":"a"}"#
        );
        let held = |reason: Option<&str>| Record::Held {
            id: "00".into(),
            kind: 1_618,
            identifier: "a",
            missing: vec!["11".into()],
            reason: reason.map(str::to_owned),
        };
        assert_eq!(
            held(None).to_line(),
            r#"{"type":"held","id":"00","kind":1618,"identifier":"a","missing":["11"]}"#
        );
        assert_eq!(
            held(Some("b")).to_line(),
            r#"{"type":"held","id":"00","kind":1618,"identifier":"a","missing":["11"],"reason":"b"}"#
        );
        assert_eq!(
            Record::Summary(Summary::default()).to_line(),
            r#"{"type":"summary","events":0,"rejected":0,"announcements":0,"passed":0,"other":0,"held":0,"released":0,"fetches":0,"http_requests":0,"ms":0}"#
        );
    }
}
