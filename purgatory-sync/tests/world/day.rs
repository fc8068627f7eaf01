//! One day of a large service, as a story.

use crate::story::{Act, Event, GRID, Host, Mood, OBJECTS, Place, Repo, Rules, Story, Timed};

const HOUR: u64 = 3_600_000;
const MINUTE: u64 = 60_000;

/// How long a service holds what cannot be had.
const EXPIRY: u64 = 30 * MINUTE;

/// How many identifiers a burst is about, all on the busiest host, in one second.
const BURST: usize = 400;

/// A day with so many identifiers on so many hosts, the first of which has a tenth of everything. Each identifier has an
/// event or two, some of them submitted or pull requests. One identifier in fifty is on hosts that are dead.
pub(crate) fn day(identifiers: usize, hosts: usize) -> Story {
    let mut dice = Dice(0x5eed);
    let repos = (0..identifiers).map(|number| repo(number, hosts, &mut dice)).collect();
    let mut acts: Vec<Timed> = Vec::new();
    for number in 0..identifiers {
        for _ in 0..dice.below(2) + 1 {
            let at_ms = dice.below(24 * HOUR / GRID) * GRID;
            acts.push(Timed { at_ms, act: Act::Event(event(number, &mut dice)) });
            if is_hopeless(number) {
                acts.push(Timed { at_ms: at_ms + EXPIRY, act: Act::Expire { repo: number } });
            }
        }
    }
    // Those on the busiest host.
    for number in (0..identifiers).filter(|number| is_busiest(*number)).take(BURST) {
        let at_ms = 12 * HOUR + dice.below(100) * GRID;
        acts.push(Timed { at_ms, act: Act::Event(event(number, &mut dice)) });
    }
    for (hour, act) in [
        (6, Act::Restart),
        (9, Act::Crash { step: 7 }),
        (13, Act::Restart),
        (18, Act::Crash { step: 100 }),
    ] {
        acts.push(Timed { at_ms: hour * HOUR, act });
    }
    acts.sort_by_key(|timed| timed.at_ms);
    let hosts = (0..hosts).map(|number| host(number, &mut dice)).collect();
    Story { rules: rules(), hosts, repos, acts }
}

/// The settings as they come.
fn rules() -> Rules {
    Rules {
        concurrent: 5,
        per_window: 30,
        window_secs: 60,
        slots: 32,
        queue: 100_000,
        wants_per_look: 200,
        oids_per_want: 5_000,
        fetches_per_pass: 64,
        keeps_limits: true,
    }
}

fn is_busiest(number: usize) -> bool {
    number % 10 == 3
}

fn is_hopeless(number: usize) -> bool {
    number % 50 == 7
}

/// The last tenth of the hosts is dead.
fn repo(number: usize, hosts: usize, dice: &mut Dice) -> Repo {
    let dead = hosts / 10;
    let mut any = |from: usize, count: usize| Place::At {
        host: from + usize::try_from(dice.below(count as u64)).expect("it is small"),
        copy: usize::try_from(dice.below(2)).expect("it is small"),
    };
    let places = match number {
        _ if is_hopeless(number) => vec![any(hosts - dead, dead), any(hosts - dead, dead)],
        _ if is_busiest(number) => vec![Place::At { host: 0, copy: 0 }],
        _ => vec![any(1, hosts - 1), any(1, hosts - dead - 1), Place::Ours],
    };
    Repo { owners: vec![places] }
}

fn event(repo: usize, dice: &mut Dice) -> Event {
    let first = u8::try_from(dice.below(u64::from(OBJECTS))).expect("it is small");
    let own = dice.below(5) == 0;
    let mut oids = vec![first];
    if !own {
        oids.push((first + 1) % OBJECTS);
    }
    Event { repo, owner: 0, oids, own: own.then(Vec::new), submitted: dice.below(10) == 0 }
}

/// Most are fine all day. Some are slow, busy, silent or out for an hour.
fn host(number: usize, dice: &mut Dice) -> Host {
    let at = dice.below(22) * HOUR;
    let moods = match number % 15 {
        _ if number >= 270 => vec![(0, Mood::Dead)],
        4 => vec![(0, Mood::Slow(3))],
        5 => vec![(at, Mood::Busy(45)), (at + HOUR, Mood::Fine)],
        6 => vec![(at, Mood::Silent), (at + HOUR / 4, Mood::Fine)],
        7 => vec![(at, Mood::Failing), (at + HOUR, Mood::Fine)],
        8 => vec![(at, Mood::Nameless), (at + HOUR / 12, Mood::Fine)],
        9 => vec![(at, Mood::Lying), (at + HOUR, Mood::Fine)],
        10 => vec![(0, Mood::Piecemeal)],
        _ => Vec::new(),
    };
    Host { latency_ms: (dice.below(100) + 1) * GRID, has: [u8::MAX; 2], moods }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}
