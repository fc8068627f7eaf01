use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{Endpoint, Feedback, Grant, Permit, PermitHook, cell::Cell, shared::Shared, telemetry};

/// Makes a grant of the core a permit. `waited` is for those who stood in line.
pub(crate) fn permit(
    shared: &Arc<Shared>,
    cell: Arc<Cell>,
    at: &Endpoint,
    grant: Grant,
    waited: Option<Duration>,
) -> Permit {
    shared.tallies.granted(cell.tally);
    telemetry::granted(&cell, at, waited);
    let hook = InMemory { shared: shared.clone(), cell, endpoint: at.clone(), grant };
    Permit::new(at.clone(), Box::new(hook))
}

/// How a permit of the in-memory throttle is given back.
#[derive(Debug)]
struct InMemory {
    shared: Arc<Shared>,
    cell: Arc<Cell>,
    endpoint: Endpoint,
    grant: Grant,
}

#[async_trait]
impl PermitHook for InMemory {
    fn settle(self: Box<Self>, feedback: Feedback) {
        let Self { shared, cell, endpoint, grant } = *self;
        shared.tallies.settled(cell.tally, feedback);
        let settled =
            shared.with(&cell, |core, now| (core.settle(now, grant, &endpoint, feedback), now));
        if let Some((settled, now)) = settled {
            telemetry::settled(&cell, &endpoint, feedback, settled, now);
        }
    }
}
