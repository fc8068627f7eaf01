use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use dashmap::DashMap;
use domain_throttle::{Domain, Endpoint, Feedback, Permit, Throttle, ThrottleError};
use futures::{
    StreamExt,
    future::{AbortHandle, Abortable, BoxFuture, pending},
    stream::FuturesUnordered,
};
use tokio::sync::Notify;

use crate::Identifier;

/// Which passes stand in the line of which domain: those that have to look at the throttle again when a
/// server's answer may have paused it.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    waiting: Arc<DashMap<Domain, HashMap<u64, Arc<Notify>>>>,
    next: AtomicU64,
}

impl Lines {
    /// Wakes every pass that stands in a line of this domain.
    pub(crate) fn poke(&self, domain: &Domain) {
        let waiting = self.waiting.get(domain).map(|all| all.values().cloned().collect::<Vec<_>>());
        for poke in waiting.unwrap_or_default() {
            poke.notify_one();
        }
    }

    fn list(&self, domain: &Domain, poke: &Arc<Notify>) -> Listed {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.waiting.entry(domain.clone()).or_default().insert(number, Arc::clone(poke));
        Listed { waiting: Arc::clone(&self.waiting), domain: domain.clone(), number }
    }
}

/// An entry of [`Lines`].
#[derive(Debug)]
struct Listed {
    waiting: Arc<DashMap<Domain, HashMap<u64, Arc<Notify>>>>,
    domain: Domain,
    number: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(mut all) = self.waiting.get_mut(&self.domain) {
            all.remove(&self.number);
        }
        self.waiting.remove_if(&self.domain, |_, all| all.is_empty());
    }
}

type Waiting = Abortable<BoxFuture<'static, (Endpoint, Result<Permit, ThrottleError>)>>;

/// The places that one pass holds in the lines of endpoints. It stands in all of them at once.
pub(crate) struct Places {
    waiting: FuturesUnordered<Waiting>,
    held: HashMap<Endpoint, Place>,
}

struct Place {
    abort: AbortHandle,
    _listed: Listed,
}

impl Places {
    pub(crate) fn new() -> Self {
        Self { waiting: FuturesUnordered::new(), held: HashMap::new() }
    }

    /// Stands in exactly these lines: places that are held already are kept, others are given up.
    pub(crate) fn stand_in(
        &mut self,
        endpoints: &[Endpoint],
        id: &Identifier,
        throttle: &Arc<dyn Throttle>,
        lines: &Lines,
        poke: &Arc<Notify>,
    ) {
        self.held.retain(|endpoint, place| {
            let stays = endpoints.contains(endpoint);
            if !stays {
                place.abort.abort();
            }
            stays
        });
        for endpoint in endpoints {
            if !self.held.contains_key(endpoint) {
                let (abort, registration) = AbortHandle::new_pair();
                let wait = wait(Arc::clone(throttle), endpoint.clone(), id.clone());
                self.waiting.push(Abortable::new(Box::pin(wait), registration));
                let listed = lines.list(endpoint.domain(), poke);
                self.held.insert(endpoint.clone(), Place { abort, _listed: listed });
            }
        }
    }

    /// Gives up every place. A permit that was on its way goes to the next in line.
    pub(crate) fn leave(&mut self) {
        self.waiting = FuturesUnordered::new();
        self.held.clear();
    }

    /// Waits for the first permit, or the first line that cannot be stood in.
    ///
    /// Cancel safe: the places are kept.
    pub(crate) async fn next(&mut self) -> (Endpoint, Result<Permit, ThrottleError>) {
        loop {
            match self.waiting.next().await {
                Some(Ok((endpoint, result))) if self.held.remove(&endpoint).is_some() => {
                    return (endpoint, result);
                }
                // It came for a place that was given up.
                Some(Ok((_, Ok(permit)))) => permit.finish(Feedback::Unused),
                Some(_) => {}
                None => pending().await,
            }
        }
    }
}

async fn wait(
    throttle: Arc<dyn Throttle>,
    endpoint: Endpoint,
    id: Identifier,
) -> (Endpoint, Result<Permit, ThrottleError>) {
    let granted = throttle.acquire_any(std::slice::from_ref(&endpoint), id.as_str()).await;
    (endpoint, granted)
}
