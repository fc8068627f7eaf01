use std::{fmt, sync::Arc};

use nostr_database::NostrDatabase;
use purgatory_sync::StoreError;

use super::{
    clock,
    config::StoreConfig,
    event_store::{Inner, NostrEventStore},
    observer::{Silent, StoreObserver},
};
use crate::RefKeeper;

/// Settings of a [`NostrEventStore`] before it is made.
#[must_use = "nothing is made before `build`"]
pub struct NostrEventStoreBuilder {
    database: Arc<dyn NostrDatabase>,
    refs: Arc<dyn RefKeeper>,
    observer: Arc<dyn StoreObserver>,
    config: StoreConfig,
    clock: Clock,
}

/// Gives the seconds since 1970.
pub(super) type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

impl NostrEventStoreBuilder {
    pub(super) fn new(database: Arc<dyn NostrDatabase>, refs: Arc<dyn RefKeeper>) -> Self {
        Self {
            database,
            refs,
            observer: Arc::new(Silent),
            config: StoreConfig::default(),
            clock: Arc::new(clock::system_now),
        }
    }

    /// Who is told what is served from now on. Nobody by default.
    pub fn observer(mut self, observer: Arc<dyn StoreObserver>) -> Self {
        self.observer = observer;
        self
    }

    /// The settings. [`StoreConfig::default`] by default: nothing expires.
    pub fn config(mut self, config: StoreConfig) -> Self {
        self.config = config;
        self
    }

    /// Another clock than the system's: it gives the seconds since 1970.
    pub fn clock(mut self, now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(now);
        self
    }

    /// Makes the store.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if what is held already cannot be read.
    pub async fn build(self) -> Result<NostrEventStore, StoreError> {
        let Self { database, refs, observer, config, clock } = self;
        Ok(NostrEventStore::from_inner(Inner::new(database, refs, observer, config, clock)))
    }
}

impl fmt::Debug for NostrEventStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NostrEventStoreBuilder")
            .field("database", &self.database.backend())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
