use std::collections::{BTreeSet, HashSet};

use nostr::{
    event::{Event, EventId},
    key::PublicKey,
};
use nostr_database::{DatabaseEventStatus, RejectedReason, SaveEventStatus};
use purgatory_sync::{Identifier, StoreError};

use super::{
    admission::{AdmitError, Outcome},
    event_store::Inner,
    held::Held,
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

impl Deletion {
    pub(super) fn read(event: &Event) -> Self {
        let values = |name| {
            let tags = event.tags.iter().filter(move |tag| tag.kind() == name);
            tags.filter_map(|tag| tag.content())
        };
        Self {
            author: event.pubkey,
            created_at: event.created_at.as_secs(),
            ids: values("e").filter_map(|id| EventId::from_hex(id).ok()).collect(),
            addresses: values("a").filter_map(|it| address(it, &event.pubkey)).collect(),
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

    /// The identifiers of the announcements and states that it names by their addresses.
    fn addressed(&self) -> impl Iterator<Item = Identifier> {
        let git = self.addresses.iter().filter(|(kind, _)| matches!(kind, 30617 | 30618));
        git.map(|(_, identifier)| Identifier::from(identifier.as_str()))
    }
}

impl Inner {
    /// Lets an author's own held events go, and has the database do the same with what is served.
    pub(super) async fn delete(&self, event: &Event) -> Result<Outcome, AdmitError> {
        if stored::status(&*self.database, &event.id).await? == DatabaseEventStatus::Saved {
            return Ok(Outcome::Duplicate);
        }
        let deletion = Deletion::read(event);
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
        let mut identifiers = Vec::new();
        for identifier in self.touched(&deletion) {
            if self.delete_of(&identifier, &deletion).await? {
                identifiers.push(identifier);
            }
        }
        Ok(Outcome::Deletion { identifiers })
    }

    /// The identifiers that a deletion may be about.
    fn touched(&self, deletion: &Deletion) -> BTreeSet<Identifier> {
        let shelf = self.shelf();
        let held = deletion.ids.iter().filter_map(|id| shelf.purgatory().find(id));
        held.map(|entry| entry.held.identifier.clone()).chain(deletion.addressed()).collect()
    }

    async fn delete_of(
        &self,
        identifier: &Identifier,
        deletion: &Deletion,
    ) -> Result<bool, StoreError> {
        let _pass = self.gates.enter(identifier).await;
        let gone: Vec<EventId> = {
            let shelf = self.shelf();
            let held = shelf.purgatory().entries(identifier).iter().map(|entry| &entry.held);
            held.filter(|held| deletion.covers_held(held)).map(|held| held.id).collect()
        };
        self.let_go(&gone);
        self.flush().await?;
        // Without the announcement or the state that went, other states may lead.
        let look = self.look(identifier).await?;
        let owners = look.served_owners();
        self.follow(&look, &owners).await?;
        Ok(!gone.is_empty() || !owners.is_empty())
    }
}

/// Reads `<kind>:<author>:<identifier>` if it is the author's own.
fn address(value: &str, author: &PublicKey) -> Option<Address> {
    let mut parts = value.splitn(3, ':');
    let kind = parts.next()?.parse().ok()?;
    let own = PublicKey::from_hex(parts.next()?).ok()? == *author;
    own.then_some((kind, parts.next()?.to_owned()))
}
