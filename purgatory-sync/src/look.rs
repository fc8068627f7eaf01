use std::{collections::HashSet, pin::pin, time::Duration};

use tokio::select;
use tracing::warn;

use crate::{
    Activity, Identifier, Oid, PassEnd, clock, engine::Shared, fetching::with_causes,
    memory::SharedMemory, pass::Pass, report, survey::Survey,
};

/// How long a look may take while the pass has leave to make a request. The leave counts as a request from when it
/// was given: kept longer, the server would see its requests closer together than it was promised, and
/// a store that hangs would keep others from their turn.
const LEAVE_GRACE: Duration = Duration::from_millis(100);

impl Pass<'_> {
    /// Asks the store what is wanted and the fetcher what of it is here, and tells what the last
    /// request brought.
    pub(crate) async fn look(&mut self) -> Result<(), PassEnd> {
        if self.leave.is_none() {
            self.shared.board.does(self.id, Activity::Looking);
        }
        self.look_was_slow = false;
        let again = self.bell.looking();
        if again {
            self.memory.signal();
        }
        self.signals = self.memory.signals();
        let (shared, run) = (self.shared, self.run);
        let after_fetch = self.finished.is_some();
        let looked = {
            let mut looking = pin!(look(shared, self.id, self.turn, &mut self.here, &self.memory));
            let mut deadline = pin!(clock::pause(shared.config.look_deadline()));
            let mut grace = pin!(clock::pause(LEAVE_GRACE));
            loop {
                select! {
                    biased;
                    looked = &mut looking => break looked,
                    () = &mut grace, if self.leave.is_some() => {
                        self.leave = None;
                        self.look_was_slow = true;
                        shared.board.does(self.id, Activity::Looking);
                    }
                    () = &mut deadline => {
                        warn!(identifier = self.id.as_str(), step = "look", error = "it took too long", "processing failed");
                        break Err(PassEnd::LookFailed);
                    }
                    () = run.lost() => break Err(PassEnd::Lost),
                    // What a request brought is looked at even then, and let go.
                    () = shared.stopping.cancelled(), if !after_fetch => break Err(PassEnd::Stopped),
                }
            }
        };
        let end = match looked {
            Ok(survey) => {
                shared.board.saw(self.id, survey.held, survey.missing_len());
                self.survey = survey;
                None
            }
            Err(end) => Some(end),
        };
        if let Some(finished) = self.finished.take() {
            let seen = end.is_none().then_some((&self.survey, &self.here));
            if report::fetch_ended(shared, self.id, &finished, seen) {
                self.memory.lock().rounds.gave(&finished.ask.url);
            }
        }
        end.map_or(Ok(()), Err)
    }
}

/// Asks the store what is wanted, and the fetcher what of it is here. What is found to be here stays in
/// `here` for the rest of the pass.
///
/// Cancel safe.
async fn look(
    shared: &Shared,
    id: &Identifier,
    turn: usize,
    here: &mut HashSet<Oid>,
    memory: &SharedMemory,
) -> Result<Survey, PassEnd> {
    let needs = shared.store.needs(id).await.map_err(|error| {
        warn!(identifier = id.as_str(), step = "needs", error = %with_causes(&error), "processing failed");
        PassEnd::StoreFailed
    })?;
    let mut survey = Survey::new(needs, turn, &shared.config, &shared.ours);
    if survey.turns == 1 {
        memory.lock().rounds.keep_only(&survey.urls());
    }
    loop {
        let batch = survey.next_batch(here);
        if batch.is_empty() {
            return Ok(survey);
        }
        let missing = shared.fetcher.missing(id, &batch).await.map_err(|error| {
            warn!(identifier = id.as_str(), step = "missing", error = %with_causes(&error), "processing failed");
            PassEnd::LookFailed
        })?;
        survey.answer(&batch, &missing, here);
    }
}
