//! One connection's side of the conversation: what it asked for, and the answer to each message.

use std::{borrow::Cow, sync::Arc, time::Instant};

use nostr::{
    filter::Filter,
    message::{RelayMessage, SubscriptionId},
};

use super::{
    super::{hub::Live, shared::Shared},
    message::{self, Malformed, Message},
    negotiations::{Begin, Negotiations},
    recently_sent::RecentlySent,
    stored, submit,
    subscriptions::Subscriptions,
};

/// What a connection has going on.
#[derive(Debug)]
pub(super) struct Conversation {
    shared: Arc<Shared>,
    subscriptions: Subscriptions,
    negotiations: Negotiations,
    recent: RecentlySent,
}

/// What is sent to the client, in order.
pub(super) type Answers = Vec<RelayMessage<'static>>;

impl Conversation {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            subscriptions: Subscriptions::default(),
            negotiations: Negotiations::default(),
            recent: RecentlySent::default(),
        }
    }

    pub(super) fn subscriptions(&self) -> usize {
        self.subscriptions.len()
    }

    /// The answer to a message of the client.
    pub(super) async fn answer(&mut self, text: &str, now: Instant) -> Answers {
        match message::read(text) {
            Ok(message) => self.answer_message(message, text.len(), now).await,
            Err(Malformed::Notice(why)) => vec![RelayMessage::notice(why)],
            Err(Malformed::Closed(id, why)) => {
                self.subscriptions.close(&id);
                vec![RelayMessage::closed(id, why)]
            }
            Err(Malformed::NegErr(id, why)) => {
                self.negotiations.end(&id);
                vec![neg_err(id, why)]
            }
        }
    }

    async fn answer_message(
        &mut self,
        message: Message<'_>,
        bytes: usize,
        now: Instant,
    ) -> Answers {
        match message {
            Message::Event(event) => vec![submit::submit(&self.shared, event).await],
            Message::Request { id, filters } => self.request(id, filters, bytes).await,
            Message::Count { id, filter } => vec![self.count(id, filter).await],
            Message::Close(id) => {
                self.subscriptions.close(&id);
                Vec::new()
            }
            Message::Reconcile { id, filter, first } => {
                let begin = Begin {
                    database: self.shared.database(),
                    filter,
                    most: self.shared.most_reconciled(),
                    slots: self.shared.reconciliations(),
                };
                let answer = self.negotiations.begin(id.clone(), begin, first, now).await;
                vec![neg_answer(id, answer.map_err(|why| why.to_string()))]
            }
            Message::ReconcileOn { id, next } => {
                let answer = self.negotiations.go_on(&id, next, now).await;
                vec![neg_answer(id, answer.map_err(|why| why.to_string()))]
            }
            Message::ReconcileEnd(id) => {
                self.negotiations.end(&id);
                Vec::new()
            }
        }
    }

    /// First the subscription, then the look at what is stored: what comes in between is told live.
    async fn request(&mut self, id: SubscriptionId, filters: Vec<Filter>, bytes: usize) -> Answers {
        let most = self.shared.most_subscriptions();
        let told = self.shared.hub().number();
        let opened = self.subscriptions.open(id.clone(), filters.clone(), bytes, told, most);
        let number = match opened {
            Ok(number) => number,
            Err(refused) => return vec![RelayMessage::closed(id, refused.to_string())],
        };
        match stored::query(&self.shared, &filters).await {
            Ok(events) => {
                for event in events.iter().rev() {
                    self.recent.note(number, event.id);
                }
                let events = events.into_iter().map(|event| RelayMessage::event(id.clone(), event));
                let mut answers: Answers = events.collect();
                answers.push(RelayMessage::eose(id));
                answers
            }
            Err(error) => {
                tracing::warn!(%error, "the database could not be asked");
                self.subscriptions.close(&id);
                vec![RelayMessage::closed(id, "error: the database could not be asked")]
            }
        }
    }

    async fn count(&self, id: SubscriptionId, filter: Filter) -> RelayMessage<'static> {
        match stored::count(&self.shared, filter).await {
            Ok(count) => RelayMessage::count(id, count),
            Err(error) => {
                tracing::warn!(%error, "the database could not be asked");
                RelayMessage::closed(id, "error: the database could not be asked")
            }
        }
    }

    /// What is to be sent of an event that is served from now on.
    pub(super) fn tell(&self, live: &Live) -> Answers {
        let wanted = self.subscriptions.matching(&live.event, live.number);
        wanted
            .filter(|(_, number)| !self.recent.contains(*number, live.event.id))
            .map(|(id, _)| RelayMessage::event(id.clone(), (*live.event).clone()))
            .collect()
    }

    /// Ends what nobody goes on with.
    pub(super) fn tidy(&mut self, now: Instant) -> Answers {
        let idle = self.negotiations.end_idle(now);
        idle.into_iter().map(|id| neg_err(id, "closed: nobody went on with it")).collect()
    }
}

fn neg_answer(id: SubscriptionId, answer: Result<String, String>) -> RelayMessage<'static> {
    match answer {
        Ok(message) => {
            RelayMessage::NegMsg { subscription_id: Cow::Owned(id), message: Cow::Owned(message) }
        }
        Err(why) => neg_err(id, why),
    }
}

fn neg_err(id: SubscriptionId, why: impl Into<String>) -> RelayMessage<'static> {
    RelayMessage::NegErr { subscription_id: Cow::Owned(id), message: Cow::Owned(why.into()) }
}
