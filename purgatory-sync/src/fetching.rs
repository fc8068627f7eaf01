use std::{error::Error, panic::AssertUnwindSafe, time::Duration};

use domain_throttle::{Feedback, Permit};
use futures::FutureExt;
use keyed_debounce::Run;
use tokio::select;

use crate::{
    FetchError, FetchErrorKind, FetchRequest, Fetched, Identifier, PassEnd, candidates::Ask, clock,
    engine::Shared,
};

/// How long a server rests that asked for rest and did not say how long.
const UNSAID_REST: Duration = Duration::from_secs(60);

/// A request that has ended.
pub(crate) struct Finished {
    pub(crate) ask: Ask,
    pub(crate) result: Result<Fetched, FetchError>,
    /// Why it was cancelled, if it was: the pass ends too.
    pub(crate) ended: Option<PassEnd>,
    pub(crate) elapsed: Duration,
}

/// Makes one request with this permit, and tells the throttle how it went. It ends by itself, by the
/// deadline, with the permit, or with the engine; a fetcher that panics has failed.
pub(crate) async fn fetch(
    shared: &Shared,
    run: &Run<Identifier>,
    ask: Ask,
    permit: Permit,
) -> Finished {
    let began = clock::now();
    let in_flight = shared.labels.fetch(ask.url.domain());
    let cut = |why: &'static str, end| {
        (Err(FetchError::new(FetchErrorKind::Local).with_requests(1).with_source(why)), end)
    };
    let (result, ended) = select! {
        biased;
        result = attempt(shared, run.key(), &ask) => (result, None),
        () = permit.lost() => cut("the permit was lost", None),
        () = run.lost() => cut("the hold on the identifier was lost", Some(PassEnd::Lost)),
        () = shared.abort.cancelled() => cut("the engine stopped", Some(PassEnd::Stopped)),
    };
    let elapsed = clock::now().saturating_duration_since(began);
    let feedback = feedback(&result);
    permit.finish(feedback);
    drop(in_flight);
    if matches!(feedback, Feedback::RetryAfter(_) | Feedback::Broken) {
        shared.lines.poke(ask.url.domain());
    }
    Finished { ask, result, ended, elapsed }
}

async fn attempt(shared: &Shared, id: &Identifier, ask: &Ask) -> Result<Fetched, FetchError> {
    let request = async {
        let request = FetchRequest::new(id, &ask.url, &ask.oids, &ask.targets);
        // Inside of what catches panics, so that it also catches one of the future's drop.
        select! {
            biased;
            result = shared.fetcher.fetch(request) => result,
            () = clock::pause(shared.config.fetch_deadline()) => {
                Err(FetchError::new(FetchErrorKind::Timeout).with_requests(1))
            }
        }
    };
    let caught = AssertUnwindSafe(request).catch_unwind().await;
    caught.unwrap_or_else(|_| Err(FetchError::new(FetchErrorKind::Panicked).with_requests(1)))
}

/// What the throttle is told, by the class of the failure.
fn feedback(result: &Result<Fetched, FetchError>) -> Feedback {
    use FetchErrorKind as K;
    let error = match result {
        Ok(_) => return Feedback::Ok,
        Err(error) => error,
    };
    match (error.retry_after(), error.kind()) {
        (Some(after), _) => Feedback::RetryAfter(after),
        (None, K::RateLimited) => Feedback::RetryAfter(UNSAID_REST),
        (None, K::Dns | K::Tls) => Feedback::Broken,
        (None, K::Refused | K::Local) if error.requests() == 0 => Feedback::Unused,
        // An answer, whatever it said: the server is well.
        (None, K::NotFound | K::Auth | K::Unsupported | K::TooLarge | K::Corrupt | K::Shallow) => {
            Feedback::Ok
        }
        _ => Feedback::Failed,
    }
}

/// An error with its causes, on one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
