use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use keyed_debounce::{Outcome, Run};
use tokio::select;
use tracing::{Instrument, debug, info, info_span, warn};

use crate::{
    Identifier, PassEnd, PassEnded, PassStarted, PassSummary, SyncEvent,
    board::{Ending, Seat},
    clock,
    engine::Shared,
    metrics,
    pass::Pass,
};

/// The least and the most that a pass is put off because of pauses.
const DEFER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// One pass of one identifier, from the hand-out to the scheduler's answer. Whatever happens in it, the
/// engine goes on.
pub(crate) async fn run(shared: Arc<Shared>, run: Run<Identifier>) {
    let (id, attempt) = (run.key().clone(), run.attempt());
    let seat = shared.board.started(&id, attempt);
    metrics::attempt();
    shared.tell(SyncEvent::PassStarted(PassStarted { identifier: id.clone(), attempt }));
    let span = info_span!("pass", identifier = id.as_str(), attempt);
    let work = async {
        let summary = drive(&shared, &run, seat).await;
        end(&shared, run, summary);
    };
    work.instrument(span).await;
}

async fn drive(shared: &Shared, run: &Run<Identifier>, seat: Seat) -> PassSummary {
    let began = clock::now();
    let mut pass = Pass::new(shared, run, seat);
    let why = {
        // What panics is dropped where it is caught, so its permits and slots are back at once.
        let guarded = AssertUnwindSafe(pass.drive()).catch_unwind();
        select! {
            biased;
            end = guarded => end.unwrap_or_else(|_| {
                let identifier = run.key().as_str();
                warn!(identifier, step = "pass", error = "it panicked", "processing failed");
                PassEnd::Panicked
            }),
            () = shared.abort.cancelled() => PassEnd::Stopped,
        }
    };
    let elapsed = clock::now().saturating_duration_since(began);
    pass.summary(why, elapsed)
}

fn end(shared: &Shared, run: Run<Identifier>, summary: PassSummary) {
    let (id, attempt) = (run.key().clone(), run.attempt());
    let now = clock::now();
    let outcome = outcome(&summary, now);
    let again = AssertUnwindSafe(run.scheduled_again()).catch_unwind().now_or_never().is_some();
    let backoff = shared.backoff(attempt);
    match outcome {
        Outcome::Done => {
            info!(identifier = id.as_str(), released = summary.released, "sync complete");
        }
        Outcome::Retry if !again => {
            metrics::backoff(backoff);
            debug!(
                identifier = id.as_str(),
                attempt,
                next_attempt_secs = backoff.as_secs_f64(),
                why = summary.why.as_str(),
                "backoff applied"
            );
        }
        other => {
            debug!(identifier = id.as_str(), outcome = ?other, requested_again = again, why = summary.why.as_str(), "pass ended");
        }
    }
    let ending = Ending { outcome, again, backoff, now, summary: summary.clone() };
    shared.board.ended(&id, ending);
    // The board first, so that whoever is told sees it; the scheduler last, so that the next
    // pass of this identifier begins after this one was told of.
    shared.tell(SyncEvent::PassEnded(PassEnded { identifier: id, attempt, outcome, summary }));
    run.finish(outcome);
    if outcome == Outcome::Done {
        shared.restore.has_room();
    }
    if shared.board.len() == 0 {
        shared.tell(SyncEvent::QueueIdle);
    }
}

/// What the scheduler is told.
fn outcome(summary: &PassSummary, now: std::time::Instant) -> Outcome {
    let (least, most) = DEFER;
    match summary.why {
        PassEnd::NothingHeld => Outcome::Done,
        PassEnd::Paused { until } if summary.fetches == 0 => {
            Outcome::Defer(until.saturating_duration_since(now).clamp(least, most))
        }
        PassEnd::Stopped | PassEnd::Lost => Outcome::Defer(Duration::ZERO),
        _ => Outcome::Retry,
    }
}
