use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use keyed_debounce::Run;
use tokio::{select, sync::Notify};
use tokio_util::sync::CancellationToken;

use crate::{Identifier, clock};

/// The least time between two looks of a pass that waits, so that a storm of events costs a look for
/// each of these and not for each event.
const LOOK_GAP: Duration = Duration::from_millis(100);

/// What wakes a pass that waits.
pub(crate) struct Bell<'a> {
    run: &'a Run<Identifier>,
    wake: Arc<Notify>,
    poke: Arc<Notify>,
    stopping: &'a CancellationToken,
    last_look: Instant,
    look_due: bool,
    again_seen: bool,
}

/// Why a wait was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rang {
    /// Something changed for this identifier: look again.
    Look,
    /// A domain in whose line the pass stands may be paused now: ask the throttle again.
    Recheck,
    /// The engine stops.
    Stop,
    /// The hold on the identifier is lost.
    Lost,
}

impl<'a> Bell<'a> {
    pub(crate) fn new(
        run: &'a Run<Identifier>,
        wake: Arc<Notify>,
        stopping: &'a CancellationToken,
    ) -> Self {
        let (last_look, poke) = (clock::now(), Arc::new(Notify::new()));
        Self { run, wake, poke, stopping, last_look, look_due: false, again_seen: false }
    }

    /// What a server's answer rings with.
    pub(crate) fn poke(&self) -> &Arc<Notify> {
        &self.poke
    }

    /// A look begins: what rang before needs no other one. Says whether the scheduler was asked for
    /// this identifier for the first time in this run.
    pub(crate) fn looking(&mut self) -> bool {
        self.last_look = clock::now();
        self.look_due = false;
        // Taken here, so that it does not ring once more after the look.
        let _rang = self.wake.notified().now_or_never();
        let again = !self.again_seen && self.run.scheduled_again().now_or_never().is_some();
        self.again_seen |= again;
        again
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Waits until it rings.
    ///
    /// Cancel safe: what rang is kept.
    pub(crate) async fn rings(&mut self) -> Rang {
        let quiet_until = self.last_look + LOOK_GAP;
        loop {
            select! {
                biased;
                () = self.stopping.cancelled() => return Rang::Stop,
                () = self.run.lost() => return Rang::Lost,
                () = self.poke.notified() => return Rang::Recheck,
                () = self.wake.notified(), if !self.look_due => self.look_due = true,
                // The scheduler rings on once it was asked, so it is heard once; every request
                // through the handle rings by `wake`.
                () = self.run.scheduled_again(), if !self.look_due && !self.again_seen => {
                    self.again_seen = true;
                    self.look_due = true;
                }
                () = clock::until(quiet_until), if self.look_due => return Rang::Look,
            }
        }
    }
}
