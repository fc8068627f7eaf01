use std::{fmt, future::pending};

use async_trait::async_trait;

use crate::{Endpoint, Feedback, permit_hook::InMemory};

/// What a backend gives to a [`Permit`]: how it is given back, and what tells that it was lost.
#[async_trait]
pub trait PermitHook: Send + Sync {
    /// The request has ended. Called exactly once: by [`Permit::finish`], or with
    /// [`Feedback::Failed`] when the permit is dropped, also while a thread panics.
    ///
    /// It must not block, must not panic and cannot await: a backend that has to talk to a store
    /// hands the feedback to a task of its own.
    fn settle(self: Box<Self>, feedback: Feedback);

    /// Waits until the permit is lost, for example because a lease could not be renewed.
    ///
    /// The default never returns: a permit in memory cannot be lost.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe: the caller waits for it beside its request.
    async fn lost(&self) {
        pending::<()>().await;
    }
}

/// Leave to make one request, now, to one endpoint.
///
/// The window counts the request from the moment the permit was handed out: use it at once, or give
/// it back with [`Feedback::Unused`]. While it lives it holds one of the domain's concurrent slots.
#[must_use = "a permit holds a slot of its domain: send the request, then call `finish`"]
pub struct Permit {
    endpoint: Endpoint,
    hook: Hook,
}

/// How a permit is given back.
pub(crate) enum Hook {
    /// It was.
    Settled,
    /// Our own, without an allocation.
    InMemory(InMemory),
    Boxed(Box<dyn PermitHook>),
}

impl Permit {
    /// Builds the guard of a permit. For those who write a [`Throttle`](crate::Throttle).
    pub fn new(endpoint: Endpoint, hook: Box<dyn PermitHook>) -> Self {
        Self::with_hook(endpoint, Hook::Boxed(hook))
    }

    pub(crate) fn with_hook(endpoint: Endpoint, hook: Hook) -> Self {
        Self { endpoint, hook }
    }

    /// The endpoint that may be asked.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Waits until the permit is lost. A request that goes on after that is no longer counted.
    ///
    /// A permit of the in-memory throttle is never lost.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn lost(&self) {
        match &self.hook {
            Hook::Boxed(hook) => hook.lost().await,
            Hook::InMemory(_) | Hook::Settled => pending().await,
        }
    }

    /// Gives the permit back and says how the request went. Never blocks.
    pub fn finish(mut self, feedback: Feedback) {
        self.settle(feedback);
    }

    fn settle(&mut self, feedback: Feedback) {
        match std::mem::replace(&mut self.hook, Hook::Settled) {
            Hook::Settled => {}
            Hook::InMemory(hook) => hook.settle(&self.endpoint, feedback),
            Hook::Boxed(hook) => hook.settle(feedback),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.settle(Feedback::Failed);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
