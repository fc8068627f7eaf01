//! R3, R8: in whatever order events and data come, and wherever the process is killed, the end is the same.

use std::collections::{BTreeMap, BTreeSet};

use ngit_adapter::{
    RepositoryId,
    nostr::event::{Event, EventId},
    store::StoreConfig,
};
use proptest::{prelude::*, sample::Index};
use purgatory_sync::{Identifier, Oid};

use crate::store_support::*;

/// What happens to a store.
#[derive(Clone, Debug)]
enum Step {
    Admit(Event),
    Data(Oid),
}

/// A small world: owners 0-3 with maintainers among 0-4, states of 0-4, pull requests of 5.
#[derive(Clone, Debug)]
struct Scene {
    /// Per owner: the maintainers of each version. A later version only adds.
    announcements: Vec<(u8, Vec<u8>, Vec<u8>)>,
    /// Per author: when, and how many refs; two versions.
    states: Vec<(u8, u64, u64)>,
    /// Authors of one state without refs.
    empties: Vec<u8>,
    /// Which owners each pull request names.
    pulls: Vec<Vec<u8>>,
}

fn scene() -> impl Strategy<Value = Scene> {
    let keys = || prop::collection::vec(0u8..5, 0..3);
    (
        prop::collection::vec((0u8..4, keys(), keys()), 0..5),
        prop::collection::vec((0u8..5, 100u64..104, 100u64..104), 0..5),
        prop::collection::vec(6u8..8, 0..2),
        prop::collection::vec(prop::collection::vec(0u8..4, 1..3), 0..3),
    )
        .prop_map(|(announcements, states, empties, pulls)| Scene {
            announcements,
            states,
            empties,
            pulls,
        })
}

impl Scene {
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut seen = BTreeSet::new();
        for (owner, first, more) in &self.announcements {
            if !seen.insert(*owner) {
                continue;
            }
            let mut first = first.clone();
            // Whoever has a state without refs has a say somewhere.
            first.extend(self.empties.iter().filter(|_| *owner == 0));
            let second: Vec<u8> = first.iter().chain(more).copied().collect();
            steps.push(Step::Admit(announcement(*owner, "r", 10, &first)));
            steps.push(Step::Admit(announcement(*owner, "r", 11, &second)));
        }
        let mut number = 0;
        for (author, one, two) in &self.states {
            for at in [one, two] {
                let oids = [oid(number), oid(number / 2)];
                number += 1;
                steps.push(Step::Admit(state(*author, "r", *at, &oids)));
                steps.extend(oids.map(Step::Data));
            }
        }
        for author in &self.empties {
            steps.push(Step::Admit(state(*author, "r", 200, &[])));
        }
        for (at, owners) in self.pulls.iter().enumerate() {
            let tip = oid(1_000 + u32::try_from(at).unwrap());
            steps.push(Step::Admit(pull_request(5, owners, "r", 300 + at as u64, tip)));
            steps.push(Step::Data(tip));
        }
        steps
    }
}

/// What is left in the end.
#[derive(Debug, PartialEq, Eq)]
struct End {
    stored: BTreeSet<EventId>,
    held: BTreeSet<EventId>,
    refs: BTreeMap<RepositoryId, (Option<Oid>, BTreeSet<EventId>)>,
}

/// The end by the rules alone, with no thought for how it is reached.
fn model(steps: &[Step]) -> End {
    let events = steps.iter().filter_map(|step| match step {
        Step::Admit(event) => Some(event),
        Step::Data(_) => None,
    });
    let newest = |kind: u16| {
        let mut newest = BTreeMap::new();
        for event in events.clone().filter(|event| event.kind.as_u16() == kind) {
            let known = newest.entry(event.pubkey).or_insert(event);
            // Events are ordered newest first, and by the lower id.
            if event < *known {
                *known = event;
            }
        }
        newest
    };
    let values = |event: &Event, name: &str| -> Vec<String> {
        let tags = event.tags.iter().filter(|tag| tag.kind() == name);
        tags.flat_map(|tag| tag.as_slice()[1..].to_vec()).collect()
    };
    let announcements = newest(30617);
    let has_say = |author: &Event, owner| {
        let mut team = vec![owner];
        let mut at = 0;
        while at < team.len() {
            if let Some(announcement) = announcements.get(&team[at]) {
                for maintainer in values(announcement, "maintainers") {
                    let maintainer = maintainer.parse().unwrap();
                    if !team.contains(&maintainer) {
                        team.push(maintainer);
                    }
                }
            }
            at += 1;
        }
        team.contains(&author.pubkey)
    };
    let states = newest(30618);
    let is_empty = |state: &Event| !state.tags.iter().any(|tag| tag.kind().starts_with("refs/"));
    let pulls: Vec<_> = events.clone().filter(|event| event.kind.as_u16() == 1618).collect();
    let mut end = End { stored: BTreeSet::new(), held: BTreeSet::new(), refs: BTreeMap::new() };
    let mut served = Vec::new();
    for (owner, announcement) in &announcements {
        let rightful = states.values().filter(|state| !is_empty(state) && has_say(state, *owner));
        let leading = rightful.min();
        let address = format!("30617:{}:r", owner.to_hex());
        let named = pulls.iter().filter(|pull| values(pull, "a").contains(&address));
        let named: BTreeSet<_> = named.map(|pull| pull.id).collect();
        if leading.is_none() && named.is_empty() {
            continue;
        }
        served.push(*owner);
        end.stored.insert(announcement.id);
        end.stored.extend(&named);
        let main = leading.map(|state| values(state, "refs/heads/main")[0].parse().unwrap());
        let repository = RepositoryId::new(*owner, Identifier::from("r"));
        end.refs.insert(repository, (main, named));
    }
    for state in states.values() {
        let owners = announcements.keys().filter(|owner| has_say(state, **owner));
        let goes = owners.filter(|owner| !is_empty(state) || served.contains(owner)).count() > 0;
        if goes {
            end.stored.insert(state.id)
        } else {
            end.held.insert(state.id)
        };
    }
    end.held.extend(pulls.iter().map(|pull| pull.id).filter(|id| !end.stored.contains(id)));
    end
}

async fn end(world: &World) -> End {
    let refs = world.refs.all().into_iter().map(|(repository, it)| {
        (repository, (it.refs.get("refs/heads/main").copied(), it.pulls.into_keys().collect()))
    });
    End { stored: world.stored().await, held: world.held().await, refs: refs.collect() }
}

async fn run(world: &World, step: &Step, here: &mut Vec<Oid>) {
    match step {
        Step::Admit(event) => {
            world.admit(event).await;
        }
        Step::Data(oid) => here.push(*oid),
    }
    world.release("r", here).await;
}

fn shuffled(mut steps: Vec<Step>, order: &[Index]) -> Vec<Step> {
    for (at, index) in order.iter().enumerate().take(steps.len()) {
        let other = index.index(steps.len());
        steps.swap(at, other);
    }
    steps
}

fn order() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 60)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

proptest! {
    /// R3, R4, R5: state before announcement, announcement before state, data before both, several owners of
    /// one identifier, maintainers in chains and cycles, a newer state in between, ties: the same end.
    #[test]
    fn in_any_order_of_arrival_the_end_is_the_same(scene in scene(), order in order()) {
        runtime().block_on(async {
            let world = World::new().await;
            let (steps, mut here) = (shuffled(scene.steps(), &order), Vec::new());
            for step in &steps {
                run(&world, step, &mut here).await;
            }
            prop_assert_eq!(end(&world).await, model(&steps));
            // Nothing is told that is not saved, and nothing is told twice.
            let told = world.told();
            prop_assert!(counts(&told).values().all(|times| *times == 1));
            Ok(())
        })?;
    }
}

proptest! {
    // Each case is a dozen lives with a disk of its own: a quarter as many.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(4)))]

    /// R8: killed at any step of any release, and started again from what the disk has: the same end.
    #[test]
    fn killed_at_any_step_the_end_is_the_same(
        scene in scene(),
        order in order(),
        fuses in prop::collection::vec(0u32..12, 12),
    ) {
        runtime().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = |life: usize| folder.path().join(format!("journal{life}"));
            let mut world = World::with(StoreConfig::default(), Some(&path(0))).await;
            let (steps, mut here) = (shuffled(scene.steps(), &order), Vec::new());
            let mut life = 0;
            for step in &steps {
                while let Some(fuse) = fuses.get(life) {
                    world.fuse.light(*fuse, &path(life));
                    let done = world.fuse.guard(run(&world, step, &mut here.clone())).await;
                    world.fuse.put_out();
                    let Err(journal) = done else { break };
                    // Everything in memory is gone. Whoever sent the event sends it again.
                    life += 1;
                    std::fs::write(path(life), journal).unwrap();
                    world.restart(&path(life)).await;
                }
                run(&world, step, &mut here).await;
            }
            prop_assert_eq!(end(&world).await, model(&steps));
            world.restart(&path(life)).await;
            prop_assert_eq!(end(&world).await, model(&steps));
            Ok(())
        })?;
    }
}
