//! P4, P5, P7, P14: which sources are asked, in which order, and how often.

use std::collections::HashSet;

use purgatory_sync::{FetchErrorKind, OurDomain, PassEnd, State, keyed_debounce::Outcome};

use crate::common::*;

fn strings(urls: &[&purgatory_sync::CloneUrl]) -> Vec<String> {
    urls.iter().map(|url| url.to_string()).collect()
}

/// P4: the order of the announcement first; then, in the next pass, the domain that last gave something.
#[tokio::test(start_paused = true)]
async fn the_domain_that_last_gave_something_comes_before_announcement_order() {
    let world = World::new();
    let all: Vec<_> = ["one", "two", "three"]
        .iter()
        .map(|host| url(&format!("https://{host}.example/a.git")))
        .collect();
    let [one, two, three] = [&all[0], &all[1], &all[2]];
    for server in &all {
        world.git.serve(server, []);
    }
    world.git.serve(three, [oid(1)]);
    world.announce("a", &[one, two, three]);
    world.state("a", "state", &[1, 2]);
    pass(secs(25)).await;
    let asked = world.git.asked();
    assert_eq!(asked[..3], strings(&[one, two, three]));
    assert_eq!(asked[3..], strings(&[three, one, two]));
}

/// P4: what the last pass did not reach comes first. With 100 URLs and 64 requests in a pass every URL
/// is asked within two passes, and none is starved over many.
#[tokio::test(start_paused = true)]
async fn urls_that_the_last_pass_did_not_reach_come_first() {
    let world = World::with(|config| config.with_urls_per_want(100).unwrap());
    let all: Vec<_> = (0..100).map(|n| url(&format!("https://host{n}.example/a.git"))).collect();
    for server in &all {
        world.git.serve(server, []);
    }
    world.announce("a", &all.iter().collect::<Vec<_>>());
    world.state("a", "state", &[1]);
    pass(secs(300)).await;
    let asked = world.git.asked();
    let first: HashSet<_> = asked[..64].iter().collect();
    assert_eq!(asked[..64], strings(&all[..64].iter().collect::<Vec<_>>()));
    assert_eq!(asked[64..100], strings(&all[64..].iter().collect::<Vec<_>>()));
    assert!(asked[100..128].iter().all(|url| first.contains(url)));
    // The third pass begins with what the second did not reach.
    assert_eq!(asked[128..164], strings(&all[28..64].iter().collect::<Vec<_>>()));
    assert_eq!(world.told.passes()[0].summary.why, PassEnd::FetchLimit);
    assert_eq!(world.told.passes()[0].summary.fetches, 64);
}

/// P4: a URL that was not needed, because all it could be asked for was found before, is not one that was not reached.
#[tokio::test(start_paused = true)]
async fn a_url_that_was_not_needed_does_not_come_first() {
    let world = World::new();
    let (one, two) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
    world.git.serve(&one, [oid(1), oid(2)]);
    world.git.serve(&two, [oid(1), oid(2)]);
    world.announce("a", &[&one, &two]);
    world.store.hold("a", HeldEvent::state("blocked", "main", [oid(9)]).blocked());
    world.state("a", "first", &[1]);
    pass(secs(2)).await;
    world.state("a", "second", &[2]);
    pass(secs(2)).await;
    assert_eq!(world.git.asked(), strings(&[&one, &one]));
}

/// P14: a pull request's own URLs are asked for its objects alone, after the announced ones.
#[tokio::test(start_paused = true)]
async fn a_pull_requests_own_urls_are_asked_last_and_only_for_it() {
    let world = World::new();
    let (announced, own) = (url("https://one.example/a.git"), url("https://fork.example/a.git"));
    world.git.serve(&announced, []);
    world.git.serve(&own, [oid(1), oid(2)]);
    world.announce("a", &[&announced]);
    world.store.hold("a", HeldEvent::pull_request("pr", "main", oid(2), [own.clone()]));
    world.state("a", "state", &[1]);
    pass(secs(2)).await;
    let fetches = world.git.fetches();
    assert_eq!(world.git.asked(), strings(&[&announced, &own]));
    assert_eq!(fetches[0].oids, [oid(1), oid(2)]);
    assert_eq!(fetches[1].oids, [oid(2)], "the state's object is not asked of a stranger's server");
    assert_eq!(world.store.released(), ["pr"]);
}

/// P14: hundreds of pull requests with URLs of their own do not keep the announced ones from being
/// asked first, in every pass.
#[tokio::test(start_paused = true)]
async fn many_pull_requests_do_not_push_the_owner_aside() {
    let world = World::new();
    let announced = url("https://one.example/a.git");
    world.git.serve(&announced, []);
    world.announce("a", &[&announced]);
    for number in 0..150 {
        let own = url(&format!("https://fork{number}.example/a.git"));
        let event = HeldEvent::pull_request(&number.to_string(), "main", oid(number), [own]);
        world.store.hold("a", event);
    }
    world.state("a", "state", &[999]);
    pass(secs(300)).await;
    let asked = world.git.asked();
    for pass in 0..4 {
        assert_eq!(asked[pass * 64], announced.to_string());
    }
    let forks: HashSet<_> = asked.iter().filter(|url| url.contains("fork")).collect();
    assert_eq!(forks.len(), 150, "and each of them had its turn");
}

/// And hundreds of announced URLs do not keep a pull request's own from being asked.
#[tokio::test(start_paused = true)]
async fn many_announced_urls_do_not_starve_a_pull_request() {
    let world = World::with(|config| config.with_urls_per_want(200).unwrap());
    let all: Vec<_> = (0..200).map(|n| url(&format!("https://host{n}.example/a.git"))).collect();
    let own = url("https://fork.example/a.git");
    world.git.serve(&own, [oid(1)]);
    world.announce("a", &all.iter().collect::<Vec<_>>());
    world.store.hold("a", HeldEvent::pull_request("pr", "main", oid(1), [own]));
    world.state("a", "state", &[2]);
    pass(secs(10)).await;
    assert_eq!(world.store.released(), ["pr"]);
}

/// P7: our own service is never asked: as a host, with any spelling, and with its port where it has one.
/// A name that only contains ours is asked.
#[tokio::test(start_paused = true)]
async fn our_own_service_is_never_asked() {
    let ours: Vec<OurDomain> = ["git.example.org", "10.0.0.1:8080", "[::1]:80"]
        .iter()
        .map(|our| our.parse().unwrap())
        .collect();
    let world = World::build(|config| config, |builder| builder.our_domains(ours));
    let never = [
        "https://git.example.org/a.git",
        "https://GIT.Example.ORG.:8443/a.git",
        "http://git.example.org:80/a.git",
        "http://10.0.0.1:8080/a.git",
        "http://0xa.1:8080/a.git",
        "http://[::1]/a.git",
    ]
    .map(url);
    let asked = [
        "https://notgit.example.org/a.git",
        "https://git.example.org.evil.example/a.git",
        "https://mirror.example/git.example.org/a.git",
        "http://10.0.0.1:8081/a.git",
        "https://10.0.0.1/a.git",
        "http://[::1]:81/a.git",
    ]
    .map(url);
    let all: Vec<_> = never.iter().chain(&asked).collect();
    world.announce("a", &all);
    let pr = HeldEvent::pull_request("pr", "main", oid(2), [never[0].clone(), asked[0].clone()]);
    world.store.hold("a", pr);
    world.state("a", "state", &[1]);
    pass(secs(10)).await;
    let mut expected = strings(&asked.iter().collect::<Vec<_>>());
    let mut got = world.git.asked();
    expected.sort();
    got.sort();
    assert_eq!(got, expected);
}

/// P7: with no source but ourselves nothing is asked, and no source is left.
#[tokio::test(start_paused = true)]
async fn with_no_source_but_ourselves_no_source_is_left() {
    let ours: OurDomain = "git.example.org".parse().unwrap();
    let world = World::build(|config| config, |builder| builder.our_domains([ours]));
    world.announce("a", &[&url("https://git.example.org/a.git")]);
    world.state("a", "state", &[1]);
    pass(secs(2)).await;
    assert!(world.git.asked().is_empty());
    assert!(world.sync.snapshot().no_source_left());
}

/// P5: each URL is asked once in a pass for the same object; `ask_again` belongs to the same try, is
/// another request (P11), and goes on as long as it shrinks.
#[tokio::test(start_paused = true)]
async fn asking_again_goes_on_as_long_as_it_shrinks() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1)]);
    for last in [4, 3, 2] {
        world.git.script(&server, Reply::AskAgain((2..=last).map(oid).collect()));
    }
    world.announce("a", &[&server]);
    world.state("a", "state", &[1, 2, 3, 4, 5]);
    pass(secs(5)).await;
    let asked: Vec<usize> = world.git.fetches().iter().map(|fetch| fetch.oids.len()).collect();
    assert_eq!(asked, [5, 3, 2, 1]);
    assert!(world.sync.snapshot().no_source_left(), "and then all is answered");
}

/// P5: a fetcher that wants the same again, more, or what it was not asked for, does not get it.
#[tokio::test(start_paused = true)]
async fn asking_again_for_as_much_or_for_something_else_ends() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, []);
    world.git.always(&server, Reply::AskAgain((0..100).map(oid).collect()));
    world.announce("a", &[&server]);
    world.state("a", "state", &[1, 2, 3]);
    pass(secs(5)).await;
    assert_eq!(world.git.fetches().len(), 1);
    let other = url("https://two.example/a.git");
    world.git.serve(&other, []);
    world.git.always(&other, Reply::AskAgain(vec![oid(77), oid(78)]));
    world.announce("b", &[&other]);
    world.state("b", "other", &[4]);
    pass(secs(5)).await;
    assert_eq!(world.git.fetches().len(), 2);
}

/// P4: what answers `Paused` is not waited for. With nothing asked the pass is deferred to the end of the pause,
/// which is no failure.
#[tokio::test(start_paused = true)]
async fn a_paused_source_is_not_waited_for() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1)]);
    world.git.script(&server, Reply::RetryAfter(secs(50)));
    world.announce("a", &[&server]);
    world.state("a", "state", &[1]);
    pass(secs(21)).await;
    // The first pass asked and failed; the second, 20 s later, found nothing but a pause.
    let passes = world.told.passes();
    assert_eq!(passes[0].outcome, Outcome::Retry);
    assert!(matches!(passes[1].summary.why, PassEnd::Paused { .. }));
    assert_eq!(passes[1].outcome, Outcome::Defer(secs(30)));
    assert!(matches!(world.state_of("a"), Some(State::Paused { .. })));
    assert!(!world.sync.snapshot().no_source_left());
    world.idle().await;
    assert_eq!(world.fetch_times(), [500, 50_500]);
    assert_eq!(world.told.passes()[2].attempt, 2, "the wait was no failure");
}

/// P10: a pause of hours is looked at every 120 s, so that a new source is not held up by it.
#[tokio::test(start_paused = true)]
async fn a_long_pause_defers_by_two_minutes_at_most() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1)]);
    world.git.script(&server, Reply::RetryAfter(secs(7_200)));
    world.announce("a", &[&server]);
    world.state("a", "state", &[1]);
    pass(secs(60)).await;
    assert_eq!(world.told.passes()[1].outcome, Outcome::Defer(secs(120)));
    let free = url("https://two.example/a.git");
    world.git.serve(&free, [oid(1)]);
    world.announce("a", &[&server, &free]);
    world.idle().await;
    assert_eq!(world.git.asked().last().unwrap(), free.as_str());
}

/// P10: a pass that asked something and then found the rest paused is a failure like any other.
#[tokio::test(start_paused = true)]
async fn a_pass_that_asked_and_then_met_a_pause_is_a_retry() {
    let world = World::new();
    let (paused, free) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
    world.git.script(&paused, Reply::RetryAfter(secs(500)));
    world.git.serve(&free, []);
    world.announce("a", &[&paused, &free]);
    world.state("a", "state", &[1]);
    pass(secs(25)).await;
    let second = &world.told.passes()[1];
    assert_eq!(world.git.asked(), strings(&[&paused, &free, &free]));
    assert!(matches!(second.summary.why, PassEnd::Paused { .. }));
    assert_eq!(second.outcome, Outcome::Retry);
}

/// What ends hope and what does not: the classes that the end of the program `sync` depends on.
#[tokio::test(start_paused = true)]
async fn no_source_is_left_after_answers_that_stay() {
    use FetchErrorKind as K;
    let stays = [K::NotFound, K::Auth, K::Unsupported, K::Refused];
    let passes_by = [
        K::Network,
        K::Dns,
        K::Tls,
        K::Timeout,
        K::RateLimited,
        K::ServerError,
        K::TooLarge,
        K::Corrupt,
        K::Shallow,
        K::Local,
    ];
    for kind in stays.into_iter().chain(passes_by) {
        let world = World::new();
        let (one, two) = (url("https://one.example/a.git"), url("https://two.example/a.git"));
        world.git.always(&one, Reply::Fail(kind));
        world.git.serve(&two, []);
        world.announce("a", &[&one, &two]);
        world.state("a", "state", &[1]);
        pass(secs(2)).await;
        let no_source_left = world.sync.snapshot().no_source_left();
        assert_eq!(no_source_left, stays.contains(&kind), "after {kind:?}");
        world.sync.event_held("a", purgatory_sync::Arrival::Submitted).unwrap();
        assert!(!world.sync.snapshot().no_source_left(), "something waits for its time");
    }
}
