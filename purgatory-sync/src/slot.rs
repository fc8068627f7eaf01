use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A place in the line for a fetch slot. It is kept while the pass looks up from it.
#[derive(Default)]
pub(crate) struct SlotWait(Option<BoxFuture<'static, OwnedSemaphorePermit>>);

impl SlotWait {
    /// A slot, if there is one now and nobody waits for it.
    pub(crate) fn now(&mut self, slots: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        let slot = Arc::clone(slots).try_acquire_owned().ok();
        if slot.is_some() {
            self.leave();
        }
        slot
    }

    /// Waits for a slot, in order.
    ///
    /// Cancel safe: the place is kept.
    pub(crate) async fn wait(&mut self, slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
        let place = self.0.get_or_insert_with(|| Box::pin(acquire(Arc::clone(slots))));
        let slot = place.await;
        self.0 = None;
        slot
    }

    /// Gives the place up.
    pub(crate) fn leave(&mut self) {
        self.0 = None;
    }
}

async fn acquire(slots: Arc<Semaphore>) -> OwnedSemaphorePermit {
    match slots.acquire_owned().await {
        Ok(slot) => slot,
        // The engine never closes the semaphore.
        Err(_) => std::future::pending().await,
    }
}
