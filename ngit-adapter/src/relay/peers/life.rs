//! One peer's life: connect, work, and after a failure wait, longer each time.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use purgatory_sync::keyed_debounce::Backoff;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    PeerSettings, PeerUrl, Ways,
    board::{PeerState, Seat},
    conversation::{Conversation, End, now},
    dial::{DialError, Dialer},
    intake::Intake,
    known::Known,
    session::Session,
};
use crate::relay::shared::Shared;

/// What all peers have in common.
pub(super) struct Common {
    pub(super) shared: Arc<Shared>,
    pub(super) settings: PeerSettings,
    pub(super) dialer: Dialer,
    pub(super) intake: Intake,
    pub(super) known: watch::Receiver<Arc<Known>>,
}

/// Listens to a peer until `stop`.
pub(super) async fn live(url: PeerUrl, common: Arc<Common>, stop: CancellationToken) {
    let seat = common.shared.peers().seat(url.clone());
    let work = async {
        let mut failures = 0_u32;
        loop {
            seat.set(PeerState::Connecting);
            let begun = now();
            let ended = connect_and_work(&url, &common, &seat).await;
            let lasted = now().saturating_duration_since(begun);
            if lasted >= common.settings.healthy_after && ended.is_no_refusal() {
                failures = 0;
            }
            failures = failures.saturating_add(1);
            let delay = delay(&common.settings, failures);
            log_end(&url, &ended, failures, delay);
            seat.failed(failures, now());
            seat.set(PeerState::Waiting(now() + delay));
            wait(delay).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Why a peer is left alone for a while.
enum Ended {
    NotReached(DialError),
    Ended(End),
}

impl Ended {
    /// One that does not tell what is new, or tells rubbish, may take its time for that: it is no good peer.
    fn is_no_refusal(&self) -> bool {
        !matches!(self, Self::Ended(End::NotLive(_) | End::Faulty))
    }
}

async fn connect_and_work(url: &PeerUrl, common: &Common, seat: &Seat) -> Ended {
    let settings = &common.settings;
    // More than an event that is taken here: one that is larger is passed over, and is no reason to hang up.
    let most = common.shared.limits().message_bytes().saturating_mul(2);
    let socket = match common.dialer.dial(url, most, settings.connect_timeout).await {
        Ok(socket) => socket,
        Err(error) => return Ended::NotReached(error),
    };
    tracing::info!(peer = %url, "connected to a peer");
    let talk = Conversation::new(socket, &common.shared, settings, &common.intake, seat);
    let known = common.known.clone();
    let mut session =
        Session { url, talk, seat, known, asked: Default::default(), ways: Ways::default() };
    Ended::Ended(session.run().await)
}

fn delay(settings: &PeerSettings, failures: u32) -> Duration {
    // A hasher with keys of its own is as random as this has to be.
    let random = RandomState::new().hash_one(failures);
    settings.reconnect.delay(NonZeroU32::new(failures).unwrap_or(NonZeroU32::MIN), random)
}

#[expect(clippy::disallowed_methods, reason = "a shell file: there is nothing else to wait for")]
async fn wait(delay: Duration) {
    tokio::time::sleep(delay).await;
}

fn log_end(peer: &PeerUrl, ended: &Ended, failures: u32, delay: Duration) {
    let again_in = delay.as_secs_f32();
    match ended {
        Ended::NotReached(error @ DialError::Refused(_)) => {
            tracing::warn!(%peer, %error, failures, again_in, "peer refused");
        }
        Ended::NotReached(error) => {
            let error: &dyn std::error::Error = error;
            if failures == 1 {
                tracing::warn!(%peer, error, failures, again_in, "peer not reached");
            } else {
                tracing::debug!(%peer, error, failures, again_in, "peer not reached");
            }
        }
        Ended::Ended(end @ (End::Faulty | End::TooLarge | End::NotLive(_))) => {
            tracing::warn!(%peer, %end, failures, again_in, "peer refused");
        }
        Ended::Ended(end) => tracing::info!(%peer, %end, again_in, "connection to a peer ended"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// R9: one that refuses is no healthy peer, however long it takes for that; one whose connection ends is.
    #[test]
    fn a_refusal_does_not_end_the_failures() {
        let refusals = [End::NotLive("no".to_owned()), End::Faulty];
        assert!(refusals.into_iter().all(|end| !Ended::Ended(end).is_no_refusal()));
        let ends = [End::Gone, End::Silent, End::TooSlow];
        assert!(ends.into_iter().all(|end| Ended::Ended(end).is_no_refusal()));
    }

    proptest! {
        /// R9: the wait after failures grows, is random by half of it, and is never over the cap, nor nothing.
        #[test]
        fn the_wait_grows_up_to_its_cap(failures in 1_u32..=u32::MAX) {
            let settings = PeerSettings::default();
            let whole = 2_f64.powi(i32::try_from(failures.min(30)).unwrap() - 1).min(600.0);
            for _ in 0..8 {
                let delay = delay(&settings, failures).as_secs_f64();
                prop_assert!(delay <= whole && delay >= whole / 2.0 - 0.001, "{delay} {whole}");
            }
        }
    }
}
