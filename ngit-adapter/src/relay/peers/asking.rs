//! One question to a peer: by NIP-77, by REQ where that is refused or stalls.

use std::time::Instant;

use nostr::{event::EventId, filter::Filter, types::Timestamp};
use serde_json::json;

use super::{
    conversation::{Conversation, End, Heard, now},
    intake::Taken,
    pages::{PAGE, Pages},
    questions::{About, Question},
    reconcile::{Broken, Reconciliation, Turn},
};
use crate::relay::shared::Shared;

/// How a peer is asked. What it refuses once is not tried again over the same connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ways {
    no_reconciliation: bool,
    reconciled: bool,
    requested: bool,
}

impl Ways {
    /// In a word, for people.
    pub(super) const fn as_str(self) -> &'static str {
        match (self.reconciled, self.requested) {
            (true, true) => "NIP-77 and REQ",
            (false, true) => "REQ",
            _ => "NIP-77",
        }
    }
}

/// What there is left for one catch-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) until: Instant,
    /// How many events may have come over the connection when it ends.
    pub(super) events: usize,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Wholly,
    /// The peer refused it, went silent, or the budget is used up.
    InPart,
}

/// How many events are asked for by their ids at once.
const IDS_AT_ONCE: usize = 200;

/// Asks one question, and takes what comes.
pub(super) async fn ask(
    talk: &mut Conversation<'_>,
    question: &Question,
    ways: &mut Ways,
    budget: Budget,
) -> Result<Answered, End> {
    if !ways.no_reconciliation {
        match reconcile(talk, question, budget).await? {
            Some(answered) => {
                ways.reconciled = true;
                return Ok(answered);
            }
            None => ways.no_reconciliation = true,
        }
    }
    ways.requested = true;
    page(talk, question, budget).await
}

/// Compares and fetches what is lacking, until nothing is. Nothing if the peer does not do it.
async fn reconcile(
    talk: &mut Conversation<'_>,
    question: &Question,
    budget: Budget,
) -> Result<Option<Answered>, End> {
    loop {
        let Some((lacking, all)) = compare(talk, question, budget).await? else { return Ok(None) };
        let mut progress = false;
        for ids in lacking.chunks(IDS_AT_ONCE) {
            match fetch(talk, ids, budget).await? {
                Some(new) => progress |= new > 0,
                None => return Ok(None),
            }
            if talk.is_over(budget) {
                return Ok(Some(Answered::InPart));
            }
        }
        // A peer that names what it does not give is not asked for ever.
        if all || !progress {
            return Ok(Some(if all { Answered::Wholly } else { Answered::InPart }));
        }
    }
}

/// What the peer has that is not here, and whether that is all. Nothing if the peer does not compare.
async fn compare(
    talk: &mut Conversation<'_>,
    question: &Question,
    budget: Budget,
) -> Result<Option<(Vec<EventId>, bool)>, End> {
    let Some(here) = known(talk, question).await else { return Ok(None) };
    let Ok((mut ours, first)) = off_worker(move || Reconciliation::begin(here)).await else {
        return Ok(None);
    };
    let id = talk.fresh_id();
    talk.send(json!(["NEG-OPEN", id, question.filter, first])).await?;
    let result = loop {
        let Some(message) = next_message(talk, &id, budget).await? else { break None };
        let heard = off_worker(move || {
            let turn = ours.hear(&message)?;
            Ok((ours, turn))
        });
        let Ok((back, turn)) = heard.await else { break None };
        ours = back;
        match turn {
            Turn::Send(next) => talk.send(json!(["NEG-MSG", id, next])).await?,
            Turn::Enough { all } => break Some((ours.into_lacking(), all)),
        }
    };
    talk.send(json!(["NEG-CLOSE", id])).await?;
    Ok(result)
}

/// The peer's next message in a comparison. Nothing if it refuses, or goes silent.
async fn next_message(
    talk: &mut Conversation<'_>,
    id: &str,
    budget: Budget,
) -> Result<Option<String>, End> {
    let until = talk.patience(budget);
    loop {
        match talk.hear(until).await? {
            Some(Heard::Reconcile(of, message)) if of == id => return Ok(Some(message)),
            Some(Heard::ReconcileRefused(of, why) | Heard::Closed(of, why)) if of == id => {
                tracing::debug!(%why, "a peer does not compare");
                return Ok(None);
            }
            // Those that do not know the message say so like this.
            Some(Heard::Notice(words)) => {
                tracing::debug!(%words, "a peer does not compare");
                return Ok(None);
            }
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

/// Fetches these events. How many of them were of use; nothing if the peer refuses or goes silent.
async fn fetch(
    talk: &mut Conversation<'_>,
    ids: &[EventId],
    budget: Budget,
) -> Result<Option<usize>, End> {
    let id = talk.fresh_id();
    talk.request(&id, vec![Filter::new().ids(ids.iter().copied())]).await?;
    let (mut came, mut new) = (0, 0);
    let whole = loop {
        match talk.hear(talk.patience(budget)).await? {
            Some(Heard::Event(of, look)) if of == id => {
                came += 1;
                new += usize::from(matches!(look.taken, Taken::New | Taken::Refused));
                if came > ids.len() {
                    break false;
                }
            }
            Some(Heard::EndOfStored(of)) if of == id => break true,
            Some(Heard::Closed(of, _)) if of == id => return Ok(None),
            Some(_) => {}
            None => break false,
        }
    };
    talk.close(&id).await?;
    Ok(whole.then_some(new))
}

/// Reads all that the peer has, page by page.
async fn page(
    talk: &mut Conversation<'_>,
    question: &Question,
    budget: Budget,
) -> Result<Answered, End> {
    let mut pages = Pages::new();
    loop {
        let id = talk.fresh_id();
        let mut filter = question.filter.clone().limit(PAGE);
        filter.until = pages.until();
        talk.request(&id, vec![filter]).await?;
        let whole = loop {
            match talk.hear(talk.patience(budget)).await? {
                Some(Heard::Event(of, look)) if of == id => {
                    let more = look.event.is_none_or(|(_, created_at)| pages.note(created_at));
                    if !more || talk.is_over(budget) {
                        break false;
                    }
                }
                Some(Heard::EndOfStored(of)) if of == id => break true,
                Some(Heard::Closed(of, why)) if of == id => {
                    tracing::debug!(%why, "a peer does not answer a request");
                    return Ok(Answered::InPart);
                }
                Some(_) => {}
                None => break false,
            }
        };
        talk.close(&id).await?;
        if !whole {
            return Ok(Answered::InPart);
        }
        if !pages.next() {
            return Ok(Answered::Wholly);
        }
    }
}

/// What is known of what a question asks for: what is served, what is held, and what was refused for good. Nothing if that
/// is too much to compare.
async fn known(talk: &Conversation<'_>, question: &Question) -> Option<Vec<(EventId, Timestamp)>> {
    let shared = talk.shared;
    let mut all = served(shared, &question.filter).await?;
    all.extend(match &question.about {
        About::Announcements => shared.store().held_announcements(),
        About::Deletions => Vec::new(),
        About::Repositories(names) => shared.store().held_about(names),
    });
    all.extend(talk.intake.refused(&question.about));
    Some(all)
}

async fn served(shared: &Shared, filter: &Filter) -> Option<Vec<(EventId, Timestamp)>> {
    let _turn = shared.query_turn().await;
    let database = shared.database();
    let items = async {
        if database.count(filter.clone()).await? > shared.most_reconciled() {
            return Ok(None);
        }
        database.negentropy_items(filter.clone()).await.map(Some)
    };
    items.await.unwrap_or_else(|error: nostr_database::error::Error| {
        tracing::warn!(%error, "the database could not be asked");
        None
    })
}

/// Runs what may take long where it holds up nobody.
async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Broken> + Send + 'static,
) -> Result<T, Broken> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Broken))
}

impl Conversation<'_> {
    /// Until when an answer is waited for.
    fn patience(&self, budget: Budget) -> Instant {
        budget.until.min(now() + self.settings.idle_timeout)
    }

    pub(super) fn is_over(&self, budget: Budget) -> bool {
        self.tally.all >= budget.events || now() >= budget.until
    }
}
