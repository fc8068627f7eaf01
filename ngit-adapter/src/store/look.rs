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
use crate::{RepositoryId, nip34::Announcement};

/// One consistent look at an identifier: what is held, and the announcements and states that are served.
pub(super) struct Look {
    pub(super) identifier: Identifier,
    held: Vec<Entry>,
    announcements: Vec<StoredAnnouncement>,
    /// Only those with refs. Empty in a look that needs none.
    states: Vec<StoredState>,
    authority: Authority,
}

impl Look {
    pub(super) fn new(
        identifier: Identifier,
        held: Vec<Entry>,
        announcements: Vec<StoredAnnouncement>,
        states: Vec<StoredState>,
    ) -> Self {
        let authority = authority(&held, &announcements);
        Self { identifier, held, announcements, states, authority }
    }

    /// Who has authority, by the newest known announcement of each owner, held ones included.
    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) fn held(&self) -> &[Entry] {
        &self.held
    }

    pub(super) fn states(&self) -> &[StoredState] {
        &self.states
    }

    /// The owners whose announcements are served.
    pub(super) fn served_owners(&self) -> Vec<PublicKey> {
        self.announcements.iter().map(|it| it.owner).collect()
    }

    pub(super) fn is_served(&self, owner: &PublicKey) -> bool {
        self.announcements.iter().any(|it| it.owner == *owner)
    }

    pub(super) fn held_announcement(&self, owner: &PublicKey) -> Option<&Arc<Held>> {
        let mut announcements = self.held.iter().map(|entry| &entry.held);
        announcements.find(|held| held.author == *owner && held.announcement().is_some())
    }

    pub(super) fn repository(&self, owner: PublicKey) -> RepositoryId {
        RepositoryId::new(owner, self.identifier.clone())
    }

    /// For each owner the newest served state that names refs and has authority (R5).
    pub(super) fn newest_states(&self) -> BTreeMap<PublicKey, &StoredState> {
        let mut newest = BTreeMap::<PublicKey, &StoredState>::new();
        for state in &self.states {
            for owner in self.authority.owners_for(&state.author) {
                let known = newest.entry(owner).or_insert(state);
                if state.version > known.version {
                    *known = state;
                }
            }
        }
        newest
    }

    /// Takes an announcement that is new into account, in the place of an older one of its owner. Gives
    /// that one.
    pub(super) fn announce(&mut self, held: Arc<Held>) -> Option<Arc<Held>> {
        let older = self.held_announcement(&held.author).cloned();
        self.held.retain(|entry| older.as_ref().is_none_or(|older| entry.held.id != older.id));
        self.held.push(Entry::new(held, u64::MAX));
        self.authority = authority(&self.held, &self.announcements);
        older
    }

    /// Notes that an announcement is served from now on.
    pub(super) fn serve(&mut self, held: &Held) {
        let Some(announcement) = held.announcement() else { return };
        self.announcements.retain(|it| it.owner != held.author);
        self.announcements.push(StoredAnnouncement {
            owner: held.author,
            version: held.version(),
            announcement: Arc::clone(announcement),
        });
        self.forget(held);
    }

    /// Notes that a state with refs is served from now on.
    pub(super) fn serve_state(&mut self, state: StoredState) {
        self.states.retain(|it| it.author != state.author);
        self.states.push(state);
    }

    /// Notes that an event is not held any more.
    pub(super) fn forget(&mut self, held: &Held) {
        self.held.retain(|entry| entry.held.id != held.id);
        if held.announcement().is_some() {
            self.authority = authority(&self.held, &self.announcements);
        }
    }
}

fn authority(held: &[Entry], served: &[StoredAnnouncement]) -> Authority {
    let served = served.iter().map(|it| (it.owner, it.version, &it.announcement));
    let held = held.iter().filter_map(|entry| {
        let held = &entry.held;
        Some((held.author, held.version(), held.announcement()?))
    });
    let mut newest = BTreeMap::<PublicKey, (Version, &Arc<Announcement>)>::new();
    for (owner, version, announcement) in served.chain(held) {
        let known = newest.entry(owner).or_insert((version, announcement));
        if version > known.0 {
            *known = (version, announcement);
        }
    }
    Authority::new(newest.into_iter().map(|(owner, (_, it))| (owner, Arc::clone(it))))
}
