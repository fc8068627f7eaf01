//! From whoever lets an event go to every connection that may have asked for it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nostr::event::Event;
use tokio::sync::broadcast;

/// How many events a connection may be behind before it is closed.
const MAX_BEHIND: usize = 4_096;

/// Tells every connection what is served from now on. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Hub {
    live: broadcast::Sender<Live>,
    published: Arc<AtomicU64>,
}

/// An event that is served from now on.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    /// How many were told before it, itself included.
    pub(crate) number: u64,
    pub(crate) event: Arc<Event>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self { live: broadcast::Sender::new(MAX_BEHIND), published: Arc::default() }
    }

    /// Tells everyone who listens. It was saved before. Never waits.
    pub(crate) fn publish(&self, event: Event) {
        let number = self.published.fetch_add(1, Ordering::SeqCst) + 1;
        // Without listeners there is nobody to tell.
        let _ = self.live.send(Live { number, event: Arc::new(event) });
    }

    /// How many were told: what has a number up to this one was saved before now.
    pub(crate) fn number(&self) -> u64 {
        self.published.load(Ordering::SeqCst)
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Live> {
        self.live.subscribe()
    }
}
