use std::time::Duration;

use purgatory_sync::{Snapshot, State};
use tokio::time::{MissedTickBehavior, interval};

use super::{story::Story, world::Told};
use crate::{
    cli::{Failure, session::Session},
    nip34::{EventLimits, VerifiedEvent},
};

/// Events come one after the other, so close that they are one burst.
const BETWEEN_EVENTS: Duration = Duration::from_millis(8);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// A burst, and all that follows from it; then some events that come late.
pub(super) async fn play(session: &Session, story: &Story, quiet: Duration) -> Result<(), Failure> {
    arrive(session, story, &story.world.burst).await?;
    story.about("", &{
        let heard = story.heard();
        let here = heard.came - heard.wait;
        format!("{} came, {} wait for their data, {here} say where it is", heard.came, heard.wait)
    });
    let hunt =
        format!("after {} ms of quiet the hunt begins: one for each repository", quiet.as_millis());
    story.about("", &story.paint.dim(&hunt));
    calm(session, story).await;

    for told in &story.world.later {
        story.about(told.repository, &format!("one more event: {}", told.what));
    }
    arrive(session, story, &story.world.later).await?;
    calm(session, story).await;
    Ok(())
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

/// Waits until nothing goes on any more: what is still held has been looked for everywhere, and is put off.
async fn calm(session: &Session, story: &Story) {
    let mut looks = interval(BETWEEN_LOOKS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let snapshot = session.snapshot();
        story.sees(&snapshot);
        if is_calm(&snapshot) {
            return;
        }
    }
}

/// What is paused is not: its pause ends soon, and by itself.
fn is_calm(snapshot: &Snapshot) -> bool {
    let put_off = |state: &State| matches!(state, State::Backoff { .. });
    !snapshot.restoring && snapshot.identifiers.iter().all(|each| put_off(&each.state))
}
