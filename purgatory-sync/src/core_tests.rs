//! The core against naive models: no clock, no task, no I/O.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use domain_throttle::Endpoint;
use proptest::prelude::*;

use crate::{
    CloneUrl, Needs, Oid, Origin, SyncConfig, Target, Want,
    candidates::{self, Ask},
    clock,
    rounds::Rounds,
    step::{Situation, Step, View, Walk},
    survey::Survey,
    tried::Tried,
};

fn oid(number: u64) -> Oid {
    let mut hash = [0; 20];
    hash[12..].copy_from_slice(&number.to_be_bytes());
    Oid::sha1(hash)
}

/// Four hosts, three paths each.
fn url(number: u8) -> CloneUrl {
    format!("https://host{}.example/{number}.git", number % 4).parse().expect("a URL")
}

#[derive(Clone, Debug)]
struct WantPlan {
    oids: Vec<u64>,
    urls: Vec<u8>,
    own: Vec<u8>,
    contributor: bool,
}

fn wants() -> impl Strategy<Value = Vec<WantPlan>> {
    // Of a pull request's own URLs three are used.
    let numbers = |most| prop::collection::vec(0..12u8, 0..=most);
    let oids = prop::collection::vec(0..10u64, 0..6);
    let want =
        (oids, numbers(5), numbers(3), any::<bool>()).prop_map(|(oids, urls, own, contributor)| {
            let own = if contributor { own } else { Vec::new() };
            WantPlan { oids, urls, own, contributor }
        });
    prop::collection::vec(want, 0..5)
}

fn needs(wants: &[WantPlan]) -> Needs {
    let want = |(number, want): (usize, &WantPlan)| Want {
        oids: want.oids.iter().map(|&number| oid(number)).collect(),
        urls: want.urls.iter().map(|&number| url(number)).collect(),
        own_urls: want.own.iter().map(|&number| url(number)).collect(),
        origin: if want.contributor { Origin::Contributor } else { Origin::Owner },
        target: Target::new(number.to_string()),
    };
    Needs { held: wants.len(), wants: wants.iter().enumerate().map(want).collect() }
}

/// Looks, as the shell does: with these objects here.
fn survey(
    needs: Needs,
    turn: usize,
    config: &SyncConfig,
    have: &BTreeSet<u64>,
) -> (Survey, HashSet<Oid>) {
    let mut here = HashSet::new();
    let mut survey = Survey::new(needs, turn, config, &[]);
    loop {
        let batch = survey.next_batch(&here);
        if batch.is_empty() {
            return (survey, here);
        }
        let have = |oid: &&Oid| !have.iter().any(|&number| self::oid(number) == **oid);
        let missing: Vec<Oid> = batch.iter().filter(have).copied().collect();
        survey.answer(&batch, &missing, &mut here);
    }
}

/// The next step, with these answers of the throttle.
fn next(situation: &Situation<'_>, views: &HashMap<Endpoint, View>) -> Step {
    let mut walk = Walk::new(situation);
    loop {
        match walk.step() {
            Step::Check(endpoint) if views.contains_key(&endpoint) => {
                walk.heard(endpoint.clone(), views[&endpoint]);
            }
            step => return step,
        }
    }
}

/// Every pair that may be asked, by the plain reading of the wants: P3, P14.
fn pairs(wants: &[WantPlan], have: &BTreeSet<u64>) -> HashSet<(CloneUrl, Oid)> {
    let mut pairs = HashSet::new();
    for want in wants {
        for number in want.urls.iter().chain(&want.own) {
            for missing in want.oids.iter().filter(|number| !have.contains(number)) {
                pairs.insert((url(*number), oid(*missing)));
            }
        }
    }
    pairs
}

proptest! {
    /// P3, P5, P14: a pass with capacity everywhere and nothing to be had asks every pair of URL and object
    /// that may be asked, each exactly once, and then ends.
    #[test]
    fn a_pass_asks_every_pair_once_and_ends(
        wants in wants(),
        have in prop::collection::btree_set(0..10u64, 0..6),
    ) {
        let (survey, _) = survey(needs(&wants), 0, &SyncConfig::new(), &have);
        let (mut tried, mut rounds) = (Tried::default(), Rounds::default());
        rounds.begin_pass();
        let views: HashMap<_, _> = (0..12).map(|n| (url(n).endpoint().clone(), View::Free)).collect();
        let mut asked = HashSet::new();
        loop {
            let situation = Situation {
                survey: &survey, tried: &tried, rounds: &rounds, fetch_limit: 1_000,
            };
            match next(&situation, &views) {
                Step::Ask(url) => {
                    let ask = candidates::ask(&survey, &tried, &url).expect("it is open");
                    for oid in &ask.oids {
                        prop_assert!(asked.insert((ask.url.clone(), *oid)));
                    }
                    rounds.reach(&ask.url);
                    tried.begin(&ask);
                    tried.answered(&ask, &[]);
                }
                Step::End(rest) => {
                    prop_assert!(rest.no_source_left && !rest.limited && !rest.shut);
                    break;
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert_eq!(asked, pairs(&wants, &have));
    }

    /// P4: the order is that of a plain sort by: announced before own, the pass that reached it last, the
    /// domain that gave, the order in which the wants name it, the owner's first.
    #[test]
    fn the_order_is_a_plain_sort(
        wants in wants(),
        reached in prop::collection::vec((0..12u8, 1..4u64), 0..8),
        gave in prop::option::of(0..12u8),
    ) {
        let (survey, _) = survey(needs(&wants), 0, &SyncConfig::new(), &BTreeSet::new());
        let mut rounds = Rounds::default();
        let mut stamps: HashMap<u8, u64> = HashMap::new();
        for pass in 1..4 {
            rounds.begin_pass();
            for (number, _) in reached.iter().filter(|(_, of)| *of == pass) {
                rounds.reach(&url(*number));
                stamps.insert(*number, pass);
            }
        }
        if let Some(number) = gave {
            rounds.gave(&url(number));
        }
        let order = candidates::ordered(&survey, &Tried::default(), &rounds, false);
        let mut named: Vec<(u8, bool)> = Vec::new();
        let owners = wants.iter().filter(|want| !want.contributor);
        for want in owners.chain(wants.iter().filter(|want| want.contributor)) {
            if want.oids.is_empty() {
                continue;
            }
            let own = want.own.iter().filter(|number| !want.urls.contains(number));
            let all = want.urls.iter().map(|&n| (n, false)).chain(own.map(|&n| (n, true)));
            for (number, own) in all {
                match named.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, known)) => *known &= own,
                    None => named.push((number, own)),
                }
            }
        }
        let mut model: Vec<_> = named.iter().enumerate().map(|(position, &(number, own))| {
            let giver = gave.is_some_and(|gave| gave % 4 == number % 4);
            (own, stamps.get(&number).copied().unwrap_or(0), !giver, position, url(number))
        }).collect();
        model.sort_by_key(|(own, stamp, giver, position, _)| (*own, *stamp, *giver, *position));
        let model: Vec<_> = model.into_iter().map(|row| row.4).collect();
        prop_assert_eq!(order, model);
    }

    /// P5: whatever the number of URLs and the limit of a pass, each URL is reached within as many passes as it
    /// takes to ask all, also while some of them are paused.
    #[test]
    fn no_url_is_starved(count in 1..60u8, limit in 1..10usize, paused in prop::collection::hash_set(0..60u8, 0..5)) {
        let one = |number: u8| -> CloneUrl {
            format!("https://host{number}.example/a.git").parse().expect("a URL")
        };
        let plan = Want {
            oids: vec![oid(1)],
            urls: (0..count).map(one).collect(),
            own_urls: Vec::new(),
            origin: Origin::Owner,
            target: Target::new("main"),
        };
        let config = SyncConfig::new().with_urls_per_want(100).expect("allowed");
        let (survey, _) = survey(Needs { held: 1, wants: vec![plan] }, 0, &config, &BTreeSet::new());
        let until = clock::now() + Duration::from_secs(60);
        let views: HashMap<_, _> = (0..count).map(|number| {
            let view = if paused.contains(&number) { View::Paused(until) } else { View::Free };
            (one(number).endpoint().clone(), view)
        }).collect();
        let mut rounds = Rounds::default();
        let mut asked: HashMap<CloneUrl, usize> = HashMap::new();
        let passes = usize::from(count).div_ceil(limit);
        for _ in 0..passes {
            rounds.begin_pass();
            let mut tried = Tried::default();
            while let Step::Ask(url) = next(&Situation {
                survey: &survey, tried: &tried, rounds: &rounds, fetch_limit: limit,
            }, &views) {
                let ask = candidates::ask(&survey, &tried, &url).expect("it is open");
                rounds.reach(&ask.url);
                tried.begin(&ask);
                tried.answered(&ask, &[]);
                *asked.entry(ask.url).or_default() += 1;
            }
        }
        for number in (0..count).filter(|number| !paused.contains(number)) {
            prop_assert!(asked.contains_key(&one(number)), "{number} of {count} in {passes} passes");
        }
    }

    /// P5: `ask_again` goes on as long as it shrinks, and ends whatever is wanted: at most as many requests
    /// as objects.
    #[test]
    fn asking_again_ends(
        answers in prop::collection::vec(prop::collection::vec(0..12u64, 0..12), 0..30),
        count in 1..10u64,
    ) {
        let plan = WantPlan { oids: (0..count).collect(), urls: vec![0], own: vec![], contributor: false };
        let (survey, _) = survey(needs(&[plan]), 0, &SyncConfig::new(), &BTreeSet::new());
        let mut tried = Tried::default();
        let mut answers = answers.into_iter();
        let mut last = usize::MAX;
        let mut requests = 0;
        while let Some(ask) = candidates::ask(&survey, &tried, &url(0)) {
            requests += 1;
            prop_assert!(ask.oids.len() < last);
            last = ask.oids.len();
            tried.begin(&ask);
            let again: Vec<Oid> = answers.next().unwrap_or_default().into_iter().map(oid).collect();
            tried.answered(&ask, &again);
        }
        prop_assert!(requests <= count);
        prop_assert!(candidates::no_source_left(&survey, &tried));
    }

    /// P9, P13: whatever the bounds, what is looked at over all turns finds every object that is here up to the
    /// first missing ones, never names one that is not, and asks for no more than the bound of each want.
    #[test]
    fn a_look_is_bounded_and_true(
        wants in wants(),
        have in prop::collection::btree_set(0..10u64, 0..10),
        per_want in 1..5usize,
        at_once in 1..4usize,
    ) {
        let config = SyncConfig::new()
            .with_oids_per_want(per_want)
            .and_then(|config| config.with_wants_per_look(at_once))
            .expect("allowed");
        let mut seen = HashSet::new();
        let turns = survey(needs(&wants), 0, &config, &have).0.turns;
        prop_assert_eq!(turns, wants.len().div_ceil(at_once).max(1));
        for turn in 0..turns {
            let (survey, here) = survey(needs(&wants), turn, &config, &have);
            prop_assert!(survey.wants.len() <= at_once);
            for want in &survey.wants {
                let missing = want.oids.iter().filter(|oid| survey.is_missing(oid)).count();
                let known = want.oids.iter().filter(|oid| here.contains(oid)).count();
                prop_assert_eq!(missing + known, want.oids.len(), "all is looked at");
                seen.insert(want.target.clone());
            }
            for found in survey.here(&here) {
                prop_assert!(have.iter().any(|&number| oid(number) == found));
            }
        }
        prop_assert_eq!(seen.len(), wants.len(), "every want has its turn");
    }
}

/// P4: a domain with capacity is asked before the ones that come first; the lines are stood in only when none is left.
#[test]
fn a_free_domain_comes_before_a_throttled_one() {
    let plan = WantPlan { oids: vec![1], urls: vec![0, 1, 2], own: vec![3], contributor: true };
    let (survey, _) = survey(needs(&[plan]), 0, &SyncConfig::new(), &BTreeSet::new());
    let (mut tried, rounds) = (Tried::default(), Rounds::default());
    let until = clock::now();
    let endpoint = |number| url(number).endpoint().clone();
    let mut views = HashMap::new();
    let next = |tried: &Tried, views: &HashMap<_, _>| {
        self::next(&Situation { survey: &survey, tried, rounds: &rounds, fetch_limit: 64 }, views)
    };
    assert_eq!(next(&tried, &views), Step::Check(endpoint(0)));
    views.insert(endpoint(0), View::Throttled);
    assert_eq!(next(&tried, &views), Step::Check(endpoint(1)));
    views.insert(endpoint(1), View::Paused(until));
    views.insert(endpoint(2), View::Shut);
    views.insert(endpoint(3), View::Free);
    let ask = Ask { url: url(3), oids: vec![oid(1)], targets: vec![Target::new("0")] };
    assert_eq!(next(&tried, &views), Step::Ask(url(3)));
    assert_eq!(candidates::ask(&survey, &tried, &url(3)), Some(ask.clone()));
    tried.begin(&ask);
    tried.answered(&ask, &[]);
    assert_eq!(next(&tried, &views), Step::Wait(vec![endpoint(0)]));
    views.insert(endpoint(0), View::Paused(until + Duration::from_secs(1)));
    let Step::End(rest) = next(&tried, &views) else { panic!("nothing is left") };
    assert_eq!((rest.paused, rest.shut, rest.no_source_left), (Some(until), true, false));
}
