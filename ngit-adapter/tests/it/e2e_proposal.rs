//! The ten integration tests of the proposal, in its order, with the real program, real git and servers on loopback.
//!
//! The engine's own test of the same names has the exact times, on a simulated clock. Here the order and the numbers
//! are seen from outside: by servers, by clients and in the relay's log.

use std::{
    collections::BTreeSet,
    io::Write,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use ngit_adapter::relay::{RequestKind, RequestLog};
use nostr::event::Event;
use purgatory_sync::Oid;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    e2e_support::{ALL_OF_IT, Gate, JSON, QUICK, announcement_on, asked, metric, records, said},
    peers_support::relay_with_peers,
    serve_support::{Client, RelayProcess, assert_pushed, clone, push, state_at, stderr, until},
    support::TestRepo,
    support_events::{Person, lines},
    support_program::{PROGRAM, Ran, SyncRun},
    support_server::TestServer,
};

/// A repository with one branch per name, each with a commit that no other has.
fn branches(at: &Path, names: &[&str]) -> Vec<Oid> {
    let repo = TestRepo::init(at);
    names.iter().map(|name| repo.commit(name, "file.txt", &format!("{at:?} {name}"))).collect()
}

/// Publishes what has to be held.
async fn hold(client: &mut Client, events: &[&Event]) {
    for event in events {
        client.publish_held(event).await;
    }
}

/// Publishes what is taken, whether or not the other relay has told of it before.
async fn send(client: &mut Client, events: &[&Event]) {
    for event in events {
        let (taken, why) = client.publish(event).await;
        assert!(taken, "{why}");
    }
}

async fn is_served(client: &mut Client, event: &Event) -> bool {
    !client.served(json!({"ids": [event.id.to_hex()]})).await.is_empty()
}

/// Looks until all of it is served.
async fn until_served(client: &mut Client, events: &[&Event]) {
    let begun = Instant::now();
    let ids: Vec<_> = events.iter().map(|event| event.id.to_hex()).collect();
    while client.served(json!({"ids": ids})).await.len() < ids.len() {
        assert!(begun.elapsed() < crate::serve_support::PATIENCE, "it is not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How many passes over an identifier have ended.
fn passes(relay: &RelayProcess, identifier: &str) -> usize {
    ["sync complete", "backoff applied", "pass ended"]
        .iter()
        .map(|end| said(relay, end, identifier).len())
        .sum()
}

/// Integration 1, P6, R9: what was pushed to one instance is fetched by the other, which serves it with its refs. Of a state of
/// which one branch is nowhere, the other branch comes, and the event stays.
#[tokio::test(flavor = "multi_thread")]
async fn integration_1_two_instances_push_to_one_and_the_other_syncs() {
    let (dir, owner, author) = (TempDir::new().unwrap(), Person::new(1), Person::new(2));
    let first = RelayProcess::start();
    let second = relay_with_peers(&[first.websocket()]);
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = *source.commits("main", 5).last().unwrap();
    let change = source.commit("change", "change.txt", "1");
    let nowhere = Oid::sha1([0xab; 20]);

    // Nobody tells the second anything but the first.
    let announcement = announcement_on(&[&first, &second], &owner, "lantern", &[], 0);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    let pull_request = author.pull_request(&owner, "lantern", change, &[]);
    let (mut one, mut two) = (Client::connect(&first).await, Client::connect(&second).await);
    hold(&mut one, &[&announcement, &state, &pull_request]).await;
    let url = first.repository_url(&owner, "lantern");
    let name = format!("refs/nostr/{}", pull_request.id.to_hex());
    assert_pushed(&push(&source, &url, &["main", &format!("change:{name}")]));
    until_served(&mut one, &[&announcement, &state, &pull_request]).await;
    until_served(&mut two, &[&announcement, &state, &pull_request]).await;
    let to = dir.path().join("clone.git");
    let cloned = clone(&second.repository_url(&owner, "lantern"), &to, &[]);
    assert!(cloned.status.success(), "{}", stderr(&cloned));
    assert_eq!(TestRepo::open(to).ref_oid("main"), Some(main));
    assert_eq!(second.repository(&owner, "lantern").ref_oid(&name), Some(change));

    // Partial: a second repository, of which the first instance has only one branch.
    let announcement = announcement_on(&[&first, &second], &owner, "ferry", &[], 0);
    let refs = [("refs/heads/main", main), ("refs/heads/dev", nowhere)];
    let whole = state_at(&owner, "ferry", 1, &refs);
    send(&mut two, &[&announcement, &whole]).await;
    let part = owner.state("ferry", &[("refs/heads/main", main)]);
    send(&mut one, &[&announcement, &part]).await;
    assert_pushed(&push(&source, &first.repository_url(&owner, "ferry"), &["main"]));
    let fits = author.pull_request(&owner, "ferry", main, &[]);
    send(&mut two, &[&fits]).await;
    until_served(&mut two, &[&announcement, &fits]).await;
    let here = second.repository(&owner, "ferry");
    assert!(here.is_complete(main));
    assert_eq!(here.ref_oid("main"), None);
    assert!(!is_served(&mut two, &whole).await);
    assert_eq!(two.publish(&whole).await, (true, "duplicate: it is here already".to_owned()));
}

/// Integration 2, D2, P1: ten events for one repository at once make one run, after it was quiet for the whole delay,
/// and one fetch.
#[test]
fn integration_2_a_burst_of_ten_events_is_one_fetch_after_it_is_quiet() {
    let served = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(served.path().join("project.git"));
    let main = repo.commits("main", 10);
    let server = TestServer::start("127.0.0.1", served.path());
    let owner = Person::new(1);
    let mut events = vec![owner.announcement("project", &[&server.url("project.git")])];
    events.push(owner.state("project", &[("refs/heads/main", main[9])]));
    let author = |number: usize| Person::new(u8::try_from(number).expect("few") + 2);
    events.extend((0..8).map(|it| author(it).pull_request(&owner, "project", main[it], &[])));

    // The delay is long beside what a busy machine may take to read ten lines.
    let sync = SyncRun::new("").arg("--events=-").arg("--sync-immediate-delay-ms=3000");
    let mut command = sync.command(Path::new(PROGRAM));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin.write_all(lines(&events[..9]).as_bytes()).expect("the program reads");
    std::thread::sleep(Duration::from_millis(90));
    let before_the_last = Instant::now();
    stdin.write_all(lines(&events[9..]).as_bytes()).expect("the program reads");
    drop(stdin);
    let ran = Ran::new(child.wait_with_output().expect("it ends"), Duration::ZERO);

    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!((ran.summary("released"), ran.summary("fetches")), (9, 1));
    assert_eq!(asked(server.log()), ["/project.git"]);
    let quiet = server.log().entries()[0].at.duration_since(before_the_last);
    assert!(quiet >= Duration::from_secs(3), "it began {quiet:?} after the last");
}

/// Integration 3, D6, D7, D8: a refused connection is tried again 20 s later and then 40 s later; a new event starts anew, and
/// one that comes during a run has the next one begin without a backoff. (`e2e_backoff` has the whole row of delays.)
#[tokio::test(flavor = "multi_thread")]
async fn integration_3_refused_connections_back_off_and_a_new_event_starts_anew() {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let relay = RelayProcess::start_with(&[QUICK, JSON], &[ALL_OF_IT]);
    let mut client = Client::connect(&relay).await;
    let nowhere = |number: u8| Oid::sha1([number; 20]);
    let refused = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let dead = format!("http://{}/x.git", refused.local_addr().unwrap());
    drop(refused);
    let announcement = announcement_on(&[&relay], &owner, "lantern", &[dead], 0);
    hold(&mut client, &[&announcement]).await;
    hold(&mut client, &[&owner.state("lantern", &[("refs/heads/main", nowhere(1))])]).await;
    let delays = || -> Vec<f64> {
        let backoffs = said(&relay, "backoff applied", "lantern");
        backoffs.iter().map(|it| it["next_attempt_secs"].as_f64().expect("a number")).collect()
    };
    let fails = || said(&relay, "fetch failed", "lantern").len();
    until("it was tried", || delays() == [20.0]).await;

    // Meanwhile: an event that comes during a run.
    let (gate, log) = (Gate::closed(), RequestLog::default());
    let slow = gate.guard("127.0.0.2", dir.path(), &log);
    let announcement = announcement_on(&[&relay], &owner, "ferry", &[slow.url("ferry/x.git")], 0);
    hold(&mut client, &[&announcement]).await;
    hold(&mut client, &[&owner.state("ferry", &[("refs/heads/main", nowhere(2))])]).await;
    until("the run is on", || gate.names() == ["ferry"]).await;
    let during = Person::new(2).pull_request(&owner, "ferry", nowhere(3), &[]);
    hold(&mut client, &[&during]).await;
    gate.open();
    until("the second run is over", || passes(&relay, "ferry") == 2).await;
    assert_eq!(said(&relay, "pass ended", "ferry").len(), 1, "the first had no backoff");
    let backoffs = said(&relay, "backoff applied", "ferry");
    assert_eq!(backoffs[0]["attempt"], 1, "and the second is not the second failure");

    until("it was tried again", || delays() == [20.0, 40.0]).await;
    let time = |it: &serde_json::Value| -> String { it["timestamp"].as_str().unwrap().to_owned() };
    let both = said(&relay, "backoff applied", "lantern");
    assert!(time(&both[1]) > time(&both[0]), "{both:?}");
    let another = Person::new(2).pull_request(&owner, "lantern", nowhere(4), &[]);
    hold(&mut client, &[&another]).await;
    until("it starts anew", || delays() == [20.0, 40.0, 20.0]).await;
    assert_eq!(fails(), 3);
}

/// Integration 4, P11, L1, L2 with the defaults: 30 fetches in any minute and 5 at once, the 31st right after the window. It
/// takes a minute, beside the other tests.
#[test]
fn integration_4_forty_repositories_on_one_host_are_fetched_within_the_limits() {
    let served = TempDir::new().expect("a temporary folder");
    let server = TestServer::start("127.0.0.1", served.path());
    let owner = Person::new(1);
    let mut events = Vec::new();
    for number in 0..40 {
        let name = format!("repo-{number}");
        let repo = TestRepo::init(served.path().join(format!("{name}.git")));
        let tip = repo.commit("main", "file.txt", &name);
        events.push(owner.announcement(&name, &[&server.url(&format!("{name}.git"))]));
        events.push(owner.state(&name, &[("refs/heads/main", tip)]));
    }
    let ran = SyncRun::new(&lines(&events)).arg("--deadline-secs=160").run();

    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!((ran.summary("released"), ran.summary("fetches")), (40, 40));
    assert!(server.log().most_at_once() <= 5, "{} at once", server.log().most_at_once());
    let starts: Vec<_> = server
        .log()
        .entries()
        .iter()
        .filter(|entry| entry.kind == RequestKind::Advertisement)
        .map(|entry| entry.at)
        .collect();
    assert_eq!(starts.len(), 40);
    let window = Duration::from_secs(60);
    // Between the start here and the arrival at the server a moment passes, on a busy machine the one time a much longer one
    // than the other. A limiter of another kind would be far off: a bucket or a fixed window lets 31 in within seconds.
    let jitter = Duration::from_secs(5);
    for (early, late) in starts.iter().zip(&starts[30..]) {
        let apart = *late - *early;
        assert!(apart >= window - jitter, "31 starts within {apart:?}");
    }
    let next = starts[30] - starts[0];
    assert!(next <= window + Duration::from_secs(15), "the 31st came only after {next:?}");
    let first_thirty = starts[29] - starts[0];
    assert!(first_thirty < Duration::from_secs(45), "the first 30 took {first_thirty:?}");
}

/// Integration 5, L2, L3: while a fetch of a repository is on, its domain gets no second one of it, and those of four other
/// repositories; the sixth waits.
#[tokio::test(flavor = "multi_thread")]
async fn integration_5_one_domain_gets_one_request_of_a_repository_and_five_in_all() {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let (gate, log) = (Gate::closed(), RequestLog::default());
    let server = gate.guard("127.0.0.3", dir.path(), &log);
    let relay = RelayProcess::start_with(&[QUICK], &[]);
    let mut client = Client::connect(&relay).await;
    let names = ["a", "b", "c", "d", "e", "f"];
    for (number, name) in names.iter().enumerate() {
        let urls: Vec<_> = (0..2).map(|url| server.url(&format!("{name}/{url}.git"))).collect();
        let tip = Oid::sha1([u8::try_from(number).expect("few") + 1; 20]);
        hold(&mut client, &[&announcement_on(&[&relay], &owner, name, &urls, 0)]).await;
        hold(&mut client, &[&owner.state(name, &[("refs/heads/main", tip)])]).await;
    }
    until("five are on", || gate.names().len() == 5).await;
    // A second reason to look for those that are on.
    for name in &gate.names() {
        let tip = Oid::sha1([99; 20]);
        hold(&mut client, &[&Person::new(2).pull_request(&owner, name, tip, &[])]).await;
    }
    assert_eq!((gate.names().len(), gate.most_of_one()), (5, 1));
    assert!(asked(&log).is_empty());
    gate.open();
    // Every URL is asked in the end.
    until("all were asked", || asked(&log).iter().collect::<BTreeSet<_>>().len() == 12).await;
    assert_eq!(gate.most_of_one(), 1);
    assert!(log.most_at_once() <= 5, "{} at once", log.most_at_once());
}

/// Integration 6, P1: five repositories are looked for at the same time, and none of them twice.
#[tokio::test(flavor = "multi_thread")]
async fn integration_6_five_repositories_are_fetched_in_parallel_and_none_twice() {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let (gate, log) = (Gate::closed(), RequestLog::default());
    let relay = RelayProcess::start_with(&[QUICK], &[]);
    let mut client = Client::connect(&relay).await;
    let (mut servers, mut events) = (Vec::new(), Vec::new());
    for number in 0..5 {
        let name = format!("repo-{number}");
        std::fs::create_dir(dir.path().join(&name)).unwrap();
        let tip = branches(&dir.path().join(format!("{name}/x.git")), &["main"])[0];
        let server = gate.guard(&format!("127.0.0.{}", number + 4), dir.path(), &log);
        let urls = [server.url(&format!("{name}/x.git"))];
        events.push(announcement_on(&[&relay], &owner, &name, &urls, 0));
        events.push(owner.state(&name, &[("refs/heads/main", tip)]));
        events.push(Person::new(2).pull_request(&owner, &name, tip, &[]));
        servers.push(server);
    }
    // The pull requests come when the fetches are on.
    for event in events.chunks(3).flat_map(|of_one| &of_one[..2]) {
        hold(&mut client, &[event]).await;
    }
    // With one after the other there would never be five.
    until("all five are on", || gate.names().len() == 5).await;
    for event in events.chunks(3).flat_map(|of_one| &of_one[2..]) {
        hold(&mut client, &[event]).await;
    }
    assert_eq!((gate.names().len(), gate.most_of_one()), (5, 1));
    gate.open();
    until_served(&mut client, &events.iter().collect::<Vec<_>>()).await;
    assert_eq!(asked(&log).len(), 5, "{:?}", asked(&log));
}

/// Integration 7, P2, P5: a URL that is announced while a fetch is on, and an event that comes then, are used in the
/// same run.
#[tokio::test(flavor = "multi_thread")]
async fn integration_7_a_url_and_an_event_that_come_during_a_run_are_used_in_it() {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    for folder in ["one", "two"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
    }
    let change = branches(&dir.path().join("one/x.git"), &["change"])[0];
    let main = branches(&dir.path().join("two/x.git"), &["main"])[0];
    let (first, second, log) = (Gate::closed(), Gate::closed(), RequestLog::default());
    let one = first.guard("127.0.0.10", dir.path(), &log);
    let two = second.guard("127.0.0.11", dir.path(), &log);
    let urls = [one.url("one/x.git"), two.url("two/x.git")];

    let relay = RelayProcess::start_with(&[QUICK, JSON], &[ALL_OF_IT]);
    let mut client = Client::connect(&relay).await;
    let announcement = announcement_on(&[&relay], &owner, "lantern", &urls[..1], 0);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    hold(&mut client, &[&announcement, &state]).await;
    until("the first is asked", || first.names() == ["one"]).await;
    let announcement = announcement_on(&[&relay], &owner, "lantern", &urls, 1);
    let pull_request = Person::new(2).pull_request(&owner, "lantern", change, &[]);
    hold(&mut client, &[&announcement, &pull_request]).await;
    first.open();
    until("the second is asked", || second.names() == ["two"]).await;
    assert_eq!(passes(&relay, "lantern"), 0, "it is the same run");
    second.open();
    until_served(&mut client, &[&announcement, &state, &pull_request]).await;
    // Both came in the first run: no run had ended before the last of the objects was here.
    let records = records(&relay);
    let ends = ["sync complete", "backoff applied", "pass ended"];
    let of_run = |it: &&serde_json::Value| {
        it["identifier"] == "lantern" && !ends.iter().any(|end| it["message"] == *end)
    };
    let run: Vec<_> =
        records.iter().take_while(|it| it["identifier"] != "lantern" || of_run(it)).collect();
    let fetched = run.iter().filter(|it| it["message"] == "OIDs fetched").count();
    assert_eq!(fetched, 2, "{run:?}");
    let mut asked = asked(&log);
    asked.sort();
    assert_eq!(asked, ["/one/x.git", "/one/x.git", "/two/x.git"]);
}

/// Integration 8, P5: when all URLs of a domain were asked, a new one on it is asked at the next attempt, before those.
/// Nothing is kept in the end.
#[tokio::test(flavor = "multi_thread")]
async fn integration_8_a_new_url_on_an_exhausted_domain_is_asked_next() {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let main = branches(&dir.path().join("new.git"), &["main"])[0];
    branches(&dir.path().join("b.git"), &["other"]);
    let server = TestServer::start("127.0.0.12", dir.path());
    let urls = ["a.git", "b.git", "new.git"].map(|name| server.url(name));
    let relay = RelayProcess::start_with(&[QUICK, JSON], &[ALL_OF_IT]);
    let mut client = Client::connect(&relay).await;
    let announcement = announcement_on(&[&relay], &owner, "lantern", &urls[..2], 0);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    hold(&mut client, &[&announcement, &state]).await;
    until("both were asked in vain", || said(&relay, "backoff applied", "lantern").len() == 1)
        .await;
    assert_eq!(asked(server.log()), ["/a.git", "/b.git"]);
    let announcement = announcement_on(&[&relay], &owner, "lantern", &urls, 1);
    hold(&mut client, &[&announcement]).await;
    until_served(&mut client, &[&announcement, &state]).await;
    assert_eq!(asked(server.log())[2..], ["/new.git"]);
    until("nothing is queued", || metric(&relay, "purgatory_sync_queue_size") == 0.0).await;
    assert_eq!(metric(&relay, "ngit_relay_held_events"), 0.0);
}

/// Integration 9, G5: a state and a pull request are fetched together, and both are served with their refs.
#[tokio::test(flavor = "multi_thread")]
async fn integration_9_a_state_and_a_pull_request_are_fetched_together() {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let tips = branches(&dir.path().join("x.git"), &["main", "change"]);
    let server = TestServer::start("127.0.0.13", dir.path());
    let relay = RelayProcess::start_with(&[QUICK], &[]);
    let mut client = Client::connect(&relay).await;
    let announcement = announcement_on(&[&relay], &owner, "lantern", &[server.url("x.git")], 0);
    let state = owner.state("lantern", &[("refs/heads/main", tips[0])]);
    let pull_request = Person::new(2).pull_request(&owner, "lantern", tips[1], &[]);
    hold(&mut client, &[&pull_request, &state, &announcement]).await;
    until_served(&mut client, &[&announcement, &state, &pull_request]).await;
    assert_eq!((asked(server.log()).len(), server.log().fetches()), (1, 1));
    let here = relay.repository(&owner, "lantern");
    assert_eq!(here.ref_oid("main"), Some(tips[0]));
    let name = format!("refs/nostr/{}", pull_request.id.to_hex());
    assert_eq!(here.ref_oid(&name), Some(tips[1]));
}

/// Integration 10, P4: of ten URLs two are on a domain that has no capacity. The eight others are asked first, in their
/// order; the two only for what the others do not have, and at once when there is capacity.
#[tokio::test(flavor = "multi_thread")]
async fn integration_10_available_domains_are_asked_before_throttled_ones() {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let (gate, log) = (Gate::closed(), RequestLog::default());
    let busy = gate.guard("127.0.0.20", dir.path(), &log);
    let in_folder = |name: &str, branch: &str| {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
        branches(&dir.path().join(format!("{name}/x.git")), &[branch])[0]
    };
    let mut refs: Vec<_> = (0..8)
        .map(|it| (format!("refs/heads/b{it}"), in_folder(&format!("free{it}"), &format!("b{it}"))))
        .collect();
    in_folder("busy0", "other");
    let last = ("refs/heads/last".to_owned(), in_folder("busy1", "last"));
    let free: Vec<_> = (21..29)
        .map(|ip| {
            let git = ngit_adapter::relay::SmartHttp::folder(
                crate::support_server::installed_git(),
                dir.path(),
            );
            let router = git.with_log(log.clone()).into_router();
            TestServer::start_with(&format!("127.0.0.{ip}"), router, log.clone())
        })
        .collect();
    let mut urls: Vec<_> = (0..2).map(|it| busy.url(&format!("busy{it}/x.git"))).collect();
    urls.extend(free.iter().enumerate().map(|(it, server)| server.url(&format!("free{it}/x.git"))));

    // One request of another repository takes all the capacity of the busy domain.
    let relay = RelayProcess::start_with(&[QUICK, "--sync-domain-concurrent=1"], &[]);
    let mut client = Client::connect(&relay).await;
    let hog = announcement_on(&[&relay], &owner, "hog", &[busy.url("hog/x.git")], 0);
    hold(&mut client, &[&hog]).await;
    let never = Oid::sha1([1; 20]);
    hold(&mut client, &[&owner.state("hog", &[("refs/heads/main", never)])]).await;
    until("the domain is busy", || gate.names() == ["hog"]).await;

    let state = |identifier: &str, refs: &[(String, Oid)]| {
        let refs: Vec<_> = refs.iter().map(|(name, oid)| (name.as_str(), *oid)).collect();
        owner.state(identifier, &refs)
    };
    let announced = |identifier| announcement_on(&[&relay], &owner, identifier, &urls, 0);
    let eight: Vec<_> = (0..8).map(|it| format!("/free{it}/x.git")).collect();
    let enough = state("enough", &refs);
    hold(&mut client, &[&announced("enough"), &enough]).await;
    until_served(&mut client, &[&enough]).await;
    assert_eq!(asked(&log), eight);

    refs.push(last);
    let more = state("more", &refs);
    hold(&mut client, &[&announced("more"), &more]).await;
    until("the others were asked", || asked(&log).len() == 16).await;
    assert_eq!(asked(&log)[8..], eight);
    assert!(!is_served(&mut client, &more).await);
    assert_eq!(gate.names(), ["hog"]);
    gate.open();
    until_served(&mut client, &[&more]).await;
    let asked = asked(&log).split_off(16);
    let of_it: Vec<_> = asked.iter().filter(|path| path.starts_with("/busy")).collect();
    assert_eq!(of_it, ["/busy0/x.git", "/busy1/x.git"], "{asked:?}");
}
