use std::collections::{HashMap, HashSet};

use crate::{CloneUrl, FetchErrorKind, Oid, candidates::Ask};

/// What one pass has asked: no URL is asked twice for the same object.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    asked: HashMap<CloneUrl, HashMap<Oid, Answer>>,
    again: HashMap<CloneUrl, HashSet<Oid>>,
    fetches: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Asking again soon is without hope.
    Final,
    /// Nothing is known: no answer yet, or one that may be another next time.
    Open,
}

impl Tried {
    /// How many requests were made.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches
    }

    pub(crate) fn was_asked(&self, url: &CloneUrl, oid: &Oid) -> bool {
        self.asked.get(url).is_some_and(|oids| oids.contains_key(oid))
    }

    /// Whether the URL was asked for anything.
    pub(crate) fn was_asked_at_all(&self, url: &CloneUrl) -> bool {
        self.asked.contains_key(url)
    }

    /// Whether the URL answered for this object, and for good.
    pub(crate) fn is_final(&self, url: &CloneUrl, oid: &Oid) -> bool {
        self.asked.get(url).and_then(|oids| oids.get(oid)) == Some(&Answer::Final)
    }

    /// Whether the fetcher wants to be asked again at this URL.
    pub(crate) fn has_again(&self, url: &CloneUrl) -> bool {
        self.again.contains_key(url)
    }

    /// Whether the fetcher wants to be asked for this object again at this URL.
    pub(crate) fn is_again(&self, url: &CloneUrl, oid: &Oid) -> bool {
        self.again.get(url).is_some_and(|oids| oids.contains(oid))
    }

    /// The request is about to go out.
    pub(crate) fn begin(&mut self, ask: &Ask) {
        self.fetches += 1;
        self.again.remove(&ask.url);
        let asked = self.asked.entry(ask.url.clone()).or_default();
        asked.extend(ask.oids.iter().map(|&oid| (oid, Answer::Open)));
    }

    /// The request was answered: what is not here now, the server does not have, unless the fetcher
    /// wants to be asked again for it. That has to be less than it was asked for: a fetcher that
    /// wants the same again could keep the pass for ever.
    pub(crate) fn answered(&mut self, ask: &Ask, ask_again: &[Oid]) {
        let asked_for: HashSet<&Oid> = ask.oids.iter().collect();
        let mut again: HashSet<Oid> =
            ask_again.iter().filter(|oid| asked_for.contains(oid)).copied().collect();
        if again.len() >= ask.oids.len() {
            again.clear();
        }
        let asked = self.asked.entry(ask.url.clone()).or_default();
        let settled = ask.oids.iter().filter(|oid| !again.contains(oid));
        asked.extend(settled.map(|&oid| (oid, Answer::Final)));
        if !again.is_empty() {
            self.again.insert(ask.url.clone(), again);
        }
    }

    /// The request failed as a whole.
    pub(crate) fn failed(&mut self, ask: &Ask, kind: FetchErrorKind) {
        if is_final(kind) {
            let asked = self.asked.entry(ask.url.clone()).or_default();
            asked.extend(ask.oids.iter().map(|&oid| (oid, Answer::Final)));
        }
    }
}

/// Whether a failure of this class will be the same the next time.
fn is_final(kind: FetchErrorKind) -> bool {
    use FetchErrorKind as K;
    matches!(kind, K::NotFound | K::Auth | K::Unsupported | K::Refused)
}
