//! What is said over one connection to a peer: one message after the other, none of them waits in a queue.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Instant,
};

use futures::{SinkExt, StreamExt};
use nostr::{event::EventId, filter::Filter};
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message as Frame};

use super::{
    PeerSettings,
    board::Seat,
    dial::Socket,
    frames::{self, Said},
    intake::{Intake, Look, Taken},
};
use crate::relay::{limits::WRITE_TIMEOUT, shared::Shared, websocket::Pace};

/// A connection to a peer, and what was asked over it.
pub(super) struct Conversation<'a> {
    pub(super) shared: &'a Shared,
    pub(super) settings: &'a PeerSettings,
    pub(super) intake: &'a Intake,
    seat: &'a Seat,
    socket: Socket,
    pace: Pace,
    /// What is asked for now, by the id of the subscription.
    asked: HashMap<String, Vec<Filter>>,
    seen: Seen,
    faults: u32,
    heard: bool,
    requests: u64,
    /// Why the peer does not tell what is new, if it said so, whatever else was waited for then.
    pub(super) not_live: Option<String>,
    pub(super) tally: Tally,
}

/// The subscription for what is new.
pub(super) const LIVE: &str = "live";

/// What a peer said, as far as it is of use.
#[derive(Debug)]
pub(super) enum Heard {
    /// An event came for this subscription. It was taken care of.
    Event(String, Look),
    EndOfStored(String),
    Closed(String, String),
    Notice(String),
    Reconcile(String, String),
    ReconcileRefused(String, String),
}

/// Why a conversation ends.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum End {
    #[error("the connection ended")]
    Gone,
    #[error("it does not read what it is sent")]
    TooSlow,
    #[error("it says nothing, not even to a ping")]
    Silent,
    #[error("a message is larger than is read")]
    TooLarge,
    #[error(
        "it sends too much that is no use: wrong events, or none that was asked for, or the same over and over"
    )]
    Faulty,
    #[error("it does not tell what is new: {0:?}")]
    NotLive(String),
}

/// What became of the events of a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) all: usize,
    pub(super) new: usize,
    pub(super) known: usize,
    pub(super) refused: usize,
}

/// How much of no use a peer may send over one connection.
const MAX_FAULTS: u32 = 1_000;

impl<'a> Conversation<'a> {
    pub(super) fn new(
        socket: Socket,
        shared: &'a Shared,
        settings: &'a PeerSettings,
        intake: &'a Intake,
        seat: &'a Seat,
    ) -> Self {
        Self {
            shared,
            settings,
            intake,
            seat,
            socket,
            pace: Pace::new(settings.frames_per_minute, now()),
            asked: HashMap::new(),
            seen: Seen::default(),
            faults: 0,
            heard: true,
            requests: 0,
            not_live: None,
            tally: Tally::default(),
        }
    }

    /// An id that was not used before.
    pub(super) fn fresh_id(&mut self) -> String {
        self.requests += 1;
        format!("ask-{}", self.requests)
    }

    /// Asks for events. What comes for this id from now on is taken if it fits.
    pub(super) async fn request(&mut self, id: &str, filters: Vec<Filter>) -> Result<(), End> {
        let mut message = vec![Value::from("REQ"), Value::from(id)];
        message.extend(filters.iter().map(|it| serde_json::to_value(it).unwrap_or_default()));
        self.asked.insert(id.to_owned(), filters);
        self.send(Value::from(message)).await
    }

    /// Asks for nothing more under this id.
    pub(super) async fn close(&mut self, id: &str) -> Result<(), End> {
        self.asked.remove(id);
        self.send(serde_json::json!(["CLOSE", id])).await
    }

    pub(super) async fn send(&mut self, message: Value) -> Result<(), End> {
        self.send_frame(Frame::text(message.to_string())).await
    }

    async fn send_frame(&mut self, frame: Frame) -> Result<(), End> {
        match timeout(WRITE_TIMEOUT, self.socket.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => Err(End::TooSlow),
        }
    }

    /// Asks whether the peer lives, if it said nothing since the last time.
    pub(super) async fn ping(&mut self) -> Result<(), End> {
        if !std::mem::take(&mut self.heard) {
            return Err(End::Silent);
        }
        self.send_frame(Frame::Ping(Vec::new().into())).await
    }

    /// The next thing of use that the peer says; nothing if none comes until then. Time that we take ourselves for
    /// an event does not count.
    pub(super) async fn hear(&mut self, until: Instant) -> Result<Option<Heard>, End> {
        loop {
            let frame = tokio::time::timeout_at(until.into(), self.next_frame()).await;
            let Ok(frame) = frame else { return Ok(None) };
            if let Some(heard) = self.take(frame).await? {
                return Ok(Some(heard));
            }
        }
    }

    /// Cancel safe: nothing is lost if the future is dropped.
    #[expect(clippy::disallowed_methods, reason = "a shell file: this is where reading is put off")]
    pub(super) async fn next_frame(&mut self) -> Option<Result<Frame, SocketError>> {
        let now = now();
        let ready = self.pace.ready_at(now);
        if ready > now {
            tokio::time::sleep_until(ready.into()).await;
        }
        self.socket.next().await
    }

    /// Takes care of a frame. Not cancel safe: an event is let go half way.
    pub(super) async fn take(
        &mut self,
        frame: Option<Result<Frame, SocketError>>,
    ) -> Result<Option<Heard>, End> {
        self.pace.count(now());
        self.heard = true;
        let text = match frame {
            Some(Ok(Frame::Text(text))) => text,
            Some(Ok(Frame::Ping(_) | Frame::Pong(_))) => return Ok(None),
            Some(Ok(Frame::Binary(_) | Frame::Frame(_))) => return self.fault(),
            Some(Err(SocketError::Capacity(_))) => return Err(End::TooLarge),
            None | Some(Err(_) | Ok(Frame::Close(_))) => return Err(End::Gone),
        };
        match frames::read(&text) {
            None => self.fault(),
            Some(Said::Other) => Ok(None),
            Some(Said::Event { subscription, json }) => self.take_event(subscription, json).await,
            Some(Said::EndOfStored(id)) => Ok(Some(Heard::EndOfStored(id))),
            Some(Said::Closed(id, why)) => {
                if self.asked.remove(&id).is_some() && id == LIVE {
                    self.not_live = Some(why.clone());
                }
                Ok(Some(Heard::Closed(id, why)))
            }
            Some(Said::Notice(words)) => Ok(Some(Heard::Notice(words))),
            Some(Said::Reconcile(id, message)) => Ok(Some(Heard::Reconcile(id, message))),
            Some(Said::ReconcileRefused(id, why)) => Ok(Some(Heard::ReconcileRefused(id, why))),
        }
    }

    async fn take_event(&mut self, subscription: String, json: &str) -> Result<Option<Heard>, End> {
        // Late ones of what was closed come, too.
        let Some(asked) = self.asked.get(&subscription) else { return self.fault() };
        let look = self.intake.take(self.shared, json, asked).await;
        let again = look.event.is_some_and(|(id, _)| !self.seen.note(&subscription, id));
        self.tally.count(look.taken);
        if look.taken == Taken::New {
            self.seat.count_event();
        }
        // That it is about no repository of ours is no fault: how should a peer know?
        if again || matches!(look.taken, Taken::Invalid | Taken::Unasked) {
            self.fault()?;
        }
        Ok(Some(Heard::Event(subscription, look)))
    }

    /// Counts something of no use.
    fn fault(&mut self) -> Result<Option<Heard>, End> {
        self.faults += 1;
        if self.faults > MAX_FAULTS { Err(End::Faulty) } else { Ok(None) }
    }
}

impl Tally {
    fn count(&mut self, taken: Taken) {
        self.all += 1;
        match taken {
            Taken::New => self.new += 1,
            Taken::Known => self.known += 1,
            _ => self.refused += 1,
        }
    }

    /// What came since.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            new: self.new - before.new,
            known: self.known - before.known,
            refused: self.refused - before.refused,
        }
    }
}

/// What a peer sent of late, by subscription: nobody sends the same event twice for one.
#[derive(Debug, Default)]
struct Seen {
    known: HashSet<(String, EventId)>,
    order: VecDeque<(String, EventId)>,
}

impl Seen {
    const MOST: usize = 2_048;

    /// Says whether it is new.
    fn note(&mut self, subscription: &str, id: EventId) -> bool {
        let seen = (subscription.to_owned(), id);
        if !self.known.insert(seen.clone()) {
            return false;
        }
        self.order.push_back(seen);
        if self.order.len() > Self::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[expect(clippy::disallowed_methods, reason = "the shell of the conversation")]
pub(super) fn now() -> Instant {
    Instant::now()
}
