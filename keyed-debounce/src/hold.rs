use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use async_trait::async_trait;

use crate::{
    Event, Outcome, RunHook,
    schedule::{Ending, Finished, HandOut, Then, Ticket, Timestamp},
    shared::{Owner, Shared},
};

/// The hold on a key of a [`KeyedDebouncer`](crate::KeyedDebouncer).
pub(crate) struct Hold<K> {
    shared: Owner<K>,
    key: Arc<K>,
    attempt: u32,
    started: Timestamp,
    ticket: Ticket,
}

impl<K> Hold<K> {
    pub(crate) fn new(shared: Owner<K>, hand_out: HandOut<K>, started: Timestamp) -> Self {
        let HandOut { key, attempt, ticket, .. } = hand_out;
        Self { shared, key, attempt, started, ticket }
    }
}

#[async_trait]
impl<K: Send + Sync> RunHook for Hold<K> {
    fn settle(self: Box<Self>, outcome: Outcome) {
        let Self { shared, key, attempt, started, ticket } = *self;
        let ending = Ending::new(outcome, attempt, &*shared.backoff, shared.random());
        let (finished, ended) =
            shared.change(|state, now| (state.schedule.finish(ticket, ending, now), now));
        shared.observe(&finished_event(&key, outcome, &finished, started, ended));
    }

    async fn scheduled_again(&self) {
        let mut waiting = AgainWaiter { hold: self, id: None };
        poll_fn(|cx| waiting.poll(cx)).await;
    }
}

fn finished_event<'a, K>(
    key: &'a K,
    outcome: Outcome,
    finished: &Finished<K>,
    started: Timestamp,
    ended: Timestamp,
) -> Event<'a, K> {
    let (due, backs_off, failures) = match finished.then {
        Then::Forgotten => (None, false, 0),
        Then::Requested { due } => (Some(due), false, 0),
        Then::Backoff { due, failures } => (Some(due), true, failures),
    };
    Event::Finished {
        key,
        outcome,
        took: ended.saturating_since(started),
        due_in: due.map(|due| due.saturating_since(ended)),
        backs_off,
        failures,
    }
}

/// Waits for a request of the key while its run is on.
struct AgainWaiter<'a, K> {
    hold: &'a Hold<K>,
    id: Option<u64>,
}

impl<K> AgainWaiter<'_, K> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let slot = self.hold.ticket.slot;
        let _replaced = {
            let mut state = self.hold.shared.lock();
            if state.schedule.is_requested_again(&self.hold.ticket) {
                return Poll::Ready(());
            }
            state.wait_for_again(slot, &mut self.id, waker)
        };
        Poll::Pending
    }
}

impl<K> Drop for AgainWaiter<'_, K> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let shared: &Shared<K> = &self.hold.shared;
            let waker = shared.lock().stop_waiting_for_again(self.hold.ticket.slot, id);
            drop(waker);
        }
    }
}
