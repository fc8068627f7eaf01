use std::{sync::Arc, time::Duration};

use crate::{
    Endpoint, Feedback, Grant, Permit, permit::Hook, shared::Shared, slot::SlotId, telemetry,
};

/// What the core granted, and where.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) grant: Grant,
    pub(crate) slot: SlotId,
    pub(crate) tally: u8,
}

/// Makes a grant of the core a permit. `waited` is for those who stood in line.
#[inline]
pub(crate) fn permit(
    shared: &Arc<Shared>,
    at: &Endpoint,
    granted: Granted,
    waited: Option<Duration>,
) -> Permit {
    let Granted { grant, slot, tally } = granted;
    let hook = Hook::InMemory(InMemory { shared: shared.clone(), slot, grant });
    // It is there before a recorder of the user's is called: if that panics, it gives the grant back.
    let permit = Permit::with_hook(at.clone(), hook);
    telemetry::granted(tally, at, waited);
    permit
}

/// How a permit of the in-memory throttle is given back.
#[derive(Debug)]
pub(crate) struct InMemory {
    shared: Arc<Shared>,
    slot: SlotId,
    grant: Grant,
}

impl InMemory {
    #[inline]
    pub(crate) fn settle(self, at: &Endpoint, feedback: Feedback) {
        let Self { shared, slot, grant } = self;
        if let Some((tally, settled, now)) = shared.settle(slot, grant, at, feedback) {
            telemetry::settled(tally, at, feedback, settled, now);
        }
    }
}
