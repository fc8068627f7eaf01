use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use keyed_debounce::Debounce;
use tokio::{select, sync::Notify};
use tracing::{debug, warn};

use crate::{
    Arrival, HeldError, Identifier, clock, engine::Shared, fetching::with_causes, request::request,
};

/// The most that two identifiers of a restore are apart.
const MAX_STEP: Duration = Duration::from_millis(100);

/// How long a full queue is left alone when no pass says that there is room.
const ROOM_GUESS: Duration = Duration::from_secs(30);

/// How many identifiers are queued before other tasks get their turn.
const PORTION: usize = 256;

/// Whether the store has to be asked what it holds: at the start, and after the queue was full.
#[derive(Debug)]
pub(crate) struct Restore {
    needed: AtomicU64,
    done: AtomicU64,
    wake: Notify,
    room: Notify,
}

impl Default for Restore {
    fn default() -> Self {
        let (needed, done) = (AtomicU64::new(1), AtomicU64::new(0));
        Self { needed, done, wake: Notify::new(), room: Notify::new() }
    }
}

impl Restore {
    /// An identifier was turned away.
    pub(crate) fn overflowed(&self) {
        self.needed.fetch_add(1, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// An identifier left the queue.
    pub(crate) fn has_room(&self) {
        if self.is_needed() {
            self.room.notify_one();
        }
    }

    pub(crate) fn is_needed(&self) -> bool {
        self.needed.load(Ordering::SeqCst) != self.done.load(Ordering::SeqCst)
    }
}

/// Asks the store what it holds whenever that is needed, and queues it.
pub(crate) async fn keep(shared: Arc<Shared>) {
    select! {
        biased;
        () = shared.stopping.cancelled() => {}
        () = keep_on(&shared) => {}
    }
}

async fn keep_on(shared: &Arc<Shared>) {
    let restore = &shared.restore;
    let mut failures = 0;
    loop {
        let needed = restore.needed.load(Ordering::SeqCst);
        if needed == restore.done.load(Ordering::SeqCst) {
            restore.wake.notified().await;
            wait_for_room(shared).await;
            continue;
        }
        if restore_once(shared).await {
            failures = 0;
            restore.done.store(needed, Ordering::SeqCst);
            if restore.is_needed() {
                wait_for_room(shared).await;
            }
        } else {
            failures += 1;
            clock::pause(shared.backoff(failures)).await;
        }
    }
}

/// Waits until something left the queue, and a moment more: others will follow.
async fn wait_for_room(shared: &Shared) {
    select! {
        () = shared.restore.room.notified() => {}
        () = clock::pause(ROOM_GUESS) => {}
    }
    clock::pause(shared.config.loop_interval()).await;
}

/// Asks the store and queues what it holds, spread out. Says false if the store failed.
async fn restore_once(shared: &Arc<Shared>) -> bool {
    let held = AssertUnwindSafe(async { shared.store.held_identifiers().await }).catch_unwind();
    let held = match held.await {
        Ok(Ok(held)) => held,
        Ok(Err(error)) => {
            warn!(step = "held_identifiers", error = %with_causes(&error), "processing failed");
            return false;
        }
        Err(_) => {
            warn!(step = "held_identifiers", error = "it panicked", "processing failed");
            return false;
        }
    };
    debug!(held = held.len(), "queueing what is held");
    queue(shared, &held).await;
    true
}

async fn queue(shared: &Arc<Shared>, held: &[Identifier]) {
    let quiet = shared.config.debounce(Arrival::Synced).quiet;
    let count = u32::try_from(held.len()).unwrap_or(u32::MAX).max(1);
    let step = MAX_STEP.min(shared.config.restore_spread() / count);
    let mut delay = quiet;
    for (index, id) in held.iter().enumerate() {
        if !shared.board.contains(id) {
            if let Err(HeldError::Full(_)) = request(shared, id, Debounce::after(delay)) {
                return;
            }
            delay = delay.saturating_add(step);
        }
        if index % PORTION == PORTION - 1 {
            tokio::task::yield_now().await;
        }
    }
}
