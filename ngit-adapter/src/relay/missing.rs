//! Data of what is served that is not here, or not in every repository where it belongs: looked for from time to time
//! (GRASP-02: "at least hourly").

use std::{
    collections::{BTreeSet, HashSet},
    error::Error,
    sync::Arc,
    time::Duration,
};

use nostr::event::EventId;
use purgatory_sync::{Arrival, GitFetcher, Identifier, Oid, StoreError};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::shared::Shared;

/// How long lost data is hunted for each time.
const HUNT: Duration = Duration::from_secs(10 * 60);

/// Looks at the start, and then so often, until `stop`.
pub(super) async fn run(shared: Arc<Shared>, every: Duration, stop: CancellationToken) {
    let mut ticks = interval(every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let rounds = async {
        loop {
            ticks.tick().await;
            round(&shared).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = rounds => {}
    }
}

async fn round(shared: &Shared) {
    let announced = match shared.store().all_announced().await {
        Ok(announced) => announced,
        Err(error) => {
            tracing::warn!(%error, "announcements could not be listed");
            return;
        }
    };
    let served: BTreeSet<_> =
        announced.into_iter().filter(|it| it.served).map(|it| it.repository.identifier).collect();
    for identifier in &served {
        if let Err(error) = look(shared, identifier).await {
            let error: &dyn Error = &*error;
            tracing::warn!(
                identifier = identifier.as_str(),
                error,
                "missing data was not looked for"
            );
        }
    }
}

async fn look(
    shared: &Shared,
    identifier: &Identifier,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let complete = shared.store().served_with_data(identifier).await?;
    let oids: BTreeSet<Oid> = complete.iter().flat_map(|it| it.oids.iter().copied()).collect();
    let oids: Vec<Oid> = oids.into_iter().collect();
    let missing: BTreeSet<Oid> =
        shared.fetcher().missing(identifier, &oids).await?.into_iter().collect();
    let lacking = complete.iter().filter(|it| it.oids.iter().any(|oid| missing.contains(oid)));
    let lacking: Vec<_> = lacking.map(|it| it.event).collect();
    if !lacking.is_empty() {
        hunt(shared, identifier, &lacking, missing.len()).await?;
    }
    // What can be put right is, whatever lacks: some of it may be lost for good.
    Ok(shared.store().put_right(identifier, &lacking.into_iter().collect::<HashSet<_>>()).await?)
}

/// Has the engine look for the data of these events.
async fn hunt(
    shared: &Shared,
    identifier: &Identifier,
    lacking: &[EventId],
    objects: usize,
) -> Result<(), StoreError> {
    let held = shared.store().hold_again(identifier, lacking, HUNT).await?;
    tracing::warn!(
        identifier = identifier.as_str(),
        objects,
        events = held,
        "data of what is served is missing and looked for"
    );
    // Full or stopping: the next round does it, or the next start.
    if let Err(error) = shared.sync().event_held(identifier.clone(), Arrival::Synced) {
        tracing::debug!(identifier = identifier.as_str(), %error, "not queued now");
    }
    Ok(())
}
