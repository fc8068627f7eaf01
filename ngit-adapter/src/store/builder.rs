use std::{fmt, path::PathBuf, sync::Arc};

use nostr_database::NostrDatabase;
use purgatory_sync::StoreError;

use super::{
    clock,
    config::StoreConfig,
    durable,
    event_store::{Inner, NostrEventStore},
    observer::{Silent, StoreObserver},
    shelf::Shelf,
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
    journal: Option<PathBuf>,
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
            journal: None,
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

    /// The file in which what is held outlives the process. Without one it is lost with the process.
    ///
    /// It is made if it is not there; `<path>.lock` and, for moments, `<path>.new` stand beside it.
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(path.into());
        self
    }

    /// Another clock than the system's: it gives the seconds since 1970.
    pub fn clock(mut self, now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(now);
        self
    }

    /// Makes the store, with what the journal says is held.
    ///
    /// Announcements whose repositories have data by now are served before it returns.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the journal cannot be read, is in use by another process, or is of another
    /// version.
    ///
    /// # Cancel safety
    ///
    /// A dropped call gives the journal free again. It may have served announcements.
    pub async fn build(self) -> Result<NostrEventStore, StoreError> {
        let Self { database, refs, observer, config, clock, journal } = self;
        let (shelf, journal) = match journal {
            Some(path) => {
                let (shelf, journal) = durable::open(path, config.clone(), clock()).await?;
                (shelf, Some(journal))
            }
            None => (Shelf::new(false), None),
        };
        let inner = Inner::new(database, refs, observer, config, clock, (shelf, journal));
        inner.recover().await;
        Ok(NostrEventStore::from_inner(inner))
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
