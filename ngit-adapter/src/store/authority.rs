use std::collections::{BTreeMap, HashMap, HashSet};

use nostr::key::PublicKey;

use crate::nip34::Announcement;

/// Who may say where the refs of which owner's repository point, for one identifier (R4).
///
/// A key has authority over an owner's repository if it is the owner, or is a maintainer of the
/// owner's announcement, or of the announcement of somebody who has authority, in any depth.
pub(super) struct Authority<'a> {
    announcements: BTreeMap<PublicKey, &'a Announcement>,
    /// Who names this key as a maintainer.
    named_by: HashMap<PublicKey, Vec<PublicKey>>,
}

impl<'a> Authority<'a> {
    /// From the newest known announcement of each owner.
    pub(super) fn new(announcements: impl Iterator<Item = (PublicKey, &'a Announcement)>) -> Self {
        let announcements: BTreeMap<_, _> = announcements.collect();
        let mut named_by = HashMap::<_, Vec<_>>::new();
        for (owner, announcement) in &announcements {
            for maintainer in &announcement.maintainers {
                named_by.entry(*maintainer).or_default().push(*owner);
            }
        }
        Self { announcements, named_by }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.announcements.is_empty()
    }

    pub(super) fn knows(&self, owner: &PublicKey) -> bool {
        self.announcements.contains_key(owner)
    }

    /// The owners over whose repositories this key has authority, in the order of their keys.
    pub(super) fn owners_for(&self, author: &PublicKey) -> Vec<PublicKey> {
        let mut reached = HashSet::from([*author]);
        let mut next = vec![*author];
        while let Some(key) = next.pop() {
            for owner in self.named_by.get(&key).into_iter().flatten() {
                if reached.insert(*owner) {
                    next.push(*owner);
                }
            }
        }
        reached.retain(|key| self.knows(key));
        let mut owners: Vec<_> = reached.into_iter().collect();
        owners.sort_unstable();
        owners
    }

    /// The announcements that speak for an owner's repository: the owner's, then those of the
    /// maintainers, the nearest first.
    pub(super) fn team(&self, owner: &PublicKey) -> Vec<&'a Announcement> {
        let mut reached = HashSet::from([*owner]);
        let mut team = Vec::new();
        let mut order = vec![*owner];
        let mut at = 0;
        while let Some(key) = order.get(at) {
            at += 1;
            let Some(&announcement) = self.announcements.get(key) else { continue };
            team.push(announcement);
            order.extend(announcement.maintainers.iter().filter(|key| reached.insert(**key)));
        }
        team
    }
}
