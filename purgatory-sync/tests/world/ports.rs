//! The two ports of the engine and its observer, over the world.

use std::{panic::resume_unwind, sync::Arc, time::Duration};

use async_trait::async_trait;
use purgatory_sync::{
    EventStore, FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher, Identifier, Needs,
    Observer, Oid, Released, StoreError, SyncEvent,
};
use tokio::time::sleep;

use crate::{
    faults::Fault,
    ledger::Answer,
    story::{Call, Mood, Place, Trouble, repo_name},
    world::{Manner, World},
};

/// A call of a port for one identifier. It is over when this is dropped.
struct Calling<'a> {
    world: &'a World,
    repo: usize,
}

impl World {
    async fn calling(&self, id: &Identifier, call: Call) -> Calling<'_> {
        self.stir();
        let (repo, goes_on) = {
            let mut state = self.state();
            let repo = state.repo(id);
            (repo, state.ledger.call_began(repo, call == Call::Needs))
        };
        if !goes_on {
            // Otherwise this instant would never be over.
            std::future::pending::<()>().await;
        }
        let calling = Calling { world: self, repo };
        self.step().await;
        calling
    }

    async fn suffer(&self, call: Call, repo: usize) -> Result<(), &'static str> {
        let trouble = self.state().next_trouble(call);
        match trouble {
            None => Ok(()),
            Some(Trouble::Error) => Err("as the story wants"),
            Some(Trouble::Panic) => self.panics(repo),
            Some(Trouble::Slow(ms)) => {
                sleep(Duration::from_millis(ms)).await;
                Ok(())
            }
            Some(Trouble::Hang) => std::future::pending().await,
        }
    }

    /// Without the message that a panic prints.
    fn panics(&self, repo: usize) -> ! {
        self.state().panics(repo);
        resume_unwind(Box::new("as the story wants"))
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.world.state_as_it_was().ledger.call_ended(self.repo);
        self.world.stir();
    }
}

#[async_trait]
impl EventStore for World {
    async fn needs(&self, id: &Identifier) -> Result<Needs, StoreError> {
        let calling = self.calling(id, Call::Needs).await;
        self.suffer(Call::Needs, calling.repo).await.map_err(StoreError::new)?;
        let mut needs = self.state().needs(calling.repo);
        if let Some(fault) = self.fault {
            let mut looks = self.lock.lock().await;
            *looks += 1;
            fault.twist(&mut needs, *looks);
        }
        Ok(needs)
    }

    async fn release(&self, id: &Identifier, here: &[Oid]) -> Result<Released, StoreError> {
        let calling = self.calling(id, Call::Release).await;
        let trouble = self.suffer(Call::Release, calling.repo).await;
        let going = self.state().complete(calling.repo, here, trouble.is_ok());
        for (number, event) in going.iter().enumerate() {
            if number == 1 {
                // A store that fails has let some go.
                trouble.map_err(StoreError::new)?;
            }
            self.state().save(*event);
            self.step().await;
            self.state().let_go(calling.repo, *event);
            self.step().await;
        }
        trouble.map_err(StoreError::new)?;
        if self.fault == Some(Fault::Deadlocks) && !going.is_empty() {
            let _looks = self.lock.lock().await;
            let _never = self.lock.lock().await;
        }
        let held = self.state().held_of(calling.repo);
        Ok(Released { released: going.len(), held })
    }

    async fn held_identifiers(&self) -> Result<Vec<Identifier>, StoreError> {
        self.stir();
        self.step().await;
        self.suffer(Call::HeldIdentifiers, usize::MAX).await.map_err(StoreError::new)?;
        let mut state = self.state();
        let held = state.repos_held();
        state.ledger.restored(&held);
        Ok(held.into_iter().map(|repo| Identifier::from(repo_name(repo))).collect())
    }
}

/// A request that a host sees. It is over when this is dropped.
struct OnTheWire<'a> {
    world: &'a World,
    repo: usize,
    place: Place,
}

impl Drop for OnTheWire<'_> {
    fn drop(&mut self) {
        self.world.state_as_it_was().ledger.fetch_ended(self.repo, self.place);
        self.world.stir();
    }
}

#[async_trait]
impl GitFetcher for World {
    async fn missing(&self, id: &Identifier, oids: &[Oid]) -> Result<Vec<Oid>, FetchError> {
        let calling = self.calling(id, Call::Missing).await;
        let suffered = self.suffer(Call::Missing, calling.repo).await;
        suffered.map_err(|_| FetchError::new(FetchErrorKind::Local))?;
        Ok(self.state().missing(oids))
    }

    async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        let manner = self.state().fetch_begins(request.identifier, request.url, request.oids);
        self.stir();
        let (repo, place) = (manner.repo, manner.place);
        let _on = OnTheWire { world: self, repo, place };
        self.step().await;
        if !manner.latency.is_zero() {
            sleep(manner.latency).await;
        }
        let result = self.behave(&manner, request.oids).await;
        self.step().await;
        let (answer, again) = match &result {
            Ok(fetched) => (Answer::Well, fetched.ask_again.clone()),
            Err(error) => (answer(error), Vec::new()),
        };
        let asked = request.oids.len();
        self.state().ledger.answered(repo, place, manner.began, answer, &again, asked);
        result
    }
}

impl World {
    /// What the host does with a request for these objects.
    async fn behave(&self, manner: &Manner, oids: &[Oid]) -> Result<Fetched, FetchError> {
        let fails = |kind| Err(FetchError::new(kind).with_requests(1));
        let fetched = |received: Vec<Oid>, ask_again| {
            Ok(Fetched { bytes: received.len() as u64, received, ask_again, requests: 1 })
        };
        let has = self.state().has(manner.place, manner.repo, oids);
        match manner.mood {
            Mood::Fine => {}
            Mood::Slow(secs) => sleep(Duration::from_secs(secs)).await,
            Mood::Dead => return fails(FetchErrorKind::Network),
            Mood::Nameless => return fails(FetchErrorKind::Dns),
            Mood::Failing => return fails(FetchErrorKind::ServerError),
            Mood::Gone => return fails(FetchErrorKind::NotFound),
            Mood::Shallow => {
                if self.fault == Some(Fault::TakesShallow) {
                    self.state().take_shallow(&has);
                }
                return fails(FetchErrorKind::Shallow);
            }
            Mood::Forbidden => return Err(FetchError::new(FetchErrorKind::Refused)),
            Mood::Busy(secs) => {
                let error = FetchError::new(FetchErrorKind::RateLimited).with_requests(1);
                return Err(error.with_retry_after(Duration::from_secs(secs)));
            }
            Mood::Silent => std::future::pending().await,
            Mood::Lying => return fetched(oids.to_vec(), Vec::new()),
            Mood::Poisonous => self.panics(manner.repo),
            Mood::Stubborn => return fetched(Vec::new(), oids.to_vec()),
            Mood::Piecemeal => {
                let Some(first) = has.first().copied() else { return fetched(has, Vec::new()) };
                self.state().bring([first]);
                let others = oids.iter().filter(|oid| **oid != first).copied().collect();
                return fetched(vec![first], others);
            }
        }
        if self.fault == Some(Fault::AllOrNothing) && has.len() < oids.len() {
            return fetched(Vec::new(), Vec::new());
        }
        self.state().bring(has.iter().copied());
        fetched(has, Vec::new())
    }
}

fn answer(error: &FetchError) -> Answer {
    match (error.retry_after(), error.kind()) {
        (Some(after), _) => Answer::ComeBack(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
        (None, FetchErrorKind::Dns | FetchErrorKind::Tls) => Answer::Nameless,
        (None, _) if error.requests() == 0 => Answer::NothingSent,
        (None, _) => Answer::Well,
    }
}

/// Hears what the engine tells.
pub(crate) struct Ear(pub(crate) Arc<World>);

impl Observer for Ear {
    fn observe(&self, event: &SyncEvent) {
        self.0.stir();
        let mut state = self.0.state();
        match event {
            SyncEvent::PassStarted(pass) => {
                let repo = state.repo(&pass.identifier);
                state.ledger.pass_began(repo, pass.attempt);
            }
            SyncEvent::PassEnded(pass) => {
                let repo = state.repo(&pass.identifier);
                state.ledger.pass_ended(repo, pass.outcome, &pass.summary);
            }
            _ => {}
        }
    }
}
