use std::{collections::BTreeMap, sync::Arc};

use nostr::key::PublicKey;
use purgatory_sync::Identifier;

use super::{
    authority::Authority,
    held::Held,
    purgatory::Entry,
    stored::{StoredAnnouncement, StoredState},
    version::Version,
};
use crate::nip34::Announcement;

/// One consistent look at an identifier: what is held, and the announcements and states that are served.
pub(super) struct Look {
    pub(super) identifier: Identifier,
    pub(super) held: Vec<Entry>,
    pub(super) announcements: Vec<StoredAnnouncement>,
    /// Only those with refs. Empty in a look that needs none.
    pub(super) states: Vec<StoredState>,
}

impl Look {
    /// Who has authority, by the newest known announcement of each owner, held ones included.
    pub(super) fn authority(&self) -> Authority<'_> {
        let stored = self.announcements.iter().map(|it| (it.owner, it.version, &it.announcement));
        let held = self.held.iter().filter_map(|entry| {
            let held = &entry.held;
            Some((held.author, held.version(), held.announcement()?))
        });
        Authority::new(newest(stored.chain(held)))
    }

    pub(super) fn is_served(&self, owner: &PublicKey) -> bool {
        self.announcements.iter().any(|it| it.owner == *owner)
    }

    pub(super) fn held_announcement(&self, owner: &PublicKey) -> Option<&Arc<Held>> {
        let mut announcements = self.held.iter().map(|entry| &entry.held);
        announcements.find(|held| held.author == *owner && held.announcement().is_some())
    }

    /// For each owner the newest served state that names refs and has authority (R5).
    pub(super) fn newest_states(
        &self,
        authority: &Authority<'_>,
    ) -> BTreeMap<PublicKey, &StoredState> {
        let mut newest = BTreeMap::<PublicKey, &StoredState>::new();
        for state in &self.states {
            for owner in authority.owners_for(&state.author) {
                let known = newest.entry(owner).or_insert(state);
                if state.version > known.version {
                    *known = state;
                }
            }
        }
        newest
    }

    /// Notes that an announcement is served from now on.
    pub(super) fn serve(&mut self, owner: PublicKey, version: Version, announcement: Announcement) {
        self.announcements.retain(|it| it.owner != owner);
        self.announcements.push(StoredAnnouncement { owner, version, announcement });
    }

    /// Notes that an event is not held any more.
    pub(super) fn forget(&mut self, held: &Held) {
        self.held.retain(|entry| entry.held.id != held.id);
    }
}

fn newest<'a>(
    all: impl Iterator<Item = (PublicKey, Version, &'a Announcement)>,
) -> impl Iterator<Item = (PublicKey, &'a Announcement)> {
    let mut newest = BTreeMap::<PublicKey, (Version, &Announcement)>::new();
    for (owner, version, announcement) in all {
        let known = newest.entry(owner).or_insert((version, announcement));
        if version > known.0 {
            *known = (version, announcement);
        }
    }
    newest.into_iter().map(|(owner, (_, announcement))| (owner, announcement))
}
