use std::collections::HashSet;

use tracing::warn;

use crate::{
    Identifier, Oid, PassEnd, engine::Shared, fetching::with_causes, memory::SharedMemory,
    survey::Survey,
};

/// Asks the store what is wanted, and the fetcher what of it is here. What is found to be here stays in
/// `here` for the rest of the pass.
///
/// Cancel safe.
pub(crate) async fn look(
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
