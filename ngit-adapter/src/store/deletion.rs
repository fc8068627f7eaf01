use std::collections::{BTreeSet, HashSet};

use nostr::{
    event::{Event, EventId, Kind},
    key::PublicKey,
};
use nostr_database::{DatabaseEventStatus, RejectedReason, SaveEventStatus};
use purgatory_sync::{Identifier, StoreError};

use super::{
    admission::{AdmitError, Outcome},
    event_store::Inner,
    held::{Held, Slot},
    stored,
};
use crate::nip34;

/// What an author asks to be deleted: kind 5. It takes effect on that author's own events only.
pub(super) struct Deletion {
    author: PublicKey,
    created_at: u64,
    ids: HashSet<EventId>,
    addresses: HashSet<Address>,
}

/// An addressable event's kind and identifier. Its author is the deletion's.
type Address = (u16, String);

/// How many ids, and how many addresses, of one deletion count. Each costs a look.
const MOST: usize = 1_000;

impl Deletion {
    pub(super) fn read(event: &Event) -> Self {
        let values = |name| {
            let tags = event.tags.iter().filter(move |tag| tag.kind() == name);
            tags.filter_map(|tag| tag.content())
        };
        Self {
            author: event.pubkey,
            created_at: event.created_at.as_secs(),
            ids: values("e").filter_map(|id| EventId::from_hex(id).ok()).take(MOST).collect(),
            addresses: values("a").filter_map(|it| address(it, &event.pubkey)).take(MOST).collect(),
        }
    }

    /// Whether it is about this event: by its id, or by its address if it is not newer than the deletion.
    pub(super) fn covers(&self, event: &Event) -> bool {
        let address = || {
            let identifier = nip34::identifier(&event.tags).ok()?;
            Some((event.kind.as_u16(), identifier.as_str().to_owned()))
        };
        self.author == event.pubkey
            && (self.ids.contains(&event.id)
                || event.created_at.as_secs() <= self.created_at
                    && event.kind.is_addressable()
                    && address().is_some_and(|address| self.addresses.contains(&address)))
    }

    /// The same of a held event.
    pub(super) fn covers_held(&self, held: &Held) -> bool {
        let address = || (held.kind.as_u16(), held.identifier.as_str().to_owned());
        self.author == held.author
            && (self.ids.contains(&held.id)
                || held.created_at <= self.created_at
                    && held.kind.is_addressable()
                    && self.addresses.contains(&address()))
    }
}

impl Inner {
    /// Lets an author's own held events go, and has the database do the same with what is served.
    pub(super) async fn delete(&self, event: &Event) -> Result<Outcome, AdmitError> {
        if stored::status(&*self.database, &event.id).await? == DatabaseEventStatus::Saved {
            return Ok(Outcome::Duplicate);
        }
        let deletion = Deletion::read(event);
        let served = self.served_of(&deletion).await?;
        // Saved first: what comes later than its deletion finds it there.
        let saved =
            self.database.save_event(event).await.map_err(|error| {
                StoreError::new("an event could not be saved").with_source(error)
            })?;
        if let SaveEventStatus::Rejected(
            RejectedReason::Deleted | RejectedReason::Expired | RejectedReason::Vanished,
        ) = saved
        {
            return Ok(Outcome::Deleted);
        }
        let mut identifiers = self.held_of(&deletion);
        for identifier in &identifiers {
            let _pass = self.gates.enter(identifier).await;
            self.delete_held(identifier, &deletion);
        }
        for identifier in &served {
            let _pass = self.gates.enter(identifier).await;
            // Without what went, other states may lead.
            let look = self.look(identifier).await?;
            self.follow(&look, &look.served_owners()).await?;
        }
        self.flush().await?;
        identifiers.extend(served);
        Ok(Outcome::Deletion { identifiers: identifiers.into_iter().collect() })
    }

    /// The identifiers of the held events that it is about.
    fn held_of(&self, deletion: &Deletion) -> BTreeSet<Identifier> {
        let shelf = self.shelf();
        let purgatory = shelf.purgatory();
        let by_id = deletion.ids.iter().filter_map(|id| purgatory.find(id)).map(|it| &it.held);
        let by_address = deletion.addresses.iter().filter_map(|(kind, identifier)| {
            let slot = match kind {
                30617 => Slot::Announcement(deletion.author),
                30618 => Slot::State(deletion.author),
                _ => return None,
            };
            purgatory.in_slot(&Identifier::from(identifier.as_str()), &slot)
        });
        let about = by_id.chain(by_address).filter(|held| deletion.covers_held(held));
        about.map(|held| held.identifier.clone()).collect()
    }

    fn delete_held(&self, identifier: &Identifier, deletion: &Deletion) {
        let gone: Vec<EventId> = {
            let shelf = self.shelf();
            let held = shelf.purgatory().entries(identifier).iter().map(|entry| &entry.held);
            held.filter(|held| deletion.covers_held(held)).map(|held| held.id).collect()
        };
        self.let_go(&gone);
    }

    /// The identifiers of the served announcements and states that it is about.
    async fn served_of(&self, deletion: &Deletion) -> Result<BTreeSet<Identifier>, StoreError> {
        let mut identifiers = BTreeSet::new();
        for id in &deletion.ids {
            if let Some(event) = stored::event(&*self.database, id).await?
                && event.kind.is_addressable()
                && deletion.covers(&event)
            {
                identifiers.extend(nip34::identifier(&event.tags).ok());
            }
        }
        for (kind, identifier) in &deletion.addresses {
            let identifier = Identifier::from(identifier.as_str());
            let kind = Kind::from_u16(*kind);
            if matches!(kind, Kind::GitRepoAnnouncement | Kind::RepoState)
                && stored::newest_of(&*self.database, deletion.author, kind, &identifier)
                    .await?
                    .is_some()
            {
                identifiers.insert(identifier);
            }
        }
        Ok(identifiers)
    }
}

/// Reads `<kind>:<author>:<identifier>` if it is the author's own.
fn address(value: &str, author: &PublicKey) -> Option<Address> {
    let mut parts = value.splitn(3, ':');
    let kind = parts.next()?.parse().ok()?;
    let own = PublicKey::from_hex(parts.next()?).ok()? == *author;
    own.then_some((kind, parts.next()?.to_owned()))
}
