use tracing::{info, warn};

use crate::{
    Activity, EventsReleased, PassEnd, SyncEvent, fetching::with_causes, memory::Fruitless,
    pass::Pass,
};

impl Pass<'_> {
    /// Lets events go, unless it was tried for exactly this and brought nothing. Says whether any went.
    pub(crate) async fn release(&mut self) -> Result<bool, PassEnd> {
        let here = self.survey.here(&self.here);
        let fingerprint = self.survey.fingerprint(&here);
        let attempt = Fruitless { fingerprint, signals: self.signals };
        if self.memory.lock().fruitless == Some(attempt) {
            return Ok(false);
        }
        self.shared.board.does(self.id, Activity::Releasing);
        let released = match self.shared.store.release(self.id, &here).await {
            Ok(released) => released,
            Err(error) => {
                warn!(identifier = self.id.as_str(), step = "release", error = %with_causes(&error), "processing failed");
                return Err(PassEnd::StoreFailed);
            }
        };
        if released.released == 0 {
            self.memory.lock().fruitless = Some(attempt);
            return Ok(false);
        }
        self.released += released.released;
        let (identifier, held) = (self.id.clone(), released.held);
        info!(identifier = self.id.as_str(), released = released.released, held, "state synced");
        let event = EventsReleased { identifier, released: released.released, held };
        self.shared.tell(SyncEvent::Released(event));
        Ok(true)
    }
}
