use std::collections::{HashSet, VecDeque};

use nostr::event::EventId;

/// How many are remembered.
const MOST: usize = 4_096;

/// What was sent from the store a short while ago, so that it is not sent again as live: an event that is
/// saved while a query runs is found by it, and told right after.
#[derive(Debug, Default)]
pub(super) struct RecentlySent {
    known: HashSet<(u64, EventId)>,
    order: VecDeque<(u64, EventId)>,
}

impl RecentlySent {
    /// Remembers that an event was sent to the subscription of this number. The oldest one is forgotten for it.
    pub(super) fn note(&mut self, subscription: u64, id: EventId) {
        if !self.known.insert((subscription, id)) {
            return;
        }
        self.order.push_back((subscription, id));
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, subscription: u64, id: EventId) -> bool {
        self.known.contains(&(subscription, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_remembers_the_newest_and_does_not_grow() {
        let id = |number: u32| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            EventId::from_byte_array(bytes)
        };
        let mut sent = RecentlySent::default();
        for number in 0..10_000 {
            sent.note(1, id(number));
            sent.note(1, id(number));
        }
        assert_eq!((sent.known.len(), sent.order.len()), (MOST, MOST));
        assert!(sent.contains(1, id(9_999)) && !sent.contains(2, id(9_999)));
        assert!(sent.contains(1, id(10_000 - 4_096)) && !sent.contains(1, id(10_000 - 4_097)));
    }
}
