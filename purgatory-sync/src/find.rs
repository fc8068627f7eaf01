use domain_throttle::{Denied, Endpoint, Feedback, Permit};
use tokio::{select, sync::OwnedSemaphorePermit};
use tracing::debug;

use crate::{
    Activity, CloneUrl, PassEnd,
    bell::Rang,
    pass::Pass,
    step::{Rest, Step, View, Walk},
};

/// What came of the search for the next request.
pub(crate) enum Found {
    /// Ask this URL.
    Ask(CloneUrl, Leave),
    /// Leave came after a wait: look again before it is used.
    Leave(Leave),
    /// Something changed: look again.
    Look,
    /// Nothing more can be asked in this turn.
    Rest(Rest),
    /// The pass ends.
    End(PassEnd),
}

/// Leave to make one request now: a permit of its domain and a fetch slot. What is not used goes back.
pub(crate) struct Leave(Option<(Permit, OwnedSemaphorePermit)>);

impl Leave {
    fn new(permit: Permit, slot: OwnedSemaphorePermit) -> Self {
        Self(Some((permit, slot)))
    }

    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.0.as_ref().map(|(permit, _)| permit.endpoint())
    }

    /// To be used at once.
    pub(crate) fn take(&mut self) -> Option<(Permit, OwnedSemaphorePermit)> {
        self.0.take()
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        if let Some((permit, _slot)) = self.0.take() {
            permit.finish(Feedback::Unused);
        }
    }
}

/// The wait was interrupted.
struct Interrupted(Rang);

impl Pass<'_> {
    /// Finds the next request and the leave to make it, waiting where it has to.
    ///
    /// A slot is taken before a permit, so that no permit waits for a slot; and nothing of the two is
    /// held while the pass stands in a line.
    pub(crate) async fn find(&mut self) -> Found {
        match self.search().await {
            Ok(found) => found,
            Err(Interrupted(Rang::Look | Rang::Recheck)) => Found::Look,
            Err(Interrupted(Rang::Stop)) => Found::End(PassEnd::Stopped),
            Err(Interrupted(Rang::Lost)) => Found::End(PassEnd::Lost),
        }
    }

    async fn search(&mut self) -> Result<Found, Interrupted> {
        // Nothing that the order depends on changes before this search ends.
        let mut walk = self.situated(Walk::new);
        let mut slot = None;
        let mut waited = false;
        loop {
            match walk.step() {
                Step::Check(endpoint) => {
                    let view = self.check(&endpoint).await;
                    walk.heard(endpoint, view);
                }
                Step::Ask(url) => {
                    self.places.leave();
                    let held = match slot.take() {
                        Some(slot) => slot,
                        None => self.slot(&mut waited).await?,
                    };
                    match self.try_acquire(url.endpoint()).await {
                        Ok(permit) if waited => return Ok(Found::Leave(Leave::new(permit, held))),
                        Ok(permit) => return Ok(Found::Ask(url, Leave::new(permit, held))),
                        // Somebody was quicker. The no counts until something rings, so that a
                        // throttle that says yes and then no does not make this spin.
                        Err(view) => walk.heard(url.endpoint().clone(), view),
                    }
                }
                Step::Wait(endpoints) => {
                    drop(slot.take());
                    self.slot_wait.leave();
                    waited = true;
                    match self.stand(&endpoints).await? {
                        Stood::Permit(permit) => match self.slot_wait.now(&self.shared.slots) {
                            Some(slot) => return Ok(Found::Leave(Leave::new(permit, slot))),
                            // A permit held back would break the limit at the server. It goes
                            // back, and the pass comes again with a slot.
                            None => {
                                permit.finish(Feedback::Unused);
                                slot = Some(self.slot(&mut waited).await?);
                                walk.forget_views();
                            }
                        },
                        Stood::Shut(endpoint) => walk.heard(endpoint, View::Shut),
                        Stood::Recheck => walk.forget_views(),
                    }
                }
                Step::End(rest) => return Ok(Found::Rest(rest)),
            }
        }
    }

    async fn check(&mut self, endpoint: &Endpoint) -> View {
        let answer = self.shared.throttle.check(endpoint, self.id.as_str()).await;
        let capacity = capacity(&answer);
        let domain = endpoint.domain().as_str();
        debug!(identifier = self.id.as_str(), domain, capacity, "capacity checked");
        View::of(&answer)
    }

    async fn try_acquire(&mut self, endpoint: &Endpoint) -> Result<Permit, View> {
        let acquired = self.shared.throttle.try_acquire(endpoint, self.id.as_str()).await;
        acquired.map_err(|denied| View::of(&Err(denied)))
    }

    /// Takes a fetch slot, waiting for it where it has to.
    async fn slot(&mut self, waited: &mut bool) -> Result<OwnedSemaphorePermit, Interrupted> {
        if let Some(slot) = self.slot_wait.now(&self.shared.slots) {
            return Ok(slot);
        }
        *waited = true;
        self.shared.board.does(self.id, Activity::WaitingForSlot);
        loop {
            select! {
                biased;
                rang = self.bell.rings() => match rang {
                    // It stands in no domain's line now.
                    Rang::Recheck => {}
                    rang => return Err(Interrupted(rang)),
                },
                slot = self.slot_wait.wait(&self.shared.slots) => return Ok(slot),
            }
        }
    }

    /// Stands in these lines until something comes. The places are kept when something rings.
    async fn stand(&mut self, endpoints: &[Endpoint]) -> Result<Stood, Interrupted> {
        let shared = self.shared;
        let poke = self.bell.poke();
        self.places.stand_in(endpoints, self.id, &shared.throttle, &shared.lines, poke);
        let mut domains = Vec::new();
        for endpoint in endpoints {
            if !domains.contains(endpoint.domain()) {
                domains.push(endpoint.domain().clone());
            }
        }
        shared.board.does(self.id, Activity::InLine { domains });
        select! {
            biased;
            rang = self.bell.rings() => match rang {
                Rang::Recheck => Ok(Stood::Recheck),
                rang => Err(Interrupted(rang)),
            },
            (endpoint, granted) = self.places.next() => Ok(match granted {
                Ok(permit) => {
                    self.places.leave();
                    Stood::Permit(permit)
                }
                Err(error) => {
                    let domain = endpoint.domain().as_str();
                    debug!(identifier = self.id.as_str(), domain, %error, "no place in line");
                    Stood::Shut(endpoint)
                }
            }),
        }
    }
}

/// What came of standing in lines.
enum Stood {
    Permit(Permit),
    /// There is no standing in this line.
    Shut(Endpoint),
    /// A domain may be paused now.
    Recheck,
}

/// What the throttle said, for the log.
fn capacity(answer: &Result<(), Denied>) -> &'static str {
    match answer {
        Ok(()) => "free",
        Err(Denied::KeyBusy) => "key_busy",
        Err(Denied::Concurrency) => "concurrency",
        Err(Denied::Window { .. }) => "window",
        Err(Denied::Paused { .. }) => "paused",
        Err(Denied::Queued) => "queued",
        Err(Denied::TooManyDomains) => "too_many_domains",
        Err(_) => "unknown",
    }
}
