//! What is asked from the database for a client.

use std::collections::BTreeSet;

use nostr::{event::Event, filter::Filter, types::Timestamp};

use super::super::shared::Shared;

/// The stored events that match any of `filters`, newest first, of each filter the newest `most`.
pub(super) async fn query(
    shared: &Shared,
    filters: &[Filter],
) -> Result<BTreeSet<Event>, nostr_database::error::Error> {
    let most = shared.most_results();
    let now = Timestamp::now();
    let mut all = BTreeSet::new();
    for filter in filters {
        let limit = filter.limit.unwrap_or(most).min(most);
        // Only live ones are asked for.
        if limit == 0 {
            continue;
        }
        let _turn = shared.query_turn().await;
        let found = shared.database().query(filter.clone().limit(limit)).await?;
        all.extend(found.into_iter().filter(|event| !event.is_expired_at(now)));
    }
    Ok(all)
}

/// How many stored events match.
pub(super) async fn count(
    shared: &Shared,
    filter: Filter,
) -> Result<usize, nostr_database::error::Error> {
    let _turn = shared.query_turn().await;
    // The most that are sent is no part of the question how many there are.
    shared.database().count(filter.remove_limit()).await
}
