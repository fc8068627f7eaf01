//! Other relays: which of them are peers, and what they are asked (R9).
//!
//! Each peer has one task and one connection, and all is done one after the other: a message is read, and what it brings is
//! checked and admitted before the next one is read. Nothing waits in a queue; while the store is slow, nothing is read, and
//! TCP makes the peer wait.

mod asking;
mod board;
mod choice;
mod conversation;
mod dial;
mod frames;
mod intake;
mod known;
mod life;
mod pages;
mod questions;
mod reconcile;
mod refused;
mod session;
mod settings;
mod url;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(super) use self::{
    board::{Board, PeerState, Row},
    dial::Dialer,
    intake::Taken,
};
pub use self::{
    settings::PeerSettings,
    url::{PeerUrl, PeerUrlError},
};

use self::{
    asking::Ways,
    choice::Choice,
    intake::Intake,
    known::{Known, Listing},
    life::Common,
    url::Place,
};
use super::shared::Shared;

/// The wait after a change, for more of them: announcements come in bursts.
const SETTLE: Duration = Duration::from_millis(250);
/// A listing takes at most this part of the time.
const SHARE: u32 = 20;
/// How long it is remembered what was refused.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// A peer's task.
struct Running {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

/// Finds peers, and listens to them until `stop`.
pub(super) async fn run(
    shared: Arc<Shared>,
    settings: PeerSettings,
    dialer: Dialer,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let (tell, known) = watch::channel(Arc::new(Known::default()));
    let intake = Intake::default();
    let common = Arc::new(Common { shared, settings, dialer, intake, known });
    let mut changes = common.shared.announced_changes();
    let (mut running, mut cleared) = (HashMap::new(), now());
    loop {
        changes.mark_unchanged();
        let begun = now();
        if begun.saturating_duration_since(cleared) >= REMEMBERED {
            // What was given up may be let in by then, and settings of others change.
            common.intake.forget_refused();
            cleared = begun;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            listing = known::list(&common.shared) => match listing {
                Ok(Listing { known, named }) => {
                    let peers = choose(&common, &named);
                    keep(&mut running, peers, &common, &stop, &tasks);
                    tell.send_replace(Arc::new(known));
                }
                Err(error) => tracing::warn!(%error, "announcements could not be listed"),
            },
        }
        let breath = SETTLE.max(now().saturating_duration_since(begun) * SHARE);
        let waits = async {
            // From time to time without a change, too: what is held too long goes without one.
            let _ = timeout(common.settings.again_every, changes.changed()).await;
            breathe(breath).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = waits => {}
        }
    }
}

fn choose(common: &Common, named: &[(nostr::key::PublicKey, PeerUrl)]) -> Vec<PeerUrl> {
    choice::choose(&Choice {
        bootstrap: &common.settings.bootstrap,
        named,
        resting: &common.shared.peers().resting(now()),
        ours: common.shared.ours(),
        most: common.settings.most,
    })
}

/// Ends what is no peer any more, and begins what is one now.
fn keep(
    running: &mut HashMap<Place, Running>,
    peers: Vec<PeerUrl>,
    common: &Arc<Common>,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) {
    let mut peers: HashMap<Place, PeerUrl> = peers.into_iter().map(|it| (it.place(), it)).collect();
    running.retain(|place, it| {
        let stays = peers.contains_key(place);
        if !stays {
            it.stop.cancel();
        }
        // One that panicked is begun anew.
        stays && !it.task.is_finished()
    });
    peers.retain(|place, _| !running.contains_key(place));
    for (place, url) in peers {
        let stop = stop.child_token();
        let task = tasks.spawn(life::live(url, Arc::clone(common), stop.clone()));
        running.insert(place, Running { task, stop });
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell file: there is nothing else to wait for")]
async fn breathe(length: Duration) {
    tokio::time::sleep(length).await;
}

#[expect(clippy::disallowed_methods, reason = "the shell of the choice of peers")]
fn now() -> Instant {
    Instant::now()
}
