use std::collections::HashMap;

use nostr::{
    event::Event,
    filter::{Filter, MatchEventOptions},
    message::SubscriptionId,
};

use super::super::limits::MAX_FILTER_BYTES;

/// What one connection wants to be told. A subscription is here before the store is asked for it, so that
/// there is no gap between what is stored and what is live.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    open: HashMap<SubscriptionId, Subscription>,
    last_number: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Subscription {
    /// Tells it from others that had the same id before.
    number: u64,
    filters: Vec<Filter>,
    /// What was told up to here was saved before the store was asked.
    told_before: u64,
    bytes: usize,
}

/// Why a subscription is not opened. The text is for the client.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("rate-limited: this connection has {0} subscriptions already, close some")]
    TooMany(usize),
    #[error("rate-limited: the filters of this connection are too large, close some")]
    TooLarge,
}

impl Subscriptions {
    /// Opens a subscription in place of one with the same id, and gives its number. `bytes` is the size of its filters.
    pub(super) fn open(
        &mut self,
        id: SubscriptionId,
        filters: Vec<Filter>,
        bytes: usize,
        told_before: u64,
        most: usize,
    ) -> Result<u64, Refused> {
        let freed = self.open.get(&id).map_or(0, |old| old.bytes);
        if self.bytes - freed + bytes > MAX_FILTER_BYTES {
            return Err(Refused::TooLarge);
        }
        if self.open.len() >= most && !self.open.contains_key(&id) {
            return Err(Refused::TooMany(self.open.len()));
        }
        self.last_number += 1;
        let number = self.last_number;
        self.bytes = self.bytes - freed + bytes;
        self.open.insert(id, Subscription { number, filters, told_before, bytes });
        Ok(number)
    }

    pub(super) fn close(&mut self, id: &SubscriptionId) -> bool {
        let closed = self.open.remove(id);
        self.bytes -= closed.as_ref().map_or(0, |closed| closed.bytes);
        closed.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// The subscriptions that a live event is for, with their numbers. `told` is the event's number.
    pub(super) fn matching<'a>(
        &'a self,
        event: &'a Event,
        told: u64,
    ) -> impl Iterator<Item = (&'a SubscriptionId, u64)> {
        let wanted = move |it: &Subscription| {
            told > it.told_before
                && it.filters.iter().any(|filter| filter.match_event(event, MATCHING))
        };
        self.open.iter().filter(move |(_, it)| wanted(it)).map(|(id, it)| (id, it.number))
    }
}

const MATCHING: MatchEventOptions = MatchEventOptions::new();

#[cfg(test)]
mod tests {
    use nostr::event::{EventBuilder, FinalizeEvent, Kind};
    use nostr::key::Keys;

    use super::*;

    fn event(kind: u16) -> Event {
        let keys = Keys::parse("0000000000000000000000000000000000000000000000000000000000000003")
            .unwrap();
        EventBuilder::new(Kind::from(kind), "").finalize(&keys).unwrap()
    }

    fn open(
        all: &mut Subscriptions,
        id: &str,
        kind: u16,
        bytes: usize,
        told: u64,
    ) -> Result<u64, Refused> {
        let filters = vec![Filter::new().kind(Kind::from(kind))];
        all.open(SubscriptionId::new(id), filters, bytes, told, 3)
    }

    fn told(all: &Subscriptions, event: &Event, number: u64) -> Vec<String> {
        let mut ids: Vec<_> = all.matching(event, number).map(|(id, _)| id.to_string()).collect();
        ids.sort();
        ids
    }

    #[test]
    fn a_live_event_goes_to_those_who_asked_before_it_was_told() {
        let mut all = Subscriptions::default();
        open(&mut all, "a", 1, 10, 5).unwrap();
        open(&mut all, "b", 2, 10, 5).unwrap();
        open(&mut all, "c", 1, 10, 6).unwrap();
        assert_eq!(told(&all, &event(1), 5), Vec::<String>::new());
        assert_eq!(told(&all, &event(1), 6), ["a"]);
        assert_eq!(told(&all, &event(1), 7), ["a", "c"]);
        assert!(all.close(&SubscriptionId::new("a")) && !all.close(&SubscriptionId::new("a")));
        assert_eq!(told(&all, &event(1), 7), ["c"]);
    }

    /// R10: the number and the size of subscriptions are bounded; one that replaces another is not one more.
    #[test]
    fn their_number_and_size_are_bounded() {
        let mut all = Subscriptions::default();
        let first = open(&mut all, "a", 1, MAX_FILTER_BYTES, 0).unwrap();
        assert_eq!(open(&mut all, "b", 1, 1, 0), Err(Refused::TooLarge));
        assert!(open(&mut all, "a", 1, 1, 0).unwrap() > first);
        open(&mut all, "b", 1, 1, 0).unwrap();
        open(&mut all, "c", 1, 1, 0).unwrap();
        assert_eq!(open(&mut all, "d", 1, 1, 0), Err(Refused::TooMany(3)));
        open(&mut all, "c", 1, 1, 0).unwrap();
        for id in ["a", "b", "c"] {
            all.close(&SubscriptionId::new(id));
        }
        assert_eq!((all.bytes, all.len()), (0, 0));
    }
}
