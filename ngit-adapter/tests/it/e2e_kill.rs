//! R8, end to end: a relay that clients write to, push to, and that hears from another relay, is killed at random moments,
//! again and again, on one folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use ngit_adapter::nip34::{GitEvent, State};
use nostr::event::{Event, EventId, Kind};
use purgatory_sync::Oid;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    e2e_support::Random,
    serve_support::{Client, PATIENCE, RelayProcess, assert_pushed, clone, push, state_at, stderr},
    support::TestRepo,
    support_events::{Person, SOME_TIME},
    support_server::TestServer,
};

/// How often it is killed: five times, or as often as `NGIT_TEST_KILLS` says.
fn kills() -> u64 {
    number("NGIT_TEST_KILLS", 5)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Says how a failure is run again.
struct Replay {
    seed: u64,
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (seed, kills) = (self.seed, kills());
            eprintln!(
                "run it again with: NGIT_TEST_SEED={seed} NGIT_TEST_KILLS={kills} \
                 cargo test -p ngit-adapter --test it e2e_kill"
            );
        }
    }
}

/// The name of the relay that is killed: its port is another one each time.
const NAME: &str = "relay.example.org";
/// It hunts at once, and reads as fast as it can.
const ARGS: [&str; 5] = [
    "--domain=relay.example.org",
    "--sync-default-delay-secs=1",
    "--sync-immediate-delay-ms=50",
    "--sync-loop-interval-ms=50",
    "--max-events-per-minute=1000000",
];

/// A repository and what there is to be known of it.
struct Project {
    name: String,
    /// What clients send. Of its states the newest is last.
    events: Vec<Event>,
    /// What `main` is at, by the first state and by the second.
    mains: [Oid; 2],
    /// Where its data is: to be fetched from a git server, or to be pushed.
    source: TestRepo,
    is_pushed: bool,
}

/// What is sent to the relay while it lives: some repositories on git servers, some with a contributor who pushes, and some on
/// another relay.
struct World {
    _servers: Vec<TestServer>,
    other: RelayProcess,
    owner: Person,
    projects: Vec<Project>,
    /// What the other relay serves.
    elsewhere: Vec<Event>,
    _folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let ips = ["127.0.0.41", "127.0.0.42", "127.0.0.43"];
        let servers = ips.map(|ip| TestServer::start(ip, folder.path()));
        let (owner, other) = (Person::new(1), RelayProcess::start());
        let project = |number: usize| {
            let is_pushed = number.is_multiple_of(3);
            let url = servers[number % servers.len()].url(&format!("repo-{number}.git"));
            let urls = if is_pushed { vec![] } else { vec![url] };
            Project::new(folder.path(), &owner, number, &urls, is_pushed)
        };
        let projects = (0..9).map(project).collect();
        let mut world = Self {
            _servers: servers.into(),
            other,
            owner,
            projects,
            elsewhere: vec![],
            _folder: folder,
        };
        world.fill_the_other_relay().await;
        world
    }

    /// Repositories that only the other relay is told of.
    async fn fill_the_other_relay(&mut self) {
        let mut client = Client::connect(&self.other).await;
        for number in 20..24 {
            let name = format!("repo-{number}");
            let there = self.other.repository_url(&self.owner, &name);
            let folder = self._folder.path();
            let mut project =
                Project::new(folder, &self.owner, number, std::slice::from_ref(&there), false);
            project.announce(
                &self.owner,
                std::slice::from_ref(&there),
                &[NAME, &self.other.address().to_string()],
            );
            for event in &project.events {
                let (taken, why) = client.publish(event).await;
                assert!(taken, "{why}");
            }
            let mut refs = vec!["main".to_owned()];
            for event in project.events.iter().filter(|event| event.kind.as_u16() == 1618) {
                let tip = tip(event);
                refs.push(format!("{tip}:refs/nostr/{}", event.id.to_hex()));
            }
            let refs: Vec<_> = refs.iter().map(String::as_str).collect();
            assert_pushed(&push(&project.source, &there, &refs));
            // The first state was replaced by the second.
            self.elsewhere
                .extend(project.events.iter().filter(|it| it.id != project.events[1].id).cloned());
        }
        until_served(&mut client, &self.elsewhere).await;
    }

    fn events(&self) -> Vec<Event> {
        self.projects.iter().flat_map(|project| &project.events).cloned().collect()
    }
}

fn tip(event: &Event) -> Oid {
    match GitEvent::read(event) {
        Ok(GitEvent::PullRequest(it)) => it.proposal.tip,
        other => panic!("no pull request: {other:?}"),
    }
}

impl Project {
    fn new(folder: &Path, owner: &Person, number: usize, urls: &[String], is_pushed: bool) -> Self {
        let name = format!("repo-{number}");
        let source = TestRepo::init(folder.join(format!("{name}.git")));
        // So that no two repositories have the same commits.
        let first = source.commit("main", "name.txt", &name);
        let change = source.commits("main", 2)[1];
        source.set_branch("change", first);
        let tips =
            ["1", "2"].map(|text| source.commit("change", "change.txt", &format!("{name} {text}")));
        let mains = [first, change];
        let state = |later, at| state_at(owner, &name, later, &[("refs/heads/main", at)]);
        let mut events = vec![state(0, mains[0]), state(1, mains[1])];
        let author = Person::new(2);
        events.extend(tips.map(|tip| author.pull_request(owner, &name, tip, &[])));
        let a = format!("30617:{}:{name}", owner.key().to_hex());
        events.push(author.sign(Kind::GitPatch, SOME_TIME, &[["a", &a]]));
        let mut project = Self { name, events, mains, source, is_pushed };
        project.announce(owner, urls, &[NAME]);
        project
    }

    /// Announces it at the relays of these names, and at these URLs.
    fn announce(&mut self, owner: &Person, urls: &[String], relays: &[&str]) {
        let path =
            ngit_adapter::RepositoryId::new(owner.key(), self.name.as_str().into()).url_path();
        let mut clone = vec!["clone".to_owned(), format!("http://{NAME}{path}")];
        clone.extend(urls.iter().cloned());
        let mut of = vec!["relays".to_owned()];
        of.extend(relays.iter().map(|name| format!("ws://{name}")));
        let tags = [vec!["d".to_owned(), self.name.clone()], clone, of];
        let announcement = owner.sign(Kind::GitRepoAnnouncement, SOME_TIME, &tags);
        self.events.retain(|event| event.kind != Kind::GitRepoAnnouncement);
        self.events.insert(0, announcement);
    }

    fn refs_of_pull_requests(&self) -> Vec<String> {
        let pulls = self.events.iter().filter(|event| event.kind.as_u16() == 1618);
        pulls.map(|event| format!("{}:refs/nostr/{}", tip(event), event.id.to_hex())).collect()
    }

    /// Pushes what the events say.
    fn push(&self, url: &str, random: &mut Random) -> Option<(String, Oid)> {
        let at = *random.pick(&self.mains);
        let pushed = push(&self.source, url, &[&format!("{at}:refs/heads/main")]);
        pushed.status.success().then(|| (self.name.clone(), at))
    }
}

/// What was acknowledged before a kill.
#[derive(Default)]
struct Seen {
    events: BTreeSet<EventId>,
    pushes: BTreeSet<(String, Oid)>,
}

/// Sends events until the relay is gone, and gives the ids of those that were taken.
async fn send(mut client: Client, events: Vec<Event>, mut random: Random) -> BTreeSet<EventId> {
    let mut taken = BTreeSet::new();
    loop {
        let event = random.pick(&events);
        match client.try_publish(event).await {
            Some((true, _)) => drop(taken.insert(event.id)),
            // An older state, or a patch of what is not known yet.
            Some((false, why)) => {
                assert!(why.starts_with("replaced: ") || why.starts_with("blocked: "), "{why}");
            }
            None => return taken,
        }
    }
}

/// Pushes until the relay is gone, and gives what was accepted.
fn push_on(
    world: &World,
    relay_url: &str,
    gone: &AtomicBool,
    mut random: Random,
) -> BTreeSet<(String, Oid)> {
    let projects: Vec<_> = world.projects.iter().filter(|project| project.is_pushed).collect();
    let mut pushed = BTreeSet::new();
    while !gone.load(Ordering::Relaxed) {
        let project = random.pick(&projects);
        let id = ngit_adapter::RepositoryId::new(world.owner.key(), project.name.as_str().into());
        pushed.extend(project.push(&format!("{relay_url}{}", id.url_path()), &mut random));
    }
    pushed
}

/// Lets it live for a while, with clients and a contributor at it, and kills it.
async fn live_and_die(
    world: &World,
    dir: TempDir,
    random: &mut Random,
    seen: &mut Seen,
) -> TempDir {
    let args = args(world);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    // One in five is killed while it opens.
    if random.below(5) == 0 {
        let life = Duration::from_millis(random.below(300));
        tokio::task::block_in_place(|| RelayProcess::killed_after(&dir, &args, life));
        return dir;
    }
    let relay = RelayProcess::start_in(dir, &args, &[]);
    let clients: Vec<_> = {
        let mut clients = Vec::new();
        for _ in 0..3 {
            let random = Random::new(random.below(u64::from(u32::MAX)));
            let client = Client::connect(&relay).await;
            clients.push(tokio::spawn(send(client, world.events(), random)));
        }
        clients
    };
    let (url, gone) = (relay.http(""), AtomicBool::new(false));
    let life = Duration::from_millis(random.below(2_000));
    let pushes = Random::new(random.below(u64::from(u32::MAX)));
    let dir = std::thread::scope(|scope| {
        let pushing = scope.spawn(|| push_on(world, &url, &gone, pushes));
        // The moment is random; nothing waits for anything by it.
        std::thread::sleep(life);
        let dir = relay.into_dir();
        gone.store(true, Ordering::Relaxed);
        seen.pushes.extend(pushing.join().expect("pushing does not panic"));
        dir
    });
    for client in clients {
        seen.events.extend(client.await.expect("a client does not panic"));
    }
    dir
}

fn args(world: &World) -> Vec<String> {
    let bootstrap = format!("--bootstrap-relay-url={}", world.other.websocket());
    ARGS.iter().map(|arg| (*arg).to_owned()).chain([bootstrap]).collect()
}

/// Everything that is served, by id. Each has its data here, and can be cloned.
async fn served(relay: &RelayProcess, world: &World) -> BTreeMap<String, Event> {
    let mut client = Client::connect(relay).await;
    client.send(&json!(["REQ", "all", {}])).await;
    let mut all = BTreeMap::new();
    loop {
        let said = client.expect().await;
        if said[0] == "EOSE" {
            break;
        }
        let event: Event = serde_json::from_value(said[2].clone()).expect("an event");
        all.insert(event.id.to_hex(), event);
    }
    for event in all.values() {
        match event.kind.as_u16() {
            30_617 => {
                let read = GitEvent::read(event).expect("it was taken");
                let name = read.identifier().expect("an announcement has one");
                let here = relay.repository(&world.owner, name.as_str());
                assert!(!here.refs().is_empty(), "{name} is announced and has no data");
            }
            30_618 => {
                let state = State::from_tags(&event.tags).expect("it was taken");
                let here = relay.repository(&world.owner, state.identifier.as_str());
                for (name, oid) in &state.refs.refs {
                    assert!(here.is_complete(*oid), "{} has not {oid}", state.identifier);
                    // A newer state may move it at this moment.
                    assert!(here.ref_oid(name.as_str()).is_some());
                }
            }
            1_618 => {
                let GitEvent::PullRequest(it) = GitEvent::read(event).expect("it was taken") else {
                    panic!("no pull request")
                };
                let identifier = &it.proposal.repositories[0];
                let here = relay.repository(&world.owner, identifier.identifier.as_str());
                let name = format!("refs/nostr/{}", event.id.to_hex());
                assert_eq!(here.ref_oid(&name), Some(it.proposal.tip));
                assert!(here.is_complete(it.proposal.tip));
            }
            _ => {}
        }
    }
    all
}

/// Looks until all of these are served.
async fn until_served(client: &mut Client, events: &[Event]) {
    let begun = Instant::now();
    let ids: Vec<_> = events.iter().map(|event| event.id.to_hex()).collect();
    loop {
        let served = client.served(json!({"ids": ids})).await;
        if served.len() == ids.len() {
            return;
        }
        let missing: Vec<_> =
            events.iter().filter(|it| !served.contains(&it.id.to_hex())).collect();
        assert!(begun.elapsed() < 2 * PATIENCE, "not served: {missing:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// R8, R2, R9: whatever a client saw acknowledged is held or served after any number of kills, nothing is served
/// without its data, an accepted push stays, and what the other relay serves comes in the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_is_killed_again_and_again_loses_nothing_that_it_acknowledged() {
    let seed = number("NGIT_TEST_SEED", 10);
    let (_replay, mut random) = (Replay { seed }, Random::new(seed));
    let world = World::new().await;
    let mut seen = Seen::default();
    let mut dir = TempDir::new().expect("a temporary folder");
    for kill in 0..kills() {
        dir = live_and_die(&world, dir, &mut random, &mut seen).await;
        if kill % 8 == 4 {
            let relay = start(&world, dir);
            served(&relay, &world).await;
            dir = relay.into_dir();
        }
    }
    assert!(!seen.events.is_empty(), "it was always killed too early");

    // At once after the last kill, before anything is sent again.
    let relay = start(&world, dir);
    let served_now = served(&relay, &world).await;
    let mut client = Client::connect(&relay).await;
    let all = world.events();
    for event in all.iter().filter(|event| seen.events.contains(&event.id)) {
        let (taken, said) = client.publish(event).await;
        // Of two states the newer one stands.
        let is_replaced = !taken && said.starts_with("replaced: ");
        assert!(
            is_replaced || said.starts_with("duplicate: "),
            "it was taken and is lost: {said}, {event:?}, served: {}",
            served_now.contains_key(&event.id.to_hex())
        );
    }
    for (name, oid) in &seen.pushes {
        let here = relay.repository(&world.owner, name);
        assert!(here.is_complete(*oid), "a push of {oid} to {name} is lost");
    }

    // With all events and all data, all is as if nothing had happened.
    for event in &all {
        client.publish(event).await;
    }
    for project in world.projects.iter().filter(|project| project.is_pushed) {
        let url = relay.repository_url(&world.owner, &project.name);
        let refs = project.refs_of_pull_requests();
        let refs: Vec<_> = refs.iter().map(String::as_str).chain(["main"]).collect();
        assert_pushed(&push(&project.source, &url, &refs));
    }
    let mut last: Vec<_> = all.into_iter().collect();
    let first_states: Vec<_> = world.projects.iter().map(|project| project.events[1].id).collect();
    last.retain(|event| !first_states.contains(&event.id));
    last.extend(world.elsewhere.iter().cloned());
    until_served(&mut client, &last).await;
    served(&relay, &world).await;
    for project in &world.projects {
        let to = TempDir::new().expect("a temporary folder");
        let at = to.path().join("clone.git");
        let cloned = clone(&relay.repository_url(&world.owner, &project.name), &at, &[]);
        assert!(cloned.status.success(), "{}", stderr(&cloned));
        assert_eq!(TestRepo::open(at).ref_oid("main"), Some(project.mains[1]));
    }
}

fn start(world: &World, dir: TempDir) -> RelayProcess {
    let args = args(world);
    RelayProcess::start_in(dir, &args.iter().map(String::as_str).collect::<Vec<_>>(), &[])
}
