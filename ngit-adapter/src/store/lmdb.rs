use std::{path::Path, sync::Arc};

use nostr_lmdb::NostrLmdb;
use purgatory_sync::StoreError;

use super::{builder::NostrEventStoreBuilder, event_store::NostrEventStore};
use crate::RefKeeper;

impl NostrEventStore {
    /// Begins a store in a folder of its own, which is made if it is not there: what is served in LMDB
    /// below `events`, what is held in the journal `held`.
    ///
    /// LMDB reserves 32 GiB of addresses, and takes of the disk what it needs.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be opened.
    ///
    /// # Cancel safety
    ///
    /// A dropped call may have made the folder and an empty database in it.
    pub async fn on_lmdb(
        folder: &Path,
        refs: Arc<dyn RefKeeper>,
    ) -> Result<NostrEventStoreBuilder, StoreError> {
        let database = NostrLmdb::open(folder.join("events")).await.map_err(|error| {
            let what = format!("the database in {} cannot be opened", folder.display());
            StoreError::new(what).with_source(error)
        })?;
        Ok(Self::builder(Arc::new(database), refs).journal(folder.join("held")))
    }
}
