//! The repositories that each show something.

use std::io;

use purgatory_sync::Oid;

use super::{Plot, Repository, Workshop, branch::grow, history::History, person::Person};
use crate::cli::demo::hosts::Host;

/// A commit that exists nowhere.
const NOWHERE: Oid = Oid::sha1([0xde; 20]);

/// All on one server: one fetch brings a whole burst. What comes later names a commit that came with it.
pub(super) async fn lantern(workshop: &Workshop<'_>) -> io::Result<Plot> {
    let name = "lantern";
    let mut history = History::new();
    let released = grow(&mut history, "main", None, "Alice", 18);
    let head = grow(&mut history, "main", Some(released), "Alice", 6);
    let wick = grow(&mut history, "trim-the-wick", Some(head), "Dave", 2);
    let again = grow(&mut history, "trim-it-again", Some(wick), "Dave", 1);
    let oil = grow(&mut history, "cleaner-oil", Some(released), "Erin", 3);
    let tag = history.tag("v1.0", released, "Alice");

    let repository = Repository { name, hosts: vec![Host::Quick] };
    let ids = workshop.put(Host::Quick, name, &history).await?;
    let urls = workshop.urls(&repository);
    let [alice, dave, erin, frank] = ["Alice", "Dave", "Erin", "Frank"].map(Person::new);
    let trim = dave.pull_request(name, &alice, "Trim the wick", ids[wick], None);
    let update = dave.update(&trim, &alice, "Trim the wick", ids[again]);
    let burst = vec![
        trim,
        alice.state(name, &ids, head, &[("v1.0", tag)]),
        alice.announcement(name, &urls),
        erin.pull_request(name, &alice, "Burn cleaner oil", ids[oil], None),
        update,
    ];
    let later = vec![frank.pull_request(name, &alice, "Go back to 1.0", ids[released], None)];
    Ok(Plot { repository, burst, later })
}

/// The server that is named first stood still where the two part: it lacks what came later, and has what Dave gave it.
pub(super) async fn compass(workshop: &Workshop<'_>) -> io::Result<Plot> {
    let name = "compass";
    let mut newer = History::new();
    let parting = grow(&mut newer, "main", None, "Bob", 30);
    let head = grow(&mut newer, "main", Some(parting), "Bob", 10);
    let again = grow(&mut newer, "north-east", Some(head), "Dave", 1);
    let mut older = History::new();
    let parting = grow(&mut older, "main", None, "Bob", 30);
    let east = grow(&mut older, "north-east", Some(parting), "Dave", 2);

    let repository = Repository { name, hosts: vec![Host::Older, Host::Quick] };
    let older = workshop.put(Host::Older, name, &older).await?;
    let newer = workshop.put(Host::Quick, name, &newer).await?;
    let urls = workshop.urls(&repository);
    let [bob, dave] = ["Bob", "Dave"].map(Person::new);
    let north_east = dave.pull_request(name, &bob, "Point north-east", older[east], None);
    let update = dave.update(&north_east, &bob, "Point north-east", newer[again]);
    let burst =
        vec![bob.announcement(name, &urls), bob.state(name, &newer, head, &[]), north_east, update];
    Ok(Plot { repository, burst, later: Vec::new() })
}

/// Dave's changes are in his own fork, which his pull request names. Erin's are nowhere.
pub(super) async fn almanac(workshop: &Workshop<'_>) -> io::Result<Plot> {
    let name = "almanac";
    let mut history = History::new();
    let head = grow(&mut history, "main", None, "Carol", 12);
    let mut fork = History::new();
    let same = grow(&mut fork, "main", None, "Carol", 12);
    let tides = grow(&mut fork, "tides", Some(same), "Dave", 2);

    let repository = Repository { name, hosts: vec![Host::Quick] };
    let ids = workshop.put(Host::Quick, name, &history).await?;
    let fork = workshop.put(Host::Forks, "dave-almanac", &fork).await?;
    let urls = workshop.urls(&repository);
    let own = |name| Some(workshop.url(Host::Forks, name));
    let [carol, dave, erin] = ["Carol", "Dave", "Erin"].map(Person::new);
    let burst = vec![
        carol.state(name, &ids, head, &[]),
        dave.pull_request(name, &carol, "Add the tides", fork[tides], own("dave-almanac")),
        carol.announcement(name, &urls),
        erin.pull_request(name, &carol, "Add the comets", NOWHERE, own("erin-almanac")),
    ];
    Ok(Plot { repository, burst, later: Vec::new() })
}

/// On the strict server alone: the burst is put off, and one more event brings it forward.
pub(super) async fn bellows(workshop: &Workshop<'_>) -> io::Result<Plot> {
    let name = "bellows";
    let mut history = History::new();
    let head = grow(&mut history, "main", None, "Nina", 9);
    let hinge = grow(&mut history, "oil-the-hinge", Some(head), "Dave", 2);
    let valve = grow(&mut history, "turn-the-valve", Some(head), "Frank", 1);

    let repository = Repository { name, hosts: vec![Host::Strict] };
    let ids = workshop.put(Host::Strict, name, &history).await?;
    let urls = workshop.urls(&repository);
    let [nina, dave, frank] = ["Nina", "Dave", "Frank"].map(Person::new);
    let burst = vec![
        nina.announcement(name, &urls),
        dave.pull_request(name, &nina, "Oil the hinge", ids[hinge], None),
        nina.state(name, &ids, head, &[]),
    ];
    let later = vec![frank.pull_request(name, &nina, "Turn the valve", ids[valve], None)];
    Ok(Plot { repository, burst, later })
}
