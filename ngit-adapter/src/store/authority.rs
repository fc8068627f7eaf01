use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use nostr::key::PublicKey;

use super::reach::{BitSet, Reach};
use crate::nip34::Announcement;

/// Who may say where the refs of which owner's repository point, for one identifier (R4).
///
/// A key has authority over an owner's repository if it is the owner, or is a maintainer of the
/// owner's announcement, or of the announcement of somebody who has authority, in any depth.
///
/// Strangers can announce the same identifier and name each other in any number: one pass over who
/// names whom answers for all of them, and only when it is asked for.
pub(super) struct Authority {
    /// The owners in the order of their keys, each with the newest known announcement.
    announcements: Vec<(PublicKey, Arc<Announcement>)>,
    say: OnceLock<Say>,
}

/// Who has a say where.
struct Say {
    /// By whom a key is named as a maintainer: places in the list of owners.
    named_by: HashMap<PublicKey, Vec<usize>>,
    /// From each owner, whoever names it, and so on.
    reach: Reach,
}

impl Authority {
    /// From the newest known announcement of each owner, in any order.
    pub(super) fn new(announcements: impl Iterator<Item = (PublicKey, Arc<Announcement>)>) -> Self {
        let mut announcements: Vec<_> = announcements.collect();
        announcements.sort_unstable_by_key(|(owner, _)| *owner);
        Self { announcements, say: OnceLock::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.announcements.is_empty()
    }

    pub(super) fn knows(&self, owner: &PublicKey) -> bool {
        self.place(owner).is_some()
    }

    fn place(&self, owner: &PublicKey) -> Option<usize> {
        self.announcements.binary_search_by_key(owner, |(owner, _)| *owner).ok()
    }

    /// The owners over whose repositories this key has authority, in the order of their keys.
    pub(super) fn owners_for(&self, author: &PublicKey) -> Vec<PublicKey> {
        let say = self.say.get_or_init(|| self.find_say());
        let named_by = say.named_by.get(author).into_iter().flatten().copied();
        let mut owners = BitSet::new(self.announcements.len());
        for place in named_by.chain(self.place(author)) {
            owners.add_all(say.reach.from(place));
        }
        owners.iter().map(|place| self.announcements[place].0).collect()
    }

    fn find_say(&self) -> Say {
        let mut named_by = HashMap::<_, Vec<_>>::new();
        for (place, (_, announcement)) in self.announcements.iter().enumerate() {
            for maintainer in &announcement.maintainers {
                named_by.entry(*maintainer).or_default().push(place);
            }
        }
        let next = self.announcements.iter().map(|(owner, _)| named_by.get(owner).cloned());
        let reach = Reach::new(&next.map(Option::unwrap_or_default).collect::<Vec<_>>());
        Say { named_by, reach }
    }

    /// The announcements that speak for an owner's repository: the owner's, then those of the
    /// maintainers, the nearest first.
    pub(super) fn team(&self, owner: &PublicKey) -> impl Iterator<Item = &Announcement> {
        let mut reached = HashSet::from([*owner]);
        let mut order = vec![*owner];
        let mut at = 0;
        std::iter::from_fn(move || {
            while let Some(key) = order.get(at) {
                at += 1;
                let Some(place) = self.place(key) else { continue };
                let announcement = &*self.announcements[place].1;
                order.extend(announcement.maintainers.iter().filter(|key| reached.insert(**key)));
                return Some(announcement);
            }
            None
        })
    }
}
