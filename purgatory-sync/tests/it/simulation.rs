//! Random worlds against a model that a reader believes at sight.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use purgatory_sync::{
    Arrival, CloneUrl, FetchErrorKind, Oid, SyncEvent,
    domain_throttle::{DomainThrottle, Limits},
    testing::FetchRecord,
};

use crate::common::*;

/// Three hosts, two paths each.
const URLS: u8 = 6;
const IDS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
struct Plan {
    servers: Vec<ServerPlan>,
    announced: Vec<Vec<u8>>,
    events: Vec<EventPlan>,
    concurrent: u32,
    per_window: u32,
    slots: usize,
}

#[derive(Clone, Debug)]
struct ServerPlan {
    has: BTreeSet<u64>,
    latency_ms: u64,
    troubles: Vec<u8>,
}

#[derive(Clone, Debug)]
struct EventPlan {
    id: usize,
    oids: BTreeSet<u64>,
    own_urls: Option<Vec<u8>>,
    at_ms: u64,
    submitted: bool,
}

fn address(number: u8) -> CloneUrl {
    url(&format!("https://host{}.example/{}.git", number / 2, number % 2))
}

fn plans() -> impl Strategy<Value = Plan> {
    let server = (
        prop::collection::btree_set(0..8u64, 0..6),
        0..4_000u64,
        prop::collection::vec(0..5u8, 0..3),
    )
        .prop_map(|(has, latency_ms, troubles)| ServerPlan { has, latency_ms, troubles });
    let event = (
        0..IDS.len(),
        prop::collection::btree_set(0..8u64, 1..4),
        prop::option::of(prop::collection::vec(0..URLS, 0..3)),
        0..40_000u64,
        any::<bool>(),
    )
        .prop_map(|(id, oids, own_urls, at_ms, submitted)| EventPlan {
            id,
            oids,
            own_urls,
            at_ms,
            submitted,
        });
    (
        prop::collection::vec(server, URLS as usize),
        prop::collection::vec(prop::collection::vec(0..URLS, 0..4), IDS.len()),
        prop::collection::vec(event, 1..8),
        1..3u32,
        2..6u32,
        1..4usize,
    )
        .prop_map(|(servers, announced, mut events, concurrent, per_window, slots)| {
            events.sort_by_key(|event| event.at_ms);
            // A pull request has one tip.
            for event in events.iter_mut().filter(|event| event.own_urls.is_some()) {
                event.oids = event.oids.iter().take(1).copied().collect();
            }
            Plan { servers, announced, events, concurrent, per_window, slots }
        })
}

impl Plan {
    fn limits(&self) -> Limits {
        Limits {
            max_concurrent: NonZeroU32::new(self.concurrent).unwrap(),
            max_per_window: NonZeroU32::new(self.per_window).unwrap(),
            window: Duration::from_secs(20),
        }
    }

    fn urls_of(&self, event: &EventPlan) -> BTreeSet<u8> {
        let announced = self.announced[event.id].iter();
        announced.chain(event.own_urls.iter().flatten()).copied().collect()
    }

    /// The model: an event goes if each of its objects is on a server that may be asked for it, for
    /// this event or for another.
    fn goes(&self) -> BTreeSet<String> {
        let mut obtainable: HashSet<u64> = HashSet::new();
        for event in &self.events {
            for url in self.urls_of(event) {
                obtainable.extend(self.servers[url as usize].has.intersection(&event.oids));
            }
        }
        let complete = |event: &&EventPlan| event.oids.iter().all(|oid| obtainable.contains(oid));
        let names = self.events.iter().enumerate().filter(|(_, event)| complete(event));
        names.map(|(number, _)| format!("event {number}")).collect()
    }

    async fn run(&self) -> World {
        let throttle = Arc::new(DomainThrottle::builder().limits(self.limits()).build());
        let slots = self.slots;
        let world = World::build(
            |config| config.with_max_fetches(slots).unwrap(),
            |builder| builder.throttle(throttle),
        );
        for (number, server) in (0..).zip(&self.servers) {
            let url = address(number);
            world.git.serve(&url, server.has.iter().map(|&number| oid(number)));
            world.git.latency(&url, ms(server.latency_ms));
            for trouble in &server.troubles {
                let reply = match trouble {
                    0 => Reply::Fail(FetchErrorKind::Network),
                    1 => Reply::RetryAfter(secs(30)),
                    2 => Reply::Panic,
                    3 => Reply::Lie((0..8).map(oid).collect()),
                    _ => Reply::Fail(FetchErrorKind::Dns),
                };
                world.git.script(&url, reply);
            }
        }
        for (id, urls) in IDS.iter().zip(&self.announced) {
            world.store.announce(*id, "main", urls.iter().map(|&number| address(number)));
        }
        for (number, event) in self.events.iter().enumerate() {
            tokio::time::sleep_until(world.began + ms(event.at_ms)).await;
            let (name, id) = (format!("event {number}"), IDS[event.id]);
            let mut oids = event.oids.iter().map(|&number| oid(number));
            let held = match &event.own_urls {
                None => HeldEvent::state(&name, "main", oids),
                Some(own) => {
                    let tip = oids.next().unwrap();
                    let own = own.iter().map(|&number| address(number));
                    HeldEvent::pull_request(&name, "main", tip, own)
                }
            };
            world.store.hold(id, held);
            let arrival = if event.submitted { Arrival::Submitted } else { Arrival::Synced };
            world.sync.event_held(id, arrival).unwrap();
        }
        // The longest wait of a submitted event, a pause for it, and the backoffs after the troubles.
        pass(secs(1_500)).await;
        world
    }
}

/// L1, L2, L3 as the server sees them.
fn limits_hold(limits: &Limits, fetches: &[FetchRecord]) -> Result<(), TestCaseError> {
    let mut by_domain: HashMap<_, Vec<(Instant, Instant, String)>> = HashMap::new();
    for fetch in fetches {
        let ended = fetch.ended.expect("every fetch ends");
        let row = (fetch.began, ended, fetch.identifier.to_string());
        by_domain.entry(fetch.url.domain().clone()).or_default().push(row);
    }
    for rows in by_domain.values() {
        for (began, _, id) in rows {
            let in_window = rows.iter().filter(|(other, ..)| {
                other >= began && other.duration_since(*began) < limits.window
            });
            prop_assert!(in_window.count() <= limits.max_per_window.get() as usize);
            let on: Vec<_> =
                rows.iter().filter(|(from, to, _)| from <= began && began < to).collect();
            prop_assert!(on.len() <= limits.max_concurrent.get() as usize);
            let same = on.iter().filter(|(_, _, other)| other == id).count();
            prop_assert!(same <= 1);
        }
    }
    Ok(())
}

/// P5: in one pass no URL is asked twice for the same object. And P3: nothing is asked for that is here.
fn asked_once(told: &Told, fetches: &[FetchRecord]) -> Result<(), TestCaseError> {
    let mut fetches = fetches.iter();
    let mut asked: HashMap<String, HashSet<(CloneUrl, Oid)>> = HashMap::new();
    for (_, event) in told.all() {
        match event {
            SyncEvent::PassStarted(pass) => {
                asked.insert(pass.identifier.to_string(), HashSet::new());
            }
            SyncEvent::FetchStarted(started) => {
                let fetch = fetches.next().expect("a fetch for each that was told of");
                prop_assert_eq!(&started.identifier, &fetch.identifier);
                prop_assert!(!fetch.oids.is_empty());
                let asked = asked.get_mut(fetch.identifier.as_str()).unwrap();
                for oid in &fetch.oids {
                    prop_assert!(asked.insert((fetch.url.clone(), *oid)), "{:?} twice", oid);
                }
            }
            _ => {}
        }
    }
    prop_assert!(fetches.next().is_none());
    Ok(())
}

/// P7, P14: only what may be asked is asked, and only of who may be asked for it.
fn asked_where_it_may_be(plan: &Plan, fetches: &[FetchRecord]) -> Result<(), TestCaseError> {
    let mut may: BTreeMap<&str, HashSet<(CloneUrl, Oid)>> = BTreeMap::new();
    for event in &plan.events {
        for number in plan.urls_of(event) {
            let pairs = event.oids.iter().map(|&number_of| (address(number), oid(number_of)));
            may.entry(IDS[event.id]).or_default().extend(pairs);
        }
    }
    for fetch in fetches {
        for oid in &fetch.oids {
            let pair = (fetch.url.clone(), *oid);
            prop_assert!(may[fetch.identifier.as_str()].contains(&pair), "{pair:?}");
        }
    }
    Ok(())
}

proptest! {
    /// P1-P11: what goes, goes; what cannot, stays; limits hold; passes end; nothing is asked twice in a pass.
    #[test]
    fn random_worlds_end_as_the_model_says(plan in plans()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let world = runtime.block_on(plan.run());
        let released: BTreeSet<String> = world.store.released().into_iter().collect();
        prop_assert_eq!(&released, &plan.goes());
        prop_assert_eq!(world.store.released().len(), released.len(), "each goes once");
        let left = IDS.iter().filter(|id| !world.store.held(**id).is_empty()).count();
        prop_assert_eq!(world.sync.queued(), left, "queued is what is held");
        runtime.block_on(world.sync.shutdown());
        let fetches = world.git.fetches();
        prop_assert!(world.git.most_on() <= plan.slots);
        limits_hold(&plan.limits(), &fetches)?;
        asked_once(&world.told, &fetches)?;
        asked_where_it_may_be(&plan, &fetches)?;
    }
}
