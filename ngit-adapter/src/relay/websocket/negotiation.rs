use negentropy::{Id, Negentropy, NegentropyStorageVector};
use nostr::{event::EventId, types::Timestamp};

use super::super::limits::RECONCILIATION_FRAME;

/// One reconciliation (NIP-77): what is here, sealed at its start, against what a client says that it has.
#[derive(Debug)]
pub(super) struct Negotiation(Negentropy<'static, NegentropyStorageVector>);

/// What is wrong with a reconciliation. The text is for the client.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("invalid: a reconciliation message is hex")]
    NotHex,
    #[error("invalid: this is no reconciliation message")]
    NotUnderstood,
}

impl Negotiation {
    pub(super) fn new(items: Vec<(EventId, Timestamp)>) -> Result<Self, Broken> {
        let mut storage = NegentropyStorageVector::with_capacity(items.len());
        for (id, created_at) in items {
            storage
                .insert(created_at.as_secs(), Id::from_byte_array(id.to_bytes()))
                .map_err(|_| Broken::NotUnderstood)?;
        }
        storage.seal().map_err(|_| Broken::NotUnderstood)?;
        Negentropy::owned(storage, RECONCILIATION_FRAME)
            .map(Self)
            .map_err(|_| Broken::NotUnderstood)
    }

    /// The answer to a message, both in hex. It may take as long as a walk over all events that it is about.
    pub(super) fn answer(&mut self, message: &str) -> Result<String, Broken> {
        let message = from_hex(message).ok_or(Broken::NotHex)?;
        let answer = self.0.reconcile(&message).map_err(|_| Broken::NotUnderstood)?;
        Ok(to_hex(&answer))
    }
}

pub(in crate::relay) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

pub(in crate::relay) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;

    /// Ids as events have them, hashes: the protocol tells sets apart by the sum of their ids, so that ids that
    /// depend on each other would look alike.
    fn item(number: u32) -> (EventId, Timestamp) {
        let id = EventId::from_byte_array(Sha256::digest(number.to_be_bytes()).into());
        (id, Timestamp::from(1_700_000_000 + u64::from(number % 97)))
    }

    fn storage(numbers: &BTreeSet<u32>) -> NegentropyStorageVector {
        let mut storage = NegentropyStorageVector::new();
        for number in numbers {
            let (id, at) = item(*number);
            storage.insert(at.as_secs(), Id::from_byte_array(id.to_bytes())).unwrap();
        }
        storage.seal().unwrap();
        storage
    }

    /// Reconciles as a client would, and gives what it has that is not here, what it lacks, and how many rounds it took.
    fn reconcile(here: &BTreeSet<u32>, there: &BTreeSet<u32>) -> (usize, BTreeSet<EventId>, usize) {
        let mut relay = Negotiation::new(here.iter().map(|it| item(*it)).collect()).unwrap();
        let mut client = Negentropy::owned(storage(there), 4_096).unwrap();
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let mut next = Some(client.initiate().unwrap());
        let mut rounds = 0;
        while let Some(message) = next {
            rounds += 1;
            let answer = relay.answer(&to_hex(&message)).unwrap();
            let answer = from_hex(&answer).unwrap();
            next = client.reconcile_with_ids(&answer, &mut have, &mut need).unwrap();
        }
        let have: BTreeSet<_> = have.into_iter().collect();
        let need = need.iter().map(|id| EventId::from_byte_array(**id)).collect();
        (have.len(), need, rounds)
    }

    /// R9: a difference that does not fit one message is found over several rounds.
    #[test]
    fn it_takes_as_many_rounds_as_it_needs() {
        let here: BTreeSet<u32> = (0..20_000).collect();
        let there: BTreeSet<u32> =
            (0..20_000).filter(|it| it % 7 != 0).chain(30_000..30_500).collect();
        let (have, need, rounds) = reconcile(&here, &there);
        let missing: BTreeSet<_> = here.difference(&there).map(|it| item(*it).0).collect();
        assert_eq!((have, need), (500, missing));
        assert!(rounds > 2, "{rounds} rounds");
    }

    proptest! {
        /// R9: in the end a client knows exactly what it lacks and what only it has.
        #[test]
        fn the_difference_is_found(
            here in prop::collection::btree_set(0_u32..400, 0..200),
            there in prop::collection::btree_set(0_u32..400, 0..200),
        ) {
            let (have, need, _) = reconcile(&here, &there);
            let missing: BTreeSet<_> = here.difference(&there).map(|it| item(*it).0).collect();
            prop_assert_eq!(have, there.difference(&here).count());
            prop_assert_eq!(need, missing);
        }

        /// R10: any message is answered or refused.
        #[test]
        fn no_message_makes_it_panic(
            message in prop::collection::vec(any::<u8>(), 0..200), starts_right in any::<bool>(),
        ) {
            let mut relay = Negotiation::new((0..100).map(item).collect()).unwrap();
            let mut message = message;
            if starts_right && let Some(first) = message.first_mut() {
                *first = 0x61;
            }
            let _ = relay.answer(&to_hex(&message));
            prop_assert_eq!(relay.answer("6"), Err(Broken::NotHex));
            prop_assert_eq!(relay.answer("zz"), Err(Broken::NotHex));
        }
    }
}
