use std::{sync::Arc, time::Instant};

use axum::extract::ws::{CloseFrame, Message as Frame, Utf8Bytes, WebSocket, close_code};
use nostr::message::RelayMessage;
use tokio::{
    sync::broadcast::error::RecvError,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        limits::{PING_INTERVAL, WRITE_TIMEOUT},
        metrics::Counted,
        shared::Shared,
    },
    answer::{Answers, Conversation},
    pace::Pace,
};

/// Talks with one client until either side ends it, or `stop`.
///
/// All is done one after the other, in one task: what is read is answered before the next is read, and nothing
/// waits in a queue of its own. A client that does not take its answers is read no further, and closed after a while.
pub(in super::super) async fn serve(
    socket: WebSocket,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let _counted = Counted::connection();
    let mut live = shared.hub().listen();
    let mut client = Client::new(socket, shared);
    let mut ticks = interval(PING_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    let end = loop {
        let pause = client.pause();
        let step = tokio::select! {
            () = stop.cancelled() => Err(End::Stopped),
            frame = client.next_frame(pause) => client.take(frame).await,
            told = live.recv() => match told {
                Ok(told) => {
                    let answers = client.conversation.tell(&told);
                    client.send_all(answers).await
                }
                Err(RecvError::Lagged(_)) => client.missed(),
                Err(RecvError::Closed) => Err(End::Stopped),
            },
            _ = ticks.tick() => client.look_after().await,
        };
        if let Err(end) = step {
            break end;
        }
    };
    client.close(end).await;
}

struct Client {
    socket: WebSocket,
    conversation: Conversation,
    messages: Pace,
    events: Pace,
    max_bytes: usize,
    heard: bool,
    told_of_pace: bool,
    counted: Counted,
}

/// Why a conversation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client went, or its connection broke.
    Gone,
    /// The relay stops.
    Stopped,
    /// The client does not take what it asked for.
    TooSlow,
    /// The client does not answer.
    Silent,
}

impl Client {
    fn new(socket: WebSocket, shared: Arc<Shared>) -> Self {
        let limits = *shared.limits();
        let now = now();
        Self {
            socket,
            conversation: Conversation::new(shared),
            messages: Pace::new(limits.messages_per_minute, now),
            events: Pace::new(limits.events_per_minute, now),
            max_bytes: limits.message_bytes(),
            heard: true,
            told_of_pace: false,
            counted: Counted::subscriptions(),
        }
    }

    /// Until when nothing is read, because more was sent than is read in a minute.
    fn pause(&mut self) -> Option<Instant> {
        let now = now();
        let ready = self.messages.ready_at(now).max(self.events.ready_at(now));
        (ready > now).then_some(ready)
    }

    /// Cancel safe: nothing is lost if the future is dropped.
    #[expect(clippy::disallowed_methods, reason = "a shell file: this is where reading is put off")]
    async fn next_frame(&mut self, pause: Option<Instant>) -> Option<Result<Frame, axum::Error>> {
        if let Some(until) = pause {
            tokio::time::sleep_until(until.into()).await;
        }
        self.socket.recv().await
    }

    async fn take(&mut self, frame: Option<Result<Frame, axum::Error>>) -> Result<(), End> {
        self.heard = true;
        match frame {
            None | Some(Err(_) | Ok(Frame::Close(_))) => Err(End::Gone),
            Some(Ok(Frame::Ping(_) | Frame::Pong(_))) => {
                self.messages.count(now());
                Ok(())
            }
            Some(Ok(Frame::Binary(_))) => {
                self.messages.count(now());
                self.send(RelayMessage::notice("invalid: messages are text, not binary")).await
            }
            Some(Ok(Frame::Text(text))) => self.take_text(&text).await,
        }
    }

    async fn take_text(&mut self, text: &str) -> Result<(), End> {
        let now = now();
        self.messages.count(now);
        if text.trim_start().starts_with("[\"EVENT\"") {
            self.events.count(now);
        }
        if text.len() > self.max_bytes {
            let (bytes, most) = (text.len(), self.max_bytes);
            let why = format!("invalid: the message has {bytes} bytes, at most {most} are taken");
            return self.send(RelayMessage::notice(why)).await;
        }
        let answers = self.conversation.answer(text, now).await;
        self.counted.set(self.conversation.subscriptions());
        self.send_all(answers).await?;
        if !self.told_of_pace && self.pause().is_some() {
            self.told_of_pace = true;
            let why = "rate-limited: you send more than is read in a minute; from now on you are read more slowly";
            return self.send(RelayMessage::notice(why)).await;
        }
        Ok(())
    }

    /// More was told than is kept for a connection. Whoever asked for nothing has missed nothing: a client that only
    /// sends is not closed because its answers take long.
    fn missed(&self) -> Result<(), End> {
        if self.conversation.subscriptions() == 0 { Ok(()) } else { Err(End::TooSlow) }
    }

    /// Asks whether the client lives, and ends what nobody goes on with.
    async fn look_after(&mut self) -> Result<(), End> {
        if !std::mem::take(&mut self.heard) {
            return Err(End::Silent);
        }
        let answers = self.conversation.tidy(now());
        self.send_all(answers).await?;
        self.send_frame(Frame::Ping(axum::body::Bytes::new())).await
    }

    async fn send_all(&mut self, answers: Answers) -> Result<(), End> {
        for answer in answers {
            self.send(answer).await?;
        }
        Ok(())
    }

    async fn send(&mut self, message: RelayMessage<'static>) -> Result<(), End> {
        self.send_frame(Frame::Text(Utf8Bytes::from(message.as_json()))).await
    }

    async fn send_frame(&mut self, frame: Frame) -> Result<(), End> {
        match timeout(WRITE_TIMEOUT, self.socket.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => Err(End::TooSlow),
        }
    }

    async fn close(mut self, end: End) {
        let (code, reason) = match end {
            End::Gone => return,
            End::Stopped => (close_code::AWAY, "the relay stops"),
            End::TooSlow => (close_code::POLICY, "too slow: what was asked for was not taken"),
            End::Silent => (close_code::POLICY, "no answer to a ping"),
        };
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        // It may not be taken either. Then the connection just ends.
        let _ = timeout(CLOSE_TIMEOUT, self.socket.send(Frame::Close(Some(frame)))).await;
    }
}

const CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

#[expect(clippy::disallowed_methods, reason = "the shell of the connection's cores")]
fn now() -> Instant {
    Instant::now()
}
