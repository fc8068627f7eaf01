use std::time::{Duration, Instant};

use crate::moment::Moment;

/// Where moments of the core and instants of the world meet. The only reader of a clock here.
///
/// It is tokio's clock, so that a test that pauses tokio's time pauses this too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: tokio::time::Instant,
}

/// How far ahead an instant may lie; what is later is said to be then.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the shell's clock")]
    pub(crate) fn start() -> Self {
        Self { epoch: tokio::time::Instant::now() }
    }

    #[expect(clippy::disallowed_methods, reason = "the shell's clock")]
    #[inline]
    pub(crate) fn now(&self) -> Moment {
        let elapsed = tokio::time::Instant::now().saturating_duration_since(self.epoch);
        Moment::ZERO.saturating_add(elapsed)
    }

    #[inline]
    pub(crate) fn instant(&self, at: Moment) -> Instant {
        self.tokio_instant(at).into_std()
    }

    #[inline]
    pub(crate) fn tokio_instant(&self, at: Moment) -> tokio::time::Instant {
        let since = at.saturating_since(Moment::ZERO);
        self.epoch.checked_add(since.min(FAR)).unwrap_or(self.epoch)
    }

    #[expect(clippy::disallowed_methods, reason = "the shell's timer")]
    pub(crate) async fn sleep_until(&self, at: Moment) {
        tokio::time::sleep_until(self.tokio_instant(at)).await;
    }
}
