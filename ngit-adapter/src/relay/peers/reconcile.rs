//! The asking side of NIP-77: which events does a peer have that are not here?

use std::collections::BTreeSet;

use negentropy::{Id, Negentropy, NegentropyStorageVector};
use nostr::{event::EventId, types::Timestamp};

use crate::relay::websocket::{from_hex, to_hex};

/// A comparison of what is here, as it was at its start, with what a peer has.
#[derive(Debug)]
pub(super) struct Reconciliation {
    negentropy: Negentropy<'static, NegentropyStorageVector>,
    lacking: BTreeSet<EventId>,
    rounds: u32,
}

/// How a comparison goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// This has to be sent.
    Send(String),
    /// All that is lacking is known, or as much as is asked for at once.
    Enough { all: bool },
}

/// The peer's message is none, or the comparison takes too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// The most bytes of one of our messages, before it is written in hex.
const FRAME: u64 = 32 << 10;
/// How many lacking events are noted before they are asked for.
const MAX_LACKING: usize = 20_000;
/// How many messages a comparison takes: ours have 1,000 ids, a peer's may have fewer.
const MAX_ROUNDS: u32 = 1_000;

impl Reconciliation {
    /// Begins one with what is here, and gives its first message.
    pub(super) fn begin(here: Vec<(EventId, Timestamp)>) -> Result<(Self, String), Broken> {
        let mut storage = NegentropyStorageVector::with_capacity(here.len());
        for (id, created_at) in here {
            let id = Id::from_byte_array(id.to_bytes());
            storage.insert(created_at.as_secs(), id).map_err(|_| Broken)?;
        }
        storage.seal().map_err(|_| Broken)?;
        let mut negentropy = Negentropy::owned(storage, FRAME).map_err(|_| Broken)?;
        let first = negentropy.initiate().map_err(|_| Broken)?;
        Ok((Self { negentropy, lacking: BTreeSet::new(), rounds: 0 }, to_hex(&first)))
    }

    /// Takes a message of the peer. It may take as long as a walk over all events that it is about.
    pub(super) fn hear(&mut self, message: &str) -> Result<Turn, Broken> {
        self.rounds += 1;
        let message = from_hex(message).ok_or(Broken)?;
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let next = self.negentropy.reconcile_with_ids(&message, &mut have, &mut need);
        let next = next.map_err(|_| Broken)?;
        self.lacking.extend(need.iter().map(|id| EventId::from_byte_array(**id)));
        match next {
            None => Ok(Turn::Enough { all: true }),
            Some(_) if self.lacking.len() >= MAX_LACKING => Ok(Turn::Enough { all: false }),
            Some(_) if self.rounds >= MAX_ROUNDS => Err(Broken),
            Some(next) => Ok(Turn::Send(to_hex(&next))),
        }
    }

    /// What the peer says that it has, and is not here.
    pub(super) fn into_lacking(self) -> Vec<EventId> {
        self.lacking.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;

    fn item(number: u32) -> (EventId, Timestamp) {
        let id = EventId::from_byte_array(Sha256::digest(number.to_be_bytes()).into());
        (id, Timestamp::from(1_700_000_000 + u64::from(number % 97)))
    }

    fn items(numbers: impl IntoIterator<Item = u32>) -> Vec<(EventId, Timestamp)> {
        numbers.into_iter().map(item).collect()
    }

    /// A peer that has these, and a comparison with it to its end or until there is enough.
    fn compare(here: &BTreeSet<u32>, there: &BTreeSet<u32>) -> (Vec<EventId>, bool) {
        let mut storage = NegentropyStorageVector::new();
        for (id, at) in items(there.iter().copied()) {
            storage.insert(at.as_secs(), Id::from_byte_array(id.to_bytes())).unwrap();
        }
        storage.seal().unwrap();
        let mut peer = Negentropy::owned(storage, 128 << 10).unwrap();
        let (mut ours, mut next) = Reconciliation::begin(items(here.iter().copied())).unwrap();
        loop {
            let answer = peer.reconcile(&from_hex(&next).unwrap()).unwrap();
            match ours.hear(&to_hex(&answer)).unwrap() {
                Turn::Send(message) => next = message,
                Turn::Enough { all } => return (ours.into_lacking(), all),
            }
        }
    }

    /// R9: of a great many only a part is noted at once, and that part is really lacking.
    #[test]
    fn what_is_lacking_is_noted_in_parts() {
        let there: BTreeSet<u32> = (0..30_000).collect();
        let (lacking, all) = compare(&BTreeSet::new(), &there);
        assert!(!all && (MAX_LACKING..30_000).contains(&lacking.len()), "{}", lacking.len());
        let known: BTreeSet<_> = items(there).into_iter().map(|it| it.0).collect();
        assert!(lacking.iter().all(|id| known.contains(id)));
    }

    proptest! {
        /// R9: in the end exactly what is lacking is known.
        #[test]
        fn exactly_what_is_lacking_is_found(
            here in prop::collection::btree_set(0_u32..400, 0..200),
            there in prop::collection::btree_set(0_u32..400, 0..200),
        ) {
            let (lacking, all) = compare(&here, &there);
            let mut expected: Vec<_> = there.difference(&here).map(|it| item(*it).0).collect();
            expected.sort();
            prop_assert!(all);
            prop_assert_eq!(lacking, expected);
        }

        /// R9: no message of a peer makes it panic, or go on for ever.
        #[test]
        fn no_message_makes_it_panic(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
        ) {
            let (mut ours, _) = Reconciliation::begin(items(0..100)).unwrap();
            prop_assert_eq!(ours.hear("6"), Err(Broken));
            for mut message in messages {
                if let Some(first) = message.first_mut() {
                    *first = 0x61;
                }
                let _ = ours.hear(&to_hex(&message));
            }
        }
    }
}
