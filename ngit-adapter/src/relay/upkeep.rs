//! What has to be done from time to time: what is held too long goes (R6), and pushed data without its event (R7).

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::shared::Shared;

/// What is held may have got another deadline meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(2);
const MIN_WAIT: Duration = Duration::from_millis(500);

/// Looks after what is held until `stop`.
pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let wait = shared.store().until_expiry().unwrap_or(MAX_WAIT).clamp(MIN_WAIT, MAX_WAIT);
        if tokio::time::timeout(wait, stop.cancelled()).await.is_ok() {
            return;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = expire(&shared) => {}
        }
    }
}

async fn expire(shared: &Shared) {
    let gone = match shared.store().expire().await {
        Ok(gone) => gone,
        Err(error) => {
            tracing::warn!(%error, "what is held too long could not be given up");
            return;
        }
    };
    if !gone.events.is_empty() {
        tracing::info!(events = gone.events.len(), "held events given up: their time is over");
    }
    for identifier in &gone.identifiers {
        shared.look_again(identifier);
    }
    for (event, placeholder) in &gone.placeholders {
        let (repository, tip) = (&placeholder.repository, &placeholder.tip);
        match shared.repositories().forget_pull_request(repository, event, tip).await {
            Ok(()) => {
                let repository = repository.url_path();
                tracing::info!(repository, event_id = %event, "pushed commit without event given up");
            }
            Err(error) => tracing::warn!(%error, event_id = %event, "a ref could not be removed"),
        }
    }
}
