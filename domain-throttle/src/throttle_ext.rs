use std::{
    future::Future,
    time::{Duration, Instant},
};

use crate::{Endpoint, Feedback, Permit, Throttle, ThrottleError};

/// Conveniences on any [`Throttle`], also on a `dyn Throttle`.
pub trait ThrottleExt: Throttle {
    /// Waits for a permit for one endpoint.
    ///
    /// # Errors
    ///
    /// As [`Throttle::acquire_any`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    fn acquire(
        &self,
        at: &Endpoint,
        key: &str,
    ) -> impl Future<Output = Result<Permit, ThrottleError>> + Send {
        async move { self.acquire_any(std::slice::from_ref(at), key).await }
    }

    /// As [`Throttle::acquire_any`], but gives up at `deadline`. A permit that is there at the
    /// deadline is taken.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::DeadlinePassed`], or as [`Throttle::acquire_any`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with its timer enabled.
    fn acquire_any_by(
        &self,
        at: &[Endpoint],
        key: &str,
        deadline: Instant,
    ) -> impl Future<Output = Result<Permit, ThrottleError>> + Send {
        async move {
            let permit = self.acquire_any(at, key);
            let in_time = tokio::time::timeout_at(deadline.into(), permit).await;
            in_time.unwrap_or(Err(ThrottleError::DeadlinePassed))
        }
    }

    /// Waits for a permit for one endpoint, for so long at most.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::DeadlinePassed`], or as [`Throttle::acquire_any`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with its timer enabled.
    fn acquire_within(
        &self,
        at: &Endpoint,
        key: &str,
        patience: Duration,
    ) -> impl Future<Output = Result<Permit, ThrottleError>> + Send {
        async move {
            let permit = self.acquire_any(std::slice::from_ref(at), key);
            let in_time = tokio::time::timeout(patience, permit).await;
            in_time.unwrap_or(Err(ThrottleError::DeadlinePassed))
        }
    }

    /// Waits for a permit, then runs `request`, and gives the permit back with the feedback that
    /// `request` ends with. `request` is not polled before there is a permit, and is dropped when
    /// the permit is lost.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Lost`] if the permit was lost on the way, or as [`Throttle::acquire_any`].
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, so is `request`; the permit goes back as
    /// [`Feedback::Failed`].
    fn run<T: Send>(
        &self,
        at: &Endpoint,
        key: &str,
        request: impl Future<Output = (T, Feedback)> + Send,
    ) -> impl Future<Output = Result<T, ThrottleError>> + Send {
        async move {
            let permit = self.acquire(at, key).await?;
            let answer = tokio::select! {
                biased;
                answer = request => Some(answer),
                () = permit.lost() => None,
            };
            let (answer, feedback) = answer.ok_or(ThrottleError::Lost)?;
            permit.finish(feedback);
            Ok(answer)
        }
    }
}

impl<T: Throttle + ?Sized> ThrottleExt for T {}
