use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use nostr_database::NostrDatabase;
use purgatory_sync::{EventStore, Identifier, Needs, Oid, Released, StoreError};

use super::{
    builder::{Clock, NostrEventStoreBuilder},
    config::StoreConfig,
    durable::SharedJournal,
    gates::Gates,
    listing::{self, HeldEvent},
    look::Look,
    needs,
    observer::StoreObserver,
    shelf::Shelf,
    stored,
};
use crate::RefKeeper;

/// Holds git events back until their data is here, over any nostr database. Cheap to clone.
#[derive(Clone)]
pub struct NostrEventStore(Arc<Inner>);

pub(super) struct Inner {
    pub(super) database: Arc<dyn NostrDatabase>,
    pub(super) refs: Arc<dyn RefKeeper>,
    pub(super) observer: Arc<dyn StoreObserver>,
    pub(super) config: StoreConfig,
    pub(super) gates: Gates,
    clock: Clock,
    pub(super) journal: Option<SharedJournal>,
    shelf: Mutex<Shelf>,
}

impl NostrEventStore {
    /// Begins a store over a database and whatever keeps the refs.
    pub fn builder(
        database: Arc<dyn NostrDatabase>,
        refs: Arc<dyn RefKeeper>,
    ) -> NostrEventStoreBuilder {
        NostrEventStoreBuilder::new(database, refs)
    }

    pub(super) fn from_inner(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.0
    }

    /// The database of what is served.
    pub fn database(&self) -> &Arc<dyn NostrDatabase> {
        &self.0.database
    }

    /// The states, pull requests and updates that wait, by identifier, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot say which announcements are served.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn held(&self) -> Result<Vec<HeldEvent>, StoreError> {
        let mut identifiers: Vec<_> = self.0.shelf().purgatory().waiting().cloned().collect();
        identifiers.sort_unstable();
        let mut all = Vec::new();
        for identifier in identifiers {
            let pass = self.0.gates.enter(&identifier).await;
            let look = self.0.look_at_announcements(&identifier).await?;
            drop(pass);
            all.extend(listing::listing(&look));
        }
        Ok(all)
    }
}

impl Inner {
    pub(super) fn new(
        database: Arc<dyn NostrDatabase>,
        refs: Arc<dyn RefKeeper>,
        observer: Arc<dyn StoreObserver>,
        config: StoreConfig,
        clock: Clock,
        (shelf, journal): (Shelf, Option<SharedJournal>),
    ) -> Self {
        let (gates, shelf) = (Gates::default(), Mutex::new(shelf));
        Self { database, refs, observer, config, gates, clock, journal, shelf }
    }

    pub(super) fn now(&self) -> u64 {
        (self.clock)()
    }

    /// The data lock: held for a few steps in memory, never across an await.
    pub(super) fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look that is enough for needs: no served states. The caller has the identifier's gate.
    pub(super) async fn look_at_announcements(
        &self,
        identifier: &Identifier,
    ) -> Result<Look, StoreError> {
        let announcements = stored::announcements(&*self.database, identifier).await?;
        let held = self.shelf().purgatory().entries(identifier).to_vec();
        Ok(Look::new(identifier.clone(), held, announcements, Vec::new()))
    }

    /// A whole look. The caller has the identifier's gate.
    pub(super) async fn look(&self, identifier: &Identifier) -> Result<Look, StoreError> {
        let announcements = stored::announcements(&*self.database, identifier).await?;
        let states = stored::states(&*self.database, identifier).await?;
        let held = self.shelf().purgatory().entries(identifier).to_vec();
        Ok(Look::new(identifier.clone(), held, announcements, states))
    }
}

#[async_trait]
impl EventStore for NostrEventStore {
    async fn needs(&self, id: &Identifier) -> Result<Needs, StoreError> {
        let _pass = self.0.gates.enter(id).await;
        if self.0.shelf().purgatory().counted(id) == 0 {
            return Ok(Needs::default());
        }
        let look = self.0.look_at_announcements(id).await?;
        Ok(needs::needs(&look, self.0.config.max_followers))
    }

    async fn release(&self, id: &Identifier, here: &[Oid]) -> Result<Released, StoreError> {
        let _pass = self.0.gates.enter(id).await;
        let here: HashSet<Oid> = here.iter().copied().collect();
        let released = self.0.release(id, &here).await;
        let noted = self.0.flush().await;
        let released = released?;
        noted.map(|()| released)
    }

    async fn held_identifiers(&self) -> Result<Vec<Identifier>, StoreError> {
        let mut identifiers: Vec<_> = self.0.shelf().purgatory().waiting().cloned().collect();
        identifiers.sort_unstable();
        Ok(identifiers)
    }
}

impl fmt::Debug for NostrEventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NostrEventStore")
            .field("database", &self.0.database.backend())
            .field("held", &self.0.shelf().purgatory().len())
            .finish_non_exhaustive()
    }
}
