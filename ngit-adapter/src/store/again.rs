//! What is served and whose data is gone, or did not reach every sibling: put right, and hunted for once more.

use std::{collections::HashSet, sync::Arc, time::Duration};

use nostr::{
    event::{Event, EventId},
    key::PublicKey,
};
use purgatory_sync::{Identifier, Oid, StoreError};

use super::{
    event_store::{Inner, NostrEventStore},
    held::Held,
    look::Look,
    purgatory::Entry,
    stored,
};
use crate::nip34::GitEvent;

/// A served event, and the objects that have to be here for it.
#[derive(Debug)]
pub(crate) struct Complete {
    pub(crate) event: EventId,
    pub(crate) oids: Vec<Oid>,
}

impl NostrEventStore {
    /// The served events of a repository's name that need data: the states that its owners' refs follow, and pull
    /// requests and updates.
    pub(crate) async fn served_with_data(
        &self,
        identifier: &Identifier,
    ) -> Result<Vec<Complete>, StoreError> {
        let inner = self.inner();
        let _pass = inner.gates.enter(identifier).await;
        let look = inner.look(identifier).await?;
        let of_states = inner
            .leading(&look)
            .await?
            .into_iter()
            .map(|held| Complete { event: held.id, oids: held.oids().to_vec() });
        let mut all: Vec<_> = of_states.collect();
        let mut seen = HashSet::new();
        for owner in look.served_owners() {
            let pulls = stored::pull_requests(&*inner.database, &owner, identifier).await?;
            let pulls = pulls.into_iter().filter(|(id, _)| seen.insert(*id));
            all.extend(pulls.map(|(event, tip)| Complete { event, oids: vec![tip] }));
        }
        Ok(all)
    }

    /// Holds served events once more, for this long, so that the engine hunts for their data. They are served all the
    /// while. Says how many are held for it.
    pub(crate) async fn hold_again(
        &self,
        identifier: &Identifier,
        events: &[EventId],
        for_this_long: Duration,
    ) -> Result<usize, StoreError> {
        let inner = self.inner();
        let _pass = inner.gates.enter(identifier).await;
        let until = inner.now().saturating_add(for_this_long.as_secs());
        let mut held = 0;
        for id in events {
            let Some(event) = stored::event(&*inner.database, id).await? else { continue };
            let Some(again) = readable(&event, identifier) else { continue };
            let mut shelf = inner.shelf();
            // One that is held for its first time in the same place is newer.
            let slot_is_free = shelf.purgatory().in_slot(identifier, &again.slot()).is_none();
            if slot_is_free {
                shelf.hold(Entry::new(Arc::new(again), until), &inner.config);
                held += 1;
            }
        }
        inner.flush().await.map(|()| held)
    }

    /// Sees to it that every served owner's repository has the refs of the state that it follows, and of its pull requests,
    /// with their data, from a sibling if need be. Their objects are here, but for those of the events that lack some.
    ///
    /// Gives the first failure, after all that can be put right was.
    pub(crate) async fn put_right(
        &self,
        identifier: &Identifier,
        lacking: &HashSet<EventId>,
    ) -> Result<(), StoreError> {
        let inner = self.inner();
        let owners = {
            let _pass = inner.gates.enter(identifier).await;
            inner.look(identifier).await?.served_owners()
        };
        let mut result = Ok(());
        // One after the other: what comes for the repository meanwhile does not wait for all of them.
        for owner in owners {
            result = result.and(inner.put_one_right(identifier, owner, lacking).await);
        }
        result
    }
}

impl Inner {
    /// The same for one owner's repository.
    async fn put_one_right(
        &self,
        identifier: &Identifier,
        owner: PublicKey,
        lacking: &HashSet<EventId>,
    ) -> Result<(), StoreError> {
        let _pass = self.gates.enter(identifier).await;
        let look = self.look(identifier).await?;
        if !look.is_served(&owner) {
            return Ok(());
        }
        let newest = look.newest_states();
        let follows = newest.get(&owner).is_some_and(|it| !lacking.contains(&it.version.id()));
        let followed = if follows { self.follow(&look, &[owner]).await } else { Ok(()) };
        followed.and(self.keep_pull_requests(&look, &owner, lacking).await)
    }

    /// The served states that the refs of served repositories follow.
    async fn leading(&self, look: &Look) -> Result<Vec<Held>, StoreError> {
        let newest = look.newest_states();
        let led = newest.iter().filter(|(owner, _)| look.is_served(owner));
        let leading: HashSet<(PublicKey, EventId)> =
            led.map(|(_, state)| (state.author, state.version.id())).collect();
        let mut states = Vec::new();
        for (_, id) in leading {
            let event = stored::event(&*self.database, &id).await?;
            states.extend(event.and_then(|event| readable(&event, &look.identifier)));
        }
        Ok(states)
    }
}

fn readable(event: &Event, identifier: &Identifier) -> Option<Held> {
    let held = Held::new(event, GitEvent::read(event).ok()?)?;
    (held.identifier == *identifier && held.counts()).then_some(held)
}
