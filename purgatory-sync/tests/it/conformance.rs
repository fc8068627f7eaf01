//! The suites for ports of one's own: ours keep them, and broken ones do not.

use async_trait::async_trait;
use purgatory_sync::{
    EventStore, FetchError, FetchErrorKind, FetchRequest, Fetched, GitFetcher, Identifier, Needs,
    Oid, Released, StoreError, Target,
    testing::{
        FetcherHarness, MemoryStore, ScriptedFetcher, Site, StoreHarness, check_event_store,
        check_git_fetcher,
    },
};

use crate::common::*;

/// What a broken store does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    CountsTooFew,
    ForgetsAnObject,
    ReleasesEarly,
    ReleasesTwice,
    ReleasesYoungestFirst,
    MixesUpIdentifiers,
    NamesTheIdle,
    LosesOnError,
    SaysNothingWent,
    LooksChangeIt,
}

struct BrokenStore {
    inner: MemoryStore,
    fault: Fault,
    again: std::sync::Mutex<Vec<String>>,
    all: std::sync::Mutex<Vec<(Identifier, String, Vec<Oid>)>>,
}

struct Stores(Fault);

#[async_trait]
impl StoreHarness for Stores {
    type Store = BrokenStore;

    async fn fresh(&self) -> BrokenStore {
        let (again, all) = Default::default();
        BrokenStore { inner: MemoryStore::new(), fault: self.0, again, all }
    }

    async fn hold(&self, store: &BrokenStore, id: &Identifier, oids: &[Oid]) -> String {
        let mut all = store.all.lock().unwrap();
        let name = format!("event {}", all.len());
        all.push((id.clone(), name.clone(), oids.to_vec()));
        let held = match self.0 {
            Fault::MixesUpIdentifiers => id.as_str().to_lowercase().into(),
            _ => id.clone(),
        };
        store.inner.hold(held, HeldEvent::state(&name, "main", oids.iter().copied()));
        name
    }

    async fn saved(&self, store: &BrokenStore) -> Vec<String> {
        let mut saved = store.inner.released();
        if self.0 == Fault::ReleasesYoungestFirst {
            saved.reverse();
        }
        saved.extend(store.again.lock().unwrap().clone());
        saved
    }

    async fn fail_next_save(&self, store: &BrokenStore) -> bool {
        store.inner.trouble_release(Trouble::Error);
        true
    }
}

#[async_trait]
impl EventStore for BrokenStore {
    async fn needs(&self, id: &Identifier) -> Result<Needs, StoreError> {
        let id = match self.fault {
            Fault::MixesUpIdentifiers => id.as_str().to_lowercase().into(),
            _ => id.clone(),
        };
        let mut needs = self.inner.needs(&id).await?;
        match self.fault {
            Fault::CountsTooFew => needs.held = needs.held.min(1),
            Fault::ForgetsAnObject => needs.wants.iter_mut().for_each(|want| _ = want.oids.pop()),
            Fault::LooksChangeIt if needs.held > 0 => {
                self.inner.hold(id, HeldEvent::state("more", "main", []));
            }
            _ => {}
        }
        Ok(needs)
    }

    async fn release(&self, id: &Identifier, here: &[Oid]) -> Result<Released, StoreError> {
        let mut here = here.to_vec();
        if self.fault == Fault::ReleasesEarly && !here.is_empty() {
            here.extend((0..10).map(oid));
        }
        let before = self.inner.held(id.clone());
        match self.inner.release(id, &here).await {
            Ok(_) if self.fault == Fault::SaysNothingWent => Ok(Released::default()),
            Ok(released) => {
                if self.fault == Fault::ReleasesTwice && before.is_empty() {
                    self.again.lock().unwrap().push("event 0".into());
                }
                Ok(released)
            }
            Err(error) => {
                if self.fault == Fault::LosesOnError {
                    before.iter().for_each(|name| _ = self.inner.expire(id.clone(), name));
                }
                Err(error)
            }
        }
    }

    async fn held_identifiers(&self) -> Result<Vec<Identifier>, StoreError> {
        let mut held = self.inner.held_identifiers().await?;
        if self.fault == Fault::NamesTheIdle {
            held.push("idle".into());
        }
        Ok(held)
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_in_memory_keeps_the_suite() {
    check_event_store(&Stores(Fault::None)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn broken_stores_fail_the_suite_by_the_rule_they_break() {
    for (fault, rule) in [
        (Fault::CountsTooFew, "what is held is shown"),
        (Fault::ForgetsAnObject, "what is held is shown"),
        (Fault::LooksChangeIt, "what is held is shown"),
        (Fault::NamesTheIdle, "unknown identifiers hold nothing"),
        (Fault::ReleasesEarly, "nothing goes early"),
        (Fault::SaysNothingWent, "nothing goes early"),
        (Fault::ReleasesTwice, "a release is idempotent"),
        (Fault::ReleasesYoungestFirst, "the oldest goes first"),
        (Fault::MixesUpIdentifiers, "identifiers are apart"),
        (Fault::LosesOnError, "a failed save loses nothing"),
    ] {
        let violation = check_event_store(&Stores(fault)).await.unwrap_err();
        assert_eq!(violation.rule(), rule, "{fault:?}: {violation}");
    }
}

/// What a broken fetcher does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    AllOrNothing,
    ClaimsTooMuch,
    AsksAgainForAll,
    SaysEverythingIsHere,
    NamesStrangers,
    FailsOnMissing,
    CallsItNetwork,
    CallsItNotFound,
    BreaksWhenCancelled,
    CountsNoRequests,
}

#[derive(Debug)]
struct BrokenFetcher {
    inner: ScriptedFetcher,
    flaw: Flaw,
    broken: std::sync::atomic::AtomicBool,
}

struct Fetchers(Flaw);

#[async_trait]
impl FetcherHarness for Fetchers {
    type Fetcher = BrokenFetcher;

    async fn fresh(&self) -> Site<BrokenFetcher> {
        let inner = ScriptedFetcher::new();
        let there: Vec<Oid> = (1..4).map(oid).collect();
        let [server, silent, unreachable] = ["server", "silent", "unreachable"]
            .map(|host| url(&format!("https://{host}.example/a")));
        inner.serve(&server, there.clone());
        inner.latency(&server, ms(10));
        inner.always(&silent, Reply::Hang);
        inner.always(&unreachable, Reply::Fail(FetchErrorKind::Network));
        Site {
            fetcher: BrokenFetcher { inner, flaw: self.0, broken: false.into() },
            identifier: "a".into(),
            target: Target::new("main"),
            url: server,
            there,
            not_there: oid(99),
            no_repository: url("https://server.example/none"),
            unreachable,
            silent,
        }
    }
}

#[async_trait]
impl GitFetcher for BrokenFetcher {
    async fn missing(&self, id: &Identifier, oids: &[Oid]) -> Result<Vec<Oid>, FetchError> {
        match self.flaw {
            Flaw::SaysEverythingIsHere => Ok(Vec::new()),
            Flaw::NamesStrangers => Ok(vec![oid(1_234)]),
            _ => self.inner.missing(id, oids).await,
        }
    }

    async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        use std::sync::atomic::Ordering::SeqCst;
        let fail = |kind| Err(FetchError::new(kind).with_requests(1));
        if self.broken.load(SeqCst) {
            return fail(FetchErrorKind::Local);
        }
        if self.flaw == Flaw::BreaksWhenCancelled {
            self.broken.store(true, SeqCst);
        }
        let lacks = request.oids.contains(&oid(99));
        if lacks && self.flaw == Flaw::AllOrNothing {
            return Ok(Fetched { requests: 1, ..Fetched::default() });
        }
        if lacks && self.flaw == Flaw::FailsOnMissing {
            return fail(FetchErrorKind::ServerError);
        }
        let answer = self.inner.fetch(request).await;
        self.broken.store(false, SeqCst);
        match (answer, self.flaw) {
            (Ok(fetched), Flaw::ClaimsTooMuch) => {
                Ok(Fetched { received: request.oids.to_vec(), ..fetched })
            }
            (Ok(fetched), Flaw::AsksAgainForAll) => {
                Ok(Fetched { ask_again: request.oids.to_vec(), ..fetched })
            }
            (Ok(fetched), Flaw::CountsNoRequests) => Ok(Fetched { requests: 0, ..fetched }),
            (Err(_), Flaw::CallsItNetwork) => fail(FetchErrorKind::Network),
            (Err(_), Flaw::CallsItNotFound) => fail(FetchErrorKind::NotFound),
            (answer, _) => answer,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_scripted_fetcher_keeps_the_suite() {
    check_git_fetcher(&Fetchers(Flaw::None)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn broken_fetchers_fail_the_suite_by_the_rule_they_break() {
    for (flaw, rule) in [
        (Flaw::SaysEverythingIsHere, "missing is about what was asked"),
        (Flaw::NamesStrangers, "missing is about what was asked"),
        (Flaw::CountsNoRequests, "what is there comes"),
        (Flaw::ClaimsTooMuch, "what a server does not have is no error"),
        (Flaw::FailsOnMissing, "what a server does not have is no error"),
        (Flaw::AllOrNothing, "part is success"),
        (Flaw::AsksAgainForAll, "asking again shrinks"),
        (Flaw::CallsItNetwork, "failures have their class"),
        (Flaw::CallsItNotFound, "failures have their class"),
        (Flaw::BreaksWhenCancelled, "a fetch tells the truth"),
    ] {
        let violation = check_git_fetcher(&Fetchers(flaw)).await.unwrap_err();
        assert_eq!(violation.rule(), rule, "{flaw:?}: {violation}");
    }
}
