use std::{
    fmt,
    sync::{Arc, Weak},
};

use keyed_debounce::Debounce;

use crate::{
    Arrival, Builder, EventStore, GitFetcher, HeldError, Identifier, Snapshot, engine::Shared,
    request::request,
};

/// A running engine. Cheap to clone; when the last clone is dropped the engine stops.
///
/// Every method may be called from any thread.
#[derive(Clone)]
pub struct PurgatorySync {
    inner: Arc<Handle>,
}

/// A handle that does not keep the engine running, for a store or fetcher that calls back into it.
#[derive(Clone)]
pub struct WeakPurgatorySync {
    inner: Weak<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
    }
}

impl PurgatorySync {
    /// An engine over these two ports.
    pub fn builder(store: Arc<dyn EventStore>, fetcher: Arc<dyn GitFetcher>) -> Builder {
        Builder::new(store, fetcher)
    }

    pub(crate) fn over(shared: Arc<Shared>) -> Self {
        Self { inner: Arc::new(Handle { shared }) }
    }

    /// An event of `id` is held now. Call it after the event is visible in [`EventStore::needs`].
    ///
    /// Never waits. A pass of `id` that waits for a server looks again at once.
    ///
    /// # Errors
    ///
    /// [`HeldError`]. The event stays held: after [`HeldError::Full`] the engine asks the store for it when
    /// there is room, after [`HeldError::Stopped`] the next start does.
    pub fn event_held(&self, id: impl Into<Identifier>, arrival: Arrival) -> Result<(), HeldError> {
        let debounce = self.inner.shared.config.debounce(arrival);
        self.request(&id.into(), debounce)
    }

    /// Something changed for `id` by another way than the engine: data arrived, there are other
    /// sources, events went. The engine looks again at once.
    ///
    /// Never waits.
    ///
    /// # Errors
    ///
    /// As [`event_held`](Self::event_held).
    pub fn changed(&self, id: impl Into<Identifier>) -> Result<(), HeldError> {
        self.request(&id.into(), Debounce::immediate())
    }

    fn request(&self, id: &Identifier, debounce: Debounce) -> Result<(), HeldError> {
        let shared = &self.inner.shared;
        request(shared, id, debounce)?;
        shared.board.wake(id);
        Ok(())
    }

    /// How many identifiers are queued or running. Cheap.
    pub fn queued(&self) -> usize {
        self.inner.shared.board.len()
    }

    /// What the engine does now. Its cost grows with the number of queued identifiers.
    pub fn snapshot(&self) -> Snapshot {
        let shared = &self.inner.shared;
        // In this order: what is queued by a restore is seen, or the restore is.
        let restoring = shared.restore.is_needed();
        Snapshot {
            restoring,
            identifiers: shared.board.snapshot(),
            stopping: shared.stopping.is_cancelled(),
        }
    }

    /// Stops the engine and waits for its end: waits end at once, fetches have the
    /// [`shutdown_grace`](crate::SyncConfig::shutdown_grace) to end and are cancelled after it.
    /// What is held stays held. Calling it twice is fine.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the engine stops all the same.
    pub async fn shutdown(&self) {
        self.inner.shared.stopping.cancel();
        self.inner.shared.ended.cancelled().await;
    }

    /// A handle that does not keep the engine running.
    pub fn downgrade(&self) -> WeakPurgatorySync {
        WeakPurgatorySync { inner: Arc::downgrade(&self.inner) }
    }
}

impl WeakPurgatorySync {
    /// The engine, if it was not dropped.
    pub fn upgrade(&self) -> Option<PurgatorySync> {
        self.inner.upgrade().map(|inner| PurgatorySync { inner })
    }
}

impl fmt::Debug for PurgatorySync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = &self.inner.shared;
        f.debug_struct("PurgatorySync")
            .field("queued", &shared.board.len())
            .field("stopping", &shared.stopping.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WeakPurgatorySync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakPurgatorySync").finish_non_exhaustive()
    }
}
