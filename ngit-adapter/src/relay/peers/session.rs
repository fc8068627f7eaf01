//! What is done over one connection to a peer: hear what is new, catch up with what was missed, and hear on.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, interval_at, timeout},
};

use super::{
    PeerUrl,
    asking::{self, Answered, Budget, Ways},
    board::{PeerState, Seat},
    conversation::{Conversation, End, Heard, LIVE, now},
    known::Known,
    questions,
};
use crate::{RepositoryId, relay::limits::PING_INTERVAL};

/// One connection's work.
pub(super) struct Session<'a> {
    pub(super) url: &'a PeerUrl,
    pub(super) talk: Conversation<'a>,
    pub(super) seat: &'a Seat,
    pub(super) known: watch::Receiver<Arc<Known>>,
    /// What was asked about over this connection.
    pub(super) asked: HashSet<RepositoryId>,
    pub(super) ways: Ways,
}

/// How long it may take until an announcement that came is on the list of those that are known.
const LISTED: Duration = Duration::from_secs(10);

/// Why hearing on is interrupted.
enum Interruption {
    /// There are repositories that were not asked about.
    NewRepositories,
    /// Everything is asked for again.
    Again,
}

impl Session<'_> {
    /// Works until the connection ends.
    pub(super) async fn run(&mut self) -> End {
        match self.work().await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn work(&mut self) -> Result<std::convert::Infallible, End> {
        // Before anything is asked for, so that there is no gap.
        self.subscribe().await?;
        let mut all = true;
        loop {
            self.seat.set(PeerState::CatchingUp);
            self.catch_up(all).await?;
            // From the beginning, or since: what is new would not be heard.
            if let Some(why) = self.talk.not_live.take() {
                return Err(End::NotLive(why));
            }
            self.seat.set(PeerState::Live);
            all = matches!(self.hear_on().await?, Interruption::Again);
        }
    }

    /// Asks to be told what is new, and waits until the peer does, or says that it does not.
    async fn subscribe(&mut self) -> Result<(), End> {
        self.talk.request(LIVE, questions::live().to_vec()).await?;
        let until = now() + self.talk.settings.idle_timeout;
        loop {
            match self.talk.hear(until).await? {
                Some(Heard::EndOfStored(id) | Heard::Closed(id, _)) if id == LIVE => return Ok(()),
                Some(_) => {}
                // It may tell all the same.
                None => return Ok(()),
            }
        }
    }

    /// Asks for what is not here: for everything, or about repositories that were not asked about.
    async fn catch_up(&mut self, all: bool) -> Result<(), End> {
        let (begun, before) = (now(), self.talk.tally);
        let settings = self.talk.settings;
        let budget = Budget {
            until: begun + settings.catch_up_time,
            events: before.all.saturating_add(settings.catch_up_events),
        };
        let mut whole = true;
        if all {
            self.asked.clear();
            for question in questions::first() {
                whole &= self.ask(&question, budget).await?;
            }
            self.listed().await;
        }
        loop {
            let known = self.known.borrow_and_update().clone();
            // Of what is announced no more nothing is kept; should it be announced again, it is asked about again.
            self.asked.retain(|it| known.repositories.contains(it));
            let new: Vec<_> =
                known.repositories.iter().filter(|it| !self.asked.contains(*it)).cloned().collect();
            if new.is_empty() || self.talk.is_over(budget) {
                whole &= new.is_empty();
                break;
            }
            for question in questions::about(&new) {
                whole &= self.ask(&question, budget).await?;
            }
            self.asked.extend(new);
        }
        let came = self.talk.tally.since(before);
        let ms = now().saturating_duration_since(begun).as_millis();
        let (peer, by) = (&self.url, self.ways.as_str());
        let (new, known, refused) = (came.new, came.known, came.refused);
        if all {
            tracing::info!(%peer, new, known, refused, by, whole, ms, "caught up with a peer");
        } else {
            tracing::debug!(%peer, new, known, refused, by, whole, ms, "caught up with a peer");
        }
        Ok(())
    }

    /// Whether there are repositories that were not asked about.
    fn knows_more(&mut self) -> bool {
        let known = self.known.borrow_and_update();
        known.repositories.iter().any(|it| !self.asked.contains(it))
    }

    async fn ask(&mut self, question: &questions::Question, budget: Budget) -> Result<bool, End> {
        if self.talk.is_over(budget) {
            return Ok(false);
        }
        let answered = asking::ask(&mut self.talk, question, &mut self.ways, budget).await?;
        Ok(answered == Answered::Wholly)
    }

    /// Waits until what was announced by now is known.
    async fn listed(&mut self) {
        let version = self.talk.shared.announced_version();
        // Later is fine: it is an interruption then.
        let _ = timeout(LISTED, self.known.wait_for(|known| known.version >= version)).await;
    }

    /// Hears what is new until there is something to ask for.
    async fn hear_on(&mut self) -> Result<Interruption, End> {
        let mut pings = interval(PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let again = self.talk.settings.again_every;
        let mut again = interval_at((now() + again).into(), again);
        loop {
            tokio::select! {
                frame = self.talk.next_frame() => match self.talk.take(frame).await? {
                    Some(Heard::Closed(id, why)) if id == LIVE => return Err(End::NotLive(why)),
                    _ => {}
                },
                changed = self.known.changed() => match changed {
                    Ok(()) if self.knows_more() => return Ok(Interruption::NewRepositories),
                    Ok(()) => {}
                    // The relay stops.
                    Err(_) => return Err(End::Gone),
                },
                _ = again.tick() => return Ok(Interruption::Again),
                _ = pings.tick() => self.talk.ping().await?,
            }
        }
    }
}
