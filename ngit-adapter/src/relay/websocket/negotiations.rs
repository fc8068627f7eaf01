use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use nostr::{filter::Filter, message::SubscriptionId};
use nostr_database::NostrDatabase;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    super::limits::MAX_RECONCILIATIONS,
    negotiation::{Broken, Negotiation},
};

/// The reconciliations of one connection.
#[derive(Debug, Default)]
pub(super) struct Negotiations {
    open: HashMap<SubscriptionId, Open>,
}

#[derive(Debug)]
struct Open {
    negotiation: Negotiation,
    used: Instant,
    _slot: OwnedSemaphorePermit,
}

/// One that nobody goes on with is given up after this time.
const MAX_IDLE: Duration = Duration::from_secs(120);

/// Why there is no answer. The text is for the client.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("blocked: {0} events match, at most {1} are reconciled: narrow the filter")]
    TooMany(usize, usize),
    #[error("blocked: too many reconciliations are on, try again later")]
    Busy,
    #[error("closed: there is no reconciliation of this id")]
    Unknown,
    #[error("error: the database could not be asked")]
    Database,
}

impl Negotiations {
    /// Begins one in place of one with the same id, and gives the first answer.
    pub(super) async fn begin(
        &mut self,
        id: SubscriptionId,
        begin: Begin<'_>,
        first: String,
        now: Instant,
    ) -> Result<String, NoAnswer> {
        self.open.remove(&id);
        if self.open.len() >= MAX_RECONCILIATIONS {
            return Err(NoAnswer::Busy);
        }
        let slot = Arc::clone(begin.slots).try_acquire_owned().map_err(|_| NoAnswer::Busy)?;
        let items = begin.items().await?;
        let (negotiation, answer) = off_worker(move || {
            let mut negotiation = Negotiation::new(items)?;
            let answer = negotiation.answer(&first)?;
            Ok((negotiation, answer))
        })
        .await?;
        self.open.insert(id, Open { negotiation, used: now, _slot: slot });
        Ok(answer)
    }

    /// Goes on with one. What is not understood ends it.
    pub(super) async fn go_on(
        &mut self,
        id: &SubscriptionId,
        message: String,
        now: Instant,
    ) -> Result<String, NoAnswer> {
        let open = self.open.remove(id).ok_or(NoAnswer::Unknown)?;
        let Open { mut negotiation, _slot: slot, .. } = open;
        let (negotiation, answer) = off_worker(move || {
            let answer = negotiation.answer(&message)?;
            Ok((negotiation, answer))
        })
        .await?;
        self.open.insert(id.clone(), Open { negotiation, used: now, _slot: slot });
        Ok(answer)
    }

    pub(super) fn end(&mut self, id: &SubscriptionId) {
        self.open.remove(id);
    }

    /// Gives up those that nobody goes on with.
    pub(super) fn end_idle(&mut self, now: Instant) -> Vec<SubscriptionId> {
        let idle =
            self.open.extract_if(|_, open| now.saturating_duration_since(open.used) > MAX_IDLE);
        idle.map(|(id, _)| id).collect()
    }
}

/// What a reconciliation begins with.
pub(super) struct Begin<'a> {
    pub(super) database: &'a dyn NostrDatabase,
    pub(super) filter: Filter,
    pub(super) most: usize,
    pub(super) slots: &'a Arc<Semaphore>,
}

impl Begin<'_> {
    async fn items(
        &self,
    ) -> Result<Vec<(nostr::event::EventId, nostr::types::Timestamp)>, NoAnswer> {
        let count = self.database.count(self.filter.clone()).await.map_err(database)?;
        if count > self.most {
            return Err(NoAnswer::TooMany(count, self.most));
        }
        self.database.negentropy_items(self.filter.clone()).await.map_err(database)
    }
}

fn database(error: nostr_database::error::Error) -> NoAnswer {
    tracing::warn!(%error, "the database could not be asked");
    NoAnswer::Database
}

/// Runs what may take long where it holds up nobody.
async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Broken> + Send + 'static,
) -> Result<T, NoAnswer> {
    // A reconciliation that panicked is broken; nobody else is.
    Ok(tokio::task::spawn_blocking(work).await.unwrap_or(Err(Broken::NotUnderstood))?)
}
