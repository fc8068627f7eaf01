use std::collections::HashSet;

use tracing::{info, warn};

use crate::{
    FetchEnded, FetchOutcome, Identifier, Oid, SyncEvent,
    engine::Shared,
    fetching::{Finished, with_causes},
    metrics,
    survey::Survey,
};

/// Tells of a request that ended: the log, the metrics, the observer. Says whether it brought anything.
///
/// What it brought is what is here now of what was asked for; without a look after it (`seen`), and for
/// what nobody wants any more, the fetcher's word counts.
pub(crate) fn fetch_ended(
    shared: &Shared,
    id: &Identifier,
    finished: &Finished,
    seen: Option<(&Survey, &HashSet<Oid>)>,
) -> bool {
    let Finished { ask, result, ended, elapsed } = finished;
    let wanted = ask.oids.len();
    let claimed: HashSet<&Oid> = result.iter().flat_map(|fetched| &fetched.received).collect();
    let is_here = |oid: &&Oid| match seen {
        Some((_, here)) if here.contains(oid) => true,
        Some((survey, _)) if survey.is_missing(oid) => false,
        _ => claimed.contains(oid),
    };
    let received = ask.oids.iter().filter(is_here).count();
    let outcome = match result {
        _ if ended.is_some() => FetchOutcome::Cancelled,
        Err(error) => FetchOutcome::Failed(error.kind()),
        Ok(_) if received == wanted => FetchOutcome::Fetched,
        Ok(_) if received > 0 => FetchOutcome::Partial,
        Ok(_) => FetchOutcome::NotThere,
    };
    let (url, domain) = (ask.url.as_str(), ask.url.domain().as_str());
    if received > 0 {
        metrics::oids_fetched(received);
        let remaining = seen.map_or(wanted - received, |(survey, _)| survey.missing_len());
        info!(identifier = id.as_str(), url, domain, fetched = received, remaining, "OIDs fetched");
    }
    if let Err(error) = result {
        let kind = outcome.as_str();
        warn!(identifier = id.as_str(), url, domain, kind, error = %with_causes(error), "fetch failed");
    }
    let (requests, bytes) = match result {
        Ok(fetched) => (fetched.requests, fetched.bytes),
        Err(error) => (error.requests(), 0),
    };
    let (identifier, url) = (id.clone(), ask.url.clone());
    let elapsed = *elapsed;
    shared.tell(SyncEvent::FetchEnded(FetchEnded {
        identifier,
        url,
        wanted,
        received,
        outcome,
        requests,
        bytes,
        elapsed,
    }));
    received > 0
}
