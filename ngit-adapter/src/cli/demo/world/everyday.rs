use std::io;

use super::{Plot, Repository, Workshop, branch::grow, history::History, person::Person};
use crate::cli::demo::hosts::Host;

/// Repositories with nothing special but where they are: many of them on one slow server, and some where nobody answers.
/// The names of their owners begin with letters of their own: those make their keys.
pub(super) const REPOSITORIES: [(&str, &str, &[Host]); 8] = [
    ("sextant", "Grace", &[Host::Closed, Host::Slow]),
    ("anchor", "Heidi", &[Host::Slow]),
    ("tiller", "Ivan", &[Host::Slow]),
    ("beacon", "Judy", &[Host::Slow]),
    ("kettle", "Kim", &[Host::Slow]),
    ("ladder", "Leo", &[Host::Slow]),
    ("thimble", "Mona", &[Host::Slow]),
    ("mooring", "Oscar", &[Host::Closed]),
];

/// A state, two pull requests and an update, all of them where the announcement says last.
pub(super) async fn make(
    workshop: &Workshop<'_>,
    name: &'static str,
    owner: &'static str,
    hosts: &[Host],
) -> io::Result<Plot> {
    let mut history = History::new();
    let head = grow(&mut history, "main", None, owner, 14);
    let dave = grow(&mut history, "steadier", Some(head), "Dave", 2);
    let again = grow(&mut history, "steadier-again", Some(dave), "Dave", 1);
    let erin = grow(&mut history, "brighter", Some(head), "Erin", 2);

    let repository = Repository { name, hosts: hosts.to_vec() };
    let last = *hosts.last().expect("each is announced somewhere");
    let ids = workshop.put(last, name, &history).await?;
    let urls = workshop.urls(&repository);
    let [owner, by_dave, by_erin] = [owner, "Dave", "Erin"].map(Person::new);
    let steadier = by_dave.pull_request(name, &owner, "Make it steadier", ids[dave], None);
    let update = by_dave.update(&steadier, &owner, "Make it steadier", ids[again]);
    let burst = vec![
        owner.announcement(name, &urls),
        owner.state(name, &ids, head, &[]),
        steadier,
        by_erin.pull_request(name, &owner, "Make it brighter", ids[erin], None),
        update,
    ];
    Ok(Plot { repository, burst, later: Vec::new() })
}
