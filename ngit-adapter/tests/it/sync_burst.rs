//! Many events at once for several repositories: each repository is asked for once.

use nostr::event::Event;
use tempfile::TempDir;

use crate::{
    support::TestRepo,
    support_events::{Person, lines},
    support_program::SyncRun,
    support_server::TestServer,
};

/// P1, P4, G5, G9: twelve repositories on two hosts, a state and two pull requests each: twelve fetches of two requests
/// at most, 36 events, and the refs are those of the states.
#[test]
fn a_burst_of_36_events_takes_12_fetches() {
    let served = TempDir::new().expect("a temporary folder");
    let hosts = ["127.0.0.1", "127.0.0.2"].map(|ip| TestServer::start(ip, served.path()));
    let owner = Person::new(1);
    let contributors = [Person::new(2), Person::new(3)];
    let mut announcements = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    let mut mains = Vec::new();
    for number in 0..12 {
        let name = format!("repo-{number}");
        let repo = TestRepo::init(served.path().join(format!("{name}.git")));
        let main = repo.commits("main", 4 + number);
        let tip = *main.last().expect("commits were made");
        let tag = repo.annotated_tag("v1", main[0]);
        announcements
            .push(owner.announcement(&name, &[&hosts[number % 2].url(&format!("{name}.git"))]));
        events.push(owner.state(&name, &[("refs/heads/main", tip), ("refs/tags/v1", tag)]));
        for (contributor, branch) in contributors.iter().zip(["one", "two"]) {
            repo.set_branch(branch, main[1]);
            let tip = repo.commit(branch, "change.txt", &format!("{name} {branch}"));
            events.push(contributor.pull_request(&owner, &name, tip, &[]));
        }
        mains.push((name, tip, tag));
    }
    // Announcements in the middle: neither first nor last.
    let (before, after) = events.split_at(17);
    let sync = SyncRun::new(&lines(before.iter().chain(&announcements).chain(after)));
    let ran = sync.run();

    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!(ran.summary("events"), 48);
    assert_eq!(ran.summary("announcements"), 12);
    assert_eq!(ran.summary("released"), 36);
    assert_eq!(ran.summary("held"), 0);
    assert_eq!(ran.summary("rejected"), 0);
    assert_eq!(ran.summary("fetches"), 12);
    let mut expected: Vec<String> = events.iter().map(|event| event.id.to_hex()).collect();
    expected.sort();
    assert_eq!(ran.texts("released", "id"), expected);
    assert_eq!(ran.of_type("fetch").len(), 12);
    for fetch in ran.of_type("fetch") {
        assert_eq!(fetch["wanted"], 4, "{fetch}");
        assert_eq!(fetch["received"], 4, "{fetch}");
        assert_eq!(fetch["outcome"], "fetched", "{fetch}");
    }

    // The servers counted too.
    let requests: u64 = hosts.iter().map(|host| host.log().requests()).sum();
    let fetches: u64 = hosts.iter().map(|host| host.log().fetches()).sum();
    assert_eq!(fetches, 12);
    assert!(requests <= 24, "{requests} HTTP requests");
    assert_eq!(ran.summary("http_requests"), requests);
    for host in &hosts {
        assert!(host.log().most_at_once() <= 5);
    }

    for (name, main, tag) in &mains {
        let repo = TestRepo::open(sync.repository(&owner.npub(), name));
        assert_eq!(repo.ref_oid("main"), Some(*main), "{name}");
        assert_eq!(repo.ref_oid("refs/tags/v1"), Some(*tag), "{name}");
        assert_eq!(repo.head(), "refs/heads/main");
        assert!(repo.is_complete(*main));
        // The contributors' branches are no branches here.
        let refs = repo.refs();
        let heads = refs.keys().filter(|name| name.starts_with("refs/heads/")).count();
        assert_eq!(heads, 1, "{refs:?}");
        assert_eq!(refs.len(), 4, "{refs:?}");
    }

    // The events and their announcements came out, each once.
    let out = std::fs::read_to_string(sync.out_file()).expect("the file was written");
    let mut out: Vec<&str> = out.lines().collect();
    out.sort_unstable();
    let all = lines(events.iter().chain(&announcements));
    let mut all: Vec<&str> = all.lines().collect();
    all.sort_unstable();
    assert_eq!(out, all);
}
