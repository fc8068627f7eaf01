//! Each of the five settings, by flag and by environment, and what is refused.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, extract::Request, middleware::Next};
use ngit_adapter::relay::{RequestLog, SmartHttp};
use tempfile::TempDir;

use crate::{
    serve_support::{Client, RelayProcess, until},
    support::TestRepo,
    support_events::Person,
    support_program::{PROGRAM, SyncRun, clean_command},
    support_server::{TestServer, installed_git},
};

const SETTINGS: [(&str, &str); 5] = [
    ("--sync-loop-interval-ms", "NGIT_SYNC_LOOP_INTERVAL_MS"),
    ("--sync-domain-concurrent", "NGIT_SYNC_DOMAIN_CONCURRENT"),
    ("--sync-domain-rate-limit", "NGIT_SYNC_DOMAIN_RATE_LIMIT"),
    ("--sync-default-delay-secs", "NGIT_SYNC_DEFAULT_DELAY_SECS"),
    ("--sync-immediate-delay-ms", "NGIT_SYNC_IMMEDIATE_DELAY_MS"),
];

/// P12: zero is refused, by flag and by environment, with what is allowed; the help lists every setting by both names.
#[test]
fn a_wrong_value_is_refused_with_what_is_allowed() {
    let run = |args: &[&str], environment: &[(&str, &str)]| {
        let mut command = clean_command(Path::new(PROGRAM));
        command.arg("serve").args(args).envs(environment.iter().copied());
        let output = command.output().expect("the program can be started");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let limits = [
        ("--max-connections", "NGIT_MAX_CONNECTIONS"),
        ("--max-subscriptions", "NGIT_MAX_SUBSCRIPTIONS"),
        ("--max-messages-per-minute", "NGIT_MAX_MESSAGES_PER_MINUTE"),
        ("--max-events-per-minute", "NGIT_MAX_EVENTS_PER_MINUTE"),
        ("--max-event-bytes", "NGIT_MAX_EVENT_BYTES"),
        ("--max-pack-bytes", "NGIT_MAX_PACK_BYTES"),
        ("--hold-secs", "NGIT_HOLD_SECS"),
        ("--hold-pushed-secs", "NGIT_HOLD_PUSHED_SECS"),
    ];
    for (flag, variable) in SETTINGS.into_iter().chain(limits) {
        for said in [run(&[&format!("{flag}=0")], &[]), run(&[], &[(variable, "0")])] {
            assert_eq!(said.0, Some(2), "{flag}: {said:?}");
            let allowed = said.1.contains("from 1 to") || said.1.contains("1..");
            assert!(allowed && said.1.contains(flag), "{flag}: {said:?}");
        }
    }
    let others = [
        ("--bind-address", "NGIT_BIND_ADDRESS", "x"),
        ("--domain", "NGIT_DOMAIN", "https://x/"),
        ("--owner-npub", "NGIT_OWNER_NPUB", "nsec1x"),
        ("--database-backend", "NGIT_DATABASE_BACKEND", "sqlite"),
        ("--allow-private-networks", "NGIT_ALLOW_PRIVATE_NETWORKS", "perhaps"),
        ("--log-format", "NGIT_LOG_FORMAT", "xml"),
    ];
    for (flag, variable, wrong) in others {
        let said = run(&[], &[(variable, wrong)]);
        assert!(said.0 == Some(2) && said.1.contains(flag), "{variable}: {said:?}");
    }
    let said = run(&["--database-backend=sqlite"], &[]);
    assert!(said.1.contains("lmdb") && said.1.contains("memory"), "{said:?}");
    let said = run(&["--bind-address=localhost:8080"], &[]);
    assert!(said.1.contains("like 127.0.0.1:8080"), "{said:?}");
    let said = run(&[], &[("NGIT_ALLOW_PRIVATE_NETWORKS", "perhaps")]);
    assert!(said.1.contains("true or false"), "{said:?}");
    let help = clean_command(Path::new(PROGRAM)).args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let names = others.iter().map(|it| (it.0, it.1)).chain(SETTINGS).chain(limits);
    for (flag, variable) in names.chain([
        ("--git-data-path", "NGIT_GIT_DATA_PATH"),
        ("--relay-data-path", "NGIT_RELAY_DATA_PATH"),
    ]) {
        assert!(help.contains(flag) && help.contains(variable), "{flag}");
    }
}

/// The relay with one setting by flag, and with it by environment.
fn both_ways(name: (&str, &str), value: &str, others: &[&str]) -> [RelayProcess; 2] {
    let flag = format!("{}={value}", name.0);
    let mut by_flag = others.to_vec();
    by_flag.push(&flag);
    [RelayProcess::start_with(&by_flag, &[]), RelayProcess::start_with(others, &[(name.1, value)])]
}

/// Repositories `r0`, `r1`, ... on servers of ours, for events that a client sends.
struct World {
    _dir: TempDir,
    server: TestServer,
    tips: Vec<purgatory_sync::Oid>,
    most: Arc<AtomicUsize>,
}

impl World {
    /// With a server that takes this long for each answer.
    fn new(ip: &str, count: usize, slowness: Duration) -> Self {
        let dir = TempDir::new().unwrap();
        let tips = (0..count)
            .map(|number| {
                let repo = TestRepo::init(dir.path().join(format!("r{number}.git")));
                repo.commit("main", "a", &number.to_string())
            })
            .collect();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let log = RequestLog::default();
        let git =
            SmartHttp::folder(installed_git(), dir.path()).with_log(log.clone()).into_router();
        let seen = Arc::clone(&most);
        let slow = axum::middleware::from_fn(move |request: Request, next: Next| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&seen));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(slowness).await;
                let answer = next.run(request).await;
                now.fetch_sub(1, Ordering::SeqCst);
                answer
            }
        });
        let router = Router::new().fallback_service(git.layer(slow));
        Self { server: TestServer::start_with(ip, router, log), _dir: dir, tips, most }
    }

    /// Publishes the announcement and the state of a repository.
    async fn publish(&self, relay: &RelayProcess, client: &mut Client, number: usize) {
        let (owner, name) = (Person::new(1), format!("r{number}"));
        let url = self.server.url(&format!("{name}.git"));
        client.publish_held(&relay.announcement(&owner, &name, &[&url])).await;
        client.publish_held(&owner.state(&name, &[("refs/heads/main", self.tips[number])])).await;
    }

    fn fetches(&self) -> usize {
        usize::try_from(self.server.log().fetches()).unwrap()
    }
}

/// P12: the delay of submitted events decides when their data is looked for: 1 s and it comes, 180 s and it waits.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_delay_decides_when_submitted_events_are_hunted_for() {
    for relay in both_ways(SETTINGS[3], "1", &[]) {
        let world = World::new("127.0.0.2", 1, Duration::ZERO);
        let mut client = Client::connect(&relay).await;
        client.request("live", serde_json::json!({"kinds": [30618]})).await;
        world.publish(&relay, &mut client, 0).await;
        client.live("live").await;
        assert_eq!(world.fetches(), 1);
    }
    let (relay, world) = (RelayProcess::start(), World::new("127.0.0.2", 1, Duration::ZERO));
    let mut client = Client::connect(&relay).await;
    // The announcement is part of the burst: it starts no look before the 3 min are over either.
    world.publish(&relay, &mut client, 0).await;
    until("it waits for 3 min", || {
        relay.get("/").text().contains("next attempt within 2 min")
            || relay.get("/").text().contains("next attempt within 3 min")
    })
    .await;
    assert_eq!(world.fetches(), 0);
}

/// P12: rounds of starting begin at least the loop interval apart.
#[tokio::test(flavor = "multi_thread")]
async fn the_loop_interval_spaces_the_rounds() {
    for relay in both_ways(SETTINGS[0], "4000", &["--sync-default-delay-secs=1"]) {
        let world = World::new("127.0.0.2", 2, Duration::ZERO);
        let mut client = Client::connect(&relay).await;
        world.publish(&relay, &mut client, 0).await;
        until("the first is fetched", || world.fetches() == 1).await;
        let first = world.server.log().entries()[0].at;
        world.publish(&relay, &mut client, 1).await;
        until("the second is fetched", || world.fetches() == 2).await;
        let entries = world.server.log().entries();
        let second = entries.iter().find(|it| it.path.contains("r1")).unwrap().at;
        // The rounds of the announcements count as well; without the setting it would take 2 s at most.
        assert!(second - first >= Duration::from_millis(2_500), "{:?}", second - first);
    }
}

/// P12, L2: no more requests to one domain are on at once than the setting says.
#[tokio::test(flavor = "multi_thread")]
async fn the_concurrency_of_a_domain_is_limited() {
    let others = ["--sync-default-delay-secs=1", "--sync-loop-interval-ms=1"];
    let most = async |relay: RelayProcess, ip: &str| {
        let world = World::new(ip, 4, Duration::from_millis(700));
        let mut client = Client::connect(&relay).await;
        for number in 0..4 {
            world.publish(&relay, &mut client, number).await;
        }
        until("all are fetched", || world.fetches() == 4).await;
        world.most.load(Ordering::SeqCst)
    };
    for relay in both_ways(SETTINGS[1], "1", &others) {
        assert_eq!(most(relay, "127.0.0.2").await, 1);
    }
    assert!(most(RelayProcess::start_with(&others, &[]), "127.0.0.3").await > 1);
}

/// P12, L1: no more requests to one domain start in a minute than the setting says.
#[tokio::test(flavor = "multi_thread")]
async fn the_rate_of_a_domain_is_limited() {
    let others = ["--sync-default-delay-secs=1", "--sync-loop-interval-ms=1"];
    for relay in both_ways(SETTINGS[2], "2", &others) {
        let world = World::new("127.0.0.2", 3, Duration::ZERO);
        let mut client = Client::connect(&relay).await;
        for number in 0..3 {
            world.publish(&relay, &mut client, number).await;
        }
        until("one is in line, and the others have reached the server", || {
            let page = relay.get("/").text();
            page.contains("in line at 127.0.0.2") && page.contains("2 of 2") && world.fetches() >= 2
        })
        .await;
        assert_eq!(world.fetches(), 2);
    }
}

/// P12: the quiet time of events that came from elsewhere. `sync` takes its events as such.
#[test]
fn the_immediate_delay_decides_when_synced_events_are_hunted_for() {
    let world = World::new("127.0.0.2", 1, Duration::ZERO);
    let owner = Person::new(1);
    let events = crate::support_events::lines([
        &owner.announcement("r0", &[&world.server.url("r0.git")]),
        &owner.state("r0", &[("refs/heads/main", world.tips[0])]),
    ]);
    let took = |run: SyncRun| {
        let begun = Instant::now();
        let ran = run.run();
        assert_eq!(ran.status, Some(0), "{ran:?}");
        begun.elapsed()
    };
    let (flag, variable) = SETTINGS[4];
    let slow = Duration::from_millis(3_000);
    assert!(took(SyncRun::new(&events).arg(format!("{flag}=3000"))) >= slow);
    assert!(took(SyncRun::new(&events).env(variable, "3000")) >= slow);
    let fetched = world.server.log().entries();
    let begun = Instant::now();
    took(SyncRun::new(&events));
    let at = world.server.log().entries()[fetched.len()].at;
    assert!(at - begun < slow, "{:?}", at - begun);
}
