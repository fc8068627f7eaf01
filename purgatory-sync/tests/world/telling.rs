//! How stories are made: by proptest, so that they shrink.

use proptest::prelude::*;

use crate::story::{
    Act, Call, Event, GRID, Host, Mood, OBJECTS, Place, Repo, Rules, Story, Timed, Trouble,
};

/// Every story. Numbers of hosts and repositories are brought into bounds at the end, so that each part shrinks
/// by itself.
pub(crate) fn stories() -> impl Strategy<Value = Story> {
    let span_secs = prop_oneof![3 => 10..60u64, 1 => 60..600u64];
    let hosts = prop::collection::vec(host(), 1..5);
    let repos = prop::collection::vec(repo(), 1..7);
    let acts = prop::collection::vec((0..1_000u64, act()), 1..20);
    (rules(), span_secs, hosts, repos, acts).prop_map(|(rules, span_secs, hosts, repos, acts)| {
        let at = |part: u64| part * span_secs / GRID * GRID;
        let acts = acts.into_iter().map(|(part, act)| Timed { at_ms: at(part), act }).collect();
        let mut story = Story { rules, hosts, repos, acts };
        for host in &mut story.hosts {
            host.moods.iter_mut().for_each(|(part, _)| *part = at(*part));
            host.moods.sort_by_key(|(at, _)| *at);
        }
        story.acts.sort_by_key(|timed| timed.at_ms);
        bring_into_bounds(&mut story);
        story
    })
}

fn rules() -> impl Strategy<Value = Rules> {
    let limits = prop_oneof![
        2 => Just((5, 30, 60)),
        3 => (1..4u32, 2..8u32, prop_oneof![Just(10u64), Just(20), Just(60)]),
    ];
    let slots = prop_oneof![2 => Just(32usize), 2 => 1..5usize];
    let queue = prop_oneof![5 => Just(1_000usize), 1 => 1..4usize];
    let wants = prop_oneof![4 => Just(200usize), 1 => 1..4usize];
    let oids = prop_oneof![4 => Just(5_000usize), 1 => 1..3usize];
    let fetches = prop_oneof![4 => Just(64usize), 1 => 1..5usize];
    (limits, slots, queue, wants, oids, fetches, any::<bool>()).prop_map(
        |(
            (concurrent, per_window, window_secs),
            slots,
            queue,
            wants_per_look,
            oids_per_want,
            fetches_per_pass,
            keeps_limits,
        )| Rules {
            concurrent,
            per_window,
            window_secs,
            slots,
            queue,
            wants_per_look,
            oids_per_want,
            fetches_per_pass,
            keeps_limits,
        },
    )
}

fn host() -> impl Strategy<Value = Host> {
    let latency = prop_oneof![Just(0u64), 1..50u64, 100..500u64];
    let has = || prop_oneof![2 => Just(u8::MAX), 3 => any::<u8>(), 1 => Just(0)];
    let moods = prop::collection::vec((0..1_000u64, mood()), 0..4);
    (latency, has(), has(), moods).prop_map(|(latency, one, other, moods)| Host {
        latency_ms: latency * GRID,
        has: [one, other],
        moods,
    })
}

fn mood() -> impl Strategy<Value = Mood> {
    prop_oneof![
        6 => Just(Mood::Fine),
        2 => (1..15u64).prop_map(Mood::Slow),
        2 => Just(Mood::Dead),
        2 => Just(Mood::Nameless),
        1 => Just(Mood::Failing),
        3 => (1..90u64).prop_map(Mood::Busy),
        1 => Just(Mood::Silent),
        1 => Just(Mood::Lying),
        1 => Just(Mood::Poisonous),
        1 => Just(Mood::Stubborn),
        2 => Just(Mood::Piecemeal),
        1 => Just(Mood::Gone),
        1 => Just(Mood::Forbidden),
        2 => Just(Mood::Shallow),
    ]
}

fn repo() -> impl Strategy<Value = Repo> {
    prop::collection::vec(places(4), 1..3).prop_map(|owners| Repo { owners })
}

fn places(most: usize) -> impl Strategy<Value = Vec<Place>> {
    prop::collection::vec(place(), 0..=most)
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        9 => (0..4usize, 0..2usize).prop_map(|(host, copy)| Place::At { host, copy }),
        1 => Just(Place::Ours),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let oids = prop::collection::btree_set(0..OBJECTS, 1..5);
    (0..6usize, 0..2usize, oids, prop::option::weighted(0.3, places(3)), prop::bool::weighted(0.2))
        .prop_map(|(repo, owner, oids, own, submitted)| {
            let most = if own.is_some() { 1 } else { usize::MAX };
            Event { repo, owner, oids: oids.into_iter().take(most).collect(), own, submitted }
        })
}

fn act() -> impl Strategy<Value = Act> {
    let objects = prop::collection::vec(0..OBJECTS, 1..4);
    prop_oneof![
        9 => event().prop_map(Act::Event),
        2 => (event(), 2..25u64, prop_oneof![1..5u64, 10..80u64])
            .prop_map(|(event, count, gap)| Act::Stream { event, count, gap_ms: gap * GRID }),
        2 => (0..4usize, 3..25usize).prop_map(|(host, count)| Act::Crowd { host, count }),
        2 => (0..6usize, objects).prop_map(|(repo, oids)| Act::Push { repo, oids }),
        2 => (0..6usize, 0..2usize, places(4))
            .prop_map(|(repo, owner, places)| Act::Announce { repo, owner, places }),
        1 => (0..6usize).prop_map(|repo| Act::Expire { repo }),
        2 => (0..4usize, 0..2usize, 0..OBJECTS)
            .prop_map(|(host, copy, oid)| Act::Upload { host, copy, oid }),
        2 => trouble(),
        1 => Just(Act::Restart),
        2 => (0..40u32).prop_map(|step| Act::Crash { step }),
    ]
}

fn trouble() -> impl Strategy<Value = Act> {
    let call = prop_oneof![
        Just(Call::Needs),
        Just(Call::Missing),
        Just(Call::Release),
        Just(Call::HeldIdentifiers)
    ];
    let trouble = prop_oneof![
        Just(Trouble::Error),
        Just(Trouble::Panic),
        (1..300u64).prop_map(|steps| Trouble::Slow(steps * GRID)),
        Just(Trouble::Hang)
    ];
    (call, trouble).prop_map(|(call, trouble)| match (call, trouble) {
        // Neither has a time limit, by design: a store that hangs there has to be mended.
        (Call::Release | Call::HeldIdentifiers, Trouble::Hang) => {
            Act::Trouble(call, Trouble::Error)
        }
        _ => Act::Trouble(call, trouble),
    })
}

fn bring_into_bounds(story: &mut Story) {
    let (hosts, repos) = (story.hosts.len(), story.repos.clone());
    let owners = |repo: usize| repos[repo].owners.len();
    let place = |place: &mut Place| {
        if let Place::At { host, .. } = place {
            *host %= hosts;
        }
    };
    for owner in story.repos.iter_mut().flat_map(|repo| &mut repo.owners) {
        owner.iter_mut().for_each(place);
    }
    for timed in &mut story.acts {
        match &mut timed.act {
            Act::Event(event) | Act::Stream { event, .. } => {
                event.repo %= repos.len();
                event.owner %= owners(event.repo);
                event.own.iter_mut().flatten().for_each(place);
            }
            Act::Push { repo, .. } | Act::Expire { repo } => *repo %= repos.len(),
            Act::Announce { repo, owner, places } => {
                *repo %= repos.len();
                *owner %= owners(*repo);
                places.iter_mut().for_each(place);
            }
            Act::Upload { host, .. } | Act::Crowd { host, .. } => *host %= hosts,
            Act::Trouble(..) | Act::Restart | Act::Crash { .. } => {}
        }
    }
}
