use std::collections::{BTreeSet, HashMap};

use nostr::{event::EventId, key::PublicKey};

/// How much of what is held each author has.
#[derive(Default)]
pub(super) struct Shares {
    events: BTreeSet<(PublicKey, EventId)>,
    counts: HashMap<PublicKey, usize>,
    /// The authors with more than [`FEW`] events, by how many: the others are too many to be sorted.
    many: BTreeSet<(usize, PublicKey)>,
}

/// An author with so many events is like any other.
const FEW: usize = 16;

impl Shares {
    pub(super) fn add(&mut self, author: PublicKey, id: EventId) {
        if self.events.insert((author, id)) {
            let before = self.count(&author);
            self.set(author, before, before + 1);
        }
    }

    pub(super) fn remove(&mut self, author: PublicKey, id: EventId) {
        if self.events.remove(&(author, id)) {
            let before = self.count(&author);
            self.set(author, before, before - 1);
        }
    }

    fn set(&mut self, author: PublicKey, before: usize, now: usize) {
        self.many.remove(&(before, author));
        if now > FEW {
            self.many.insert((now, author));
        }
        if now == 0 {
            self.counts.remove(&author);
        } else {
            self.counts.insert(author, now);
        }
    }

    /// How many events of this author are held.
    pub(super) fn count(&self, author: &PublicKey) -> usize {
        self.counts.get(author).copied().unwrap_or_default()
    }

    /// An event of the author with the most, and how many those are, if that one has more than a few, and more
    /// than the given author would have with one more.
    pub(super) fn of_greediest(&self, than: &PublicKey) -> Option<(EventId, usize)> {
        let (most, author) = self.many.last()?;
        let first = EventId::from_byte_array([0; 32]);
        let (_, event) = self.events.range((*author, first)..).next()?;
        (*most > self.count(than) + 1).then_some((*event, *most))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn author(number: u8) -> PublicKey {
        PublicKey::from_byte_array([number; 32])
    }

    fn id(number: u8) -> EventId {
        EventId::from_byte_array([number; 32])
    }

    proptest! {
        /// What a plain list of (author, event) says, after any additions and removals.
        #[test]
        fn it_agrees_with_a_plain_list(
            steps in prop::collection::vec((any::<bool>(), 0_u8..4, 0_u8..60), 0..400),
            than in 0_u8..5,
        ) {
            let (mut shares, mut list) = (Shares::default(), BTreeSet::new());
            for (adds, by, event) in steps {
                if adds {
                    shares.add(author(by), id(event));
                    list.insert((author(by), id(event)));
                } else {
                    shares.remove(author(by), id(event));
                    list.remove(&(author(by), id(event)));
                }
            }
            let count = |who: &PublicKey| list.iter().filter(|(by, _)| by == who).count();
            for number in 0..5 {
                prop_assert_eq!(shares.count(&author(number)), count(&author(number)));
            }
            let than = author(than);
            let most = list.iter().map(|(by, _)| count(by)).max().unwrap_or_default();
            match shares.of_greediest(&than) {
                Some((found, many)) => {
                    prop_assert!(most > FEW && most > count(&than) + 1 && most == many);
                    prop_assert!(list.iter().any(|(by, it)| *it == found && count(by) == most));
                }
                None => prop_assert!(most <= FEW || most <= count(&than) + 1),
            }
        }
    }
}
