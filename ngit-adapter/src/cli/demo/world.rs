use std::{io, path::Path};

use nostr::event::EventId;
use purgatory_sync::Oid;

use super::{
    history::{History, Mark},
    person::{Person, Told},
};
use crate::git::Git;

/// What the demo is about: repositories on servers, and the signed events that speak of them.
///
/// But for the servers' ports it is the same each time.
pub(super) struct World {
    pub(super) repositories: Vec<Repository>,
    /// In the order in which they arrive.
    pub(super) events: Vec<Told>,
}

/// A repository that is announced.
pub(super) struct Repository {
    pub(super) name: &'static str,
    pub(super) owner: &'static str,
    pub(super) commits: usize,
    pub(super) note: &'static str,
}

/// Where the demo's servers listen, and the folders they serve.
pub(super) struct Place<'a> {
    pub(super) base_url: String,
    pub(super) folder: &'a Path,
}

const LANTERN: &str = "lantern";
const COMPASS: &str = "compass";
const ALMANAC: &str = "almanac";

impl World {
    /// Writes the repositories into the servers' folders and signs the events.
    pub(super) async fn make(git: &Git, servers: &[Place<'_>; 3]) -> io::Result<Self> {
        let [first, second, third] = servers;
        let lantern = lantern();
        let compass = compass();
        let almanac = almanac();
        let lantern_ids = lantern.all.write_to(git, &first.folder.join("lantern.git")).await?;
        let compass_ids = compass.main.write_to(git, &second.folder.join("compass.git")).await?;
        let mirror_ids = compass.mirror.write_to(git, &third.folder.join("compass.git")).await?;
        let almanac_ids = almanac.main.write_to(git, &third.folder.join("almanac.git")).await?;
        let fork = first.folder.join("dave-almanac.git");
        let fork_ids = almanac.fork.write_to(git, &fork).await?;

        let url = |place: &Place<'_>, name: &str| format!("{}/{name}.git", place.base_url);
        let [alice, bob, carol, dave, erin] =
            ["Alice", "Bob", "Carol", "Dave", "Erin"].map(Person::new);
        let north_east =
            dave.pull_request(COMPASS, &bob, "Point north-east", mirror_ids[compass.east], None);
        let again = dave.update(&north_east, &bob, "Point north-east", compass_ids[compass.again]);
        let events = vec![
            dave.pull_request(LANTERN, &alice, "Trim the wick", lantern_ids[lantern.wick], None),
            alice.state(LANTERN, &lantern_ids, lantern.head, &[("v1.0", lantern.tag)]),
            alice.announcement(LANTERN, &[url(first, LANTERN)]),
            bob.announcement(COMPASS, &[url(second, COMPASS), url(third, COMPASS)]),
            bob.state(COMPASS, &compass_ids, compass.head, &[]),
            carol.state(ALMANAC, &almanac_ids, almanac.head, &[]),
            erin.pull_request(LANTERN, &alice, "Burn cleaner oil", lantern_ids[lantern.oil], None),
            north_east,
            again,
            dave.pull_request(
                ALMANAC,
                &carol,
                "Add the tides",
                fork_ids[almanac.tides],
                Some(url(first, "dave-almanac")),
            ),
            carol.announcement(ALMANAC, &[url(third, ALMANAC)]),
            erin.pull_request(
                ALMANAC,
                &carol,
                "Add the comets",
                NOWHERE,
                Some(url(second, "erin-almanac")),
            ),
        ];
        Ok(Self {
            repositories: vec![
                Repository {
                    name: LANTERN,
                    owner: "Alice",
                    commits: lantern.all.len() - 1,
                    note: "on the first server",
                },
                Repository {
                    name: COMPASS,
                    owner: "Bob",
                    commits: compass.main.len(),
                    note: "on the second, an older copy on the third",
                },
                Repository {
                    name: ALMANAC,
                    owner: "Carol",
                    commits: almanac.main.len(),
                    note: "on the third, Dave's fork on the first",
                },
            ],
            events,
        })
    }

    /// How the story calls the event.
    pub(super) fn told(&self, id: &EventId) -> Option<&Told> {
        self.events.iter().find(|told| &told.event.id == id)
    }
}

/// A commit that exists nowhere.
const NOWHERE: Oid = Oid::sha1([0xde; 20]);

struct Lantern {
    all: History,
    head: Mark,
    tag: Mark,
    wick: Mark,
    oil: Mark,
}

fn lantern() -> Lantern {
    let mut all = History::new();
    let released = grow(&mut all, "main", None, "Alice", 18);
    let head = grow(&mut all, "main", Some(released), "Alice", 6);
    let wick = grow(&mut all, "trim-the-wick", Some(head), "Dave", 2);
    let oil = grow(&mut all, "cleaner-oil", Some(released), "Erin", 3);
    let tag = all.tag("v1.0", released, "Alice");
    Lantern { all, head, tag, wick, oil }
}

struct Compass {
    main: History,
    mirror: History,
    head: Mark,
    east: Mark,
    again: Mark,
}

/// The mirror stands still where the two part: it lacks what came later, and has what Dave gave it.
fn compass() -> Compass {
    let mut main = History::new();
    let parting = grow(&mut main, "main", None, "Bob", 30);
    let head = grow(&mut main, "main", Some(parting), "Bob", 10);
    let again = grow(&mut main, "north-east", Some(head), "Dave", 1);
    let mut mirror = History::new();
    let parting = grow(&mut mirror, "main", None, "Bob", 30);
    let east = grow(&mut mirror, "north-east", Some(parting), "Dave", 2);
    Compass { main, mirror, head, east, again }
}

struct Almanac {
    main: History,
    fork: History,
    head: Mark,
    tides: Mark,
}

fn almanac() -> Almanac {
    let mut main = History::new();
    let head = grow(&mut main, "main", None, "Carol", 12);
    let mut fork = History::new();
    let same = grow(&mut fork, "main", None, "Carol", 12);
    let tides = grow(&mut fork, "tides", Some(same), "Dave", 2);
    Almanac { main, fork, head, tides }
}

/// Adds `count` commits and gives the last one.
fn grow(
    history: &mut History,
    branch: &str,
    parent: Option<Mark>,
    author: &str,
    count: usize,
) -> Mark {
    const WORK: [(&str, &str); 6] = [
        ("Say what this is", "README.md"),
        ("Write down how it is built", "docs/building.md"),
        ("Round the corners", "src/shape.txt"),
        ("Measure twice", "src/measure.txt"),
        ("Check the joints", "tests/joints.txt"),
        ("Tidy the workshop", "docs/workshop.md"),
    ];
    let mut last = parent;
    for number in 0..count.max(1) {
        let (message, file) = WORK[number % WORK.len()];
        let content =
            format!("{author}, {branch}, step {number}\n{}", "More to come.\n".repeat(number));
        last = Some(history.commit(branch, last, author, message, (file, &content)));
    }
    last.expect("at least one commit was made")
}
