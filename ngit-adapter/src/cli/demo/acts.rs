use std::time::Duration;

use purgatory_sync::{Snapshot, State};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::{story::Story, world::Told};
use crate::{
    cli::{Failure, session::Session},
    nip34::{EventLimits, VerifiedEvent},
};

/// Events come one after the other, so close that they are one burst.
const BETWEEN_EVENTS: Duration = Duration::from_millis(8);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// A burst, and all that follows from it; then some events that come late. The time is over at `until`.
pub(super) async fn play(
    session: &Session,
    story: &Story,
    quiet: Duration,
    until: Instant,
) -> Result<(), Failure> {
    if !first(session, story, quiet, until).await? || !second(session, story, until).await? {
        story.about("", "the time is over");
    }
    Ok(())
}

/// Whether it came to its end.
async fn first(
    session: &Session,
    story: &Story,
    quiet: Duration,
    until: Instant,
) -> Result<bool, Failure> {
    arrive(session, story, &story.world.burst).await?;
    let heard = story.heard();
    let announce = heard.came - heard.wait;
    let came = format!(
        "{} events came: {} wait for data, {announce} say where it is",
        heard.came, heard.wait
    );
    story.about("", &came);
    let hunt =
        format!("{} ms of quiet, then the hunt begins: one per repository", quiet.as_millis());
    story.about("", &story.paint.dim(&hunt));
    Ok(calm(session, story, until).await)
}

/// Whether it came to its end.
async fn second(session: &Session, story: &Story, until: Instant) -> Result<bool, Failure> {
    for told in &story.world.later {
        story.about(told.repository, &format!("one more event: {}", told.what));
    }
    arrive(session, story, &story.world.later).await?;
    Ok(calm(session, story, until).await)
}

async fn arrive(session: &Session, story: &Story, events: &[Told]) -> Result<(), Failure> {
    let mut ticks = interval(BETWEEN_EVENTS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for told in events {
        ticks.tick().await;
        let event = VerifiedEvent::check(told.event.clone(), &EventLimits::default())
            .map_err(Failure::because("an event of the demo is not valid"))?;
        story.arrives(told);
        session.take(event).await.map_err(Failure::because("an event could not be kept"))?;
    }
    Ok(())
}

/// Waits until nothing goes on any more: what is still held has been looked for everywhere, and is put off. Says false
/// if the time is over before that.
async fn calm(session: &Session, story: &Story, until: Instant) -> bool {
    let mut looks = interval(BETWEEN_LOOKS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let looking = async {
        loop {
            looks.tick().await;
            let snapshot = session.snapshot();
            story.sees(&snapshot);
            if is_calm(&snapshot) {
                return;
            }
        }
    };
    timeout_at(until, looking).await.is_ok()
}

/// What is paused is not: its pause ends soon, and by itself.
fn is_calm(snapshot: &Snapshot) -> bool {
    let put_off = |state: &State| matches!(state, State::Backoff { .. });
    !snapshot.restoring && snapshot.identifiers.iter().all(|each| put_off(&each.state))
}
