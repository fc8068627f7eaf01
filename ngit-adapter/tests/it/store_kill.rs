//! R8, end to end: `ngit-purgatory sync` is killed at random moments, again and again, on one folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use ngit_adapter::nip34::State;
use nostr::{
    event::{Event, EventId},
    filter::Filter,
};
use nostr_database::NostrDatabase;
use nostr_lmdb::NostrLmdb;
use tempfile::TempDir;

use crate::{
    e2e_support::Random,
    support::TestRepo,
    support_events::{Person, lines},
    support_program::{PROGRAM, Ran, SyncRun},
    support_server::TestServer,
};

/// How often it is killed: five times, or as often as `NGIT_TEST_KILLS` says.
fn kills() -> usize {
    std::env::var("NGIT_TEST_KILLS").map_or(5, |kills| kills.parse().expect("a number"))
}

/// Repositories on five hosts, with an announcement, a state and two pull requests each.
struct World {
    _servers: Vec<TestServer>,
    owner: Person,
    /// Per repository: its events, and the commit of its state.
    repositories: Vec<(String, Vec<Event>, purgatory_sync::Oid)>,
}

impl World {
    fn new(served: &Path, repositories: usize) -> Self {
        let servers: Vec<_> =
            (1..=5).map(|it| TestServer::start(&format!("127.0.0.{it}"), served)).collect();
        let owner = Person::new(1);
        let make = |number: usize| {
            let name = format!("repo-{number}");
            let repo = TestRepo::init(served.join(format!("{name}.git")));
            let main = repo.commits("main", 3);
            let url = servers[number % servers.len()].url(&format!("{name}.git"));
            let mut events = vec![owner.announcement(&name, &[&url])];
            events.push(owner.state(&name, &[("refs/heads/main", main[2])]));
            for contributor in [2, 3] {
                let branch = format!("c{contributor}");
                repo.set_branch(&branch, main[1]);
                let tip = repo.commit(&branch, "change.txt", &format!("{name} {branch}"));
                events.push(Person::new(contributor).pull_request(&owner, &name, tip, &[]));
            }
            (name, events, main[2])
        };
        let repositories = (0..repositories).map(make).collect();
        Self { _servers: servers, owner, repositories }
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        self.repositories.iter().flat_map(|(_, events, _)| events)
    }
}

fn start(sync: &SyncRun) -> Child {
    let mut command = sync.command(Path::new(PROGRAM));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the program can be started")
}

/// The ids of the events that a journal says were taken, whether or not they went since.
fn taken(journal: &Path) -> BTreeSet<EventId> {
    let text = fs::read_to_string(journal).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let held = whole.lines().filter_map(|line| line.split_once(" held "));
    let jsons = held.filter_map(|(_, rest)| rest.find('{').map(|at| &rest[at..]));
    jsons.map(|json| serde_json::from_str::<Event>(json).expect("an event").id).collect()
}

/// What is served, of which everything must be true at every moment.
async fn served(folder: &Path, sync: &SyncRun, owner: &Person) -> BTreeMap<EventId, Event> {
    let database = NostrLmdb::open(folder.join("events")).await.expect("a killed database opens");
    let events = database.query(Filter::new()).await.expect("it can be read");
    for event in events.iter().filter(|event| event.kind.as_u16() == 30618) {
        let state = State::from_tags(&event.tags).expect("a state");
        let repo = TestRepo::open(sync.repository(&owner.npub(), state.identifier.as_str()));
        // Nothing is released without its data, and refs and served states agree.
        for (name, oid) in &state.refs.refs {
            assert_eq!(repo.ref_oid(name.as_str()), Some(*oid));
            assert!(repo.is_complete(*oid));
        }
    }
    events.into_iter().map(|event| (event.id, event)).collect()
}

/// R8: the next run goes on; nothing that was accepted is lost, nothing is released without its data, refs and
/// served states agree.
#[test]
fn a_sync_that_is_killed_again_and_again_loses_nothing() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = TempDir::new().expect("a temporary folder");
    let world = World::new(folder.path(), 10);
    let killed = SyncRun::new("").arg("--events=-");
    let database = killed.git_data_dir().join("database");
    let mut random = Random::new(8);
    let mut ever_taken = BTreeSet::new();
    let all: Vec<&Event> = world.events().collect();
    for kill in 0..kills() {
        let mut child = start(&killed);
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        // A few of the events, in any order, and the input does not end.
        let some = (0..8).map(|_| {
            let count = u64::try_from(all.len()).expect("few events");
            all[usize::try_from(random.below(count)).expect("few events")]
        });
        stdin.write_all(lines(some.collect::<Vec<_>>()).as_bytes()).expect("the program reads");
        // The moment is random; nothing waits for anything by it.
        thread::sleep(Duration::from_millis(random.below(1_200)));
        child.kill().expect("it runs");
        child.wait().expect("it was started");
        ever_taken.append(&mut taken(&database.join("held")));
        if kill % 8 == 0 && database.join("events").exists() {
            runtime.block_on(served(&database, &killed, &world.owner));
        }
    }

    assert!(!ever_taken.is_empty(), "it was always killed too early");

    // Without any input the next run goes on with what is held, until nothing is.
    let ran = finish(&killed);
    assert!(matches!(ran.status, Some(0 | 3)), "{ran:?}");
    let stored = runtime.block_on(served(&database, &killed, &world.owner));
    let held: BTreeSet<String> = ran.texts("held", "id").into_iter().collect();
    for id in &ever_taken {
        let waits_for_its_announcement = held.contains(&id.to_hex())
            || all.iter().any(|event| event.id == *id && event.kind.as_u16() == 30617);
        assert!(stored.contains_key(id) || waits_for_its_announcement, "{id} is lost");
    }

    // With all events once more, all is as if nothing had happened.
    let mut child = start_with_output(&killed);
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin.write_all(lines(world.events()).as_bytes()).expect("the program reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let ran = Ran::new(output, Duration::ZERO);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let stored = runtime.block_on(served(&database, &killed, &world.owner));
    assert!(world.events().all(|event| stored.contains_key(&event.id)));
    for (name, _, main) in &world.repositories {
        let repo = TestRepo::open(killed.repository(&world.owner.npub(), name));
        assert_eq!(repo.ref_oid("main"), Some(*main));
    }
}

fn start_with_output(sync: &SyncRun) -> Child {
    let mut command = sync.command(Path::new(PROGRAM));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program can be started")
}

fn finish(sync: &SyncRun) -> Ran {
    let mut child = start_with_output(sync);
    drop(child.stdin.take());
    Ran::new(child.wait_with_output().expect("it ends"), Duration::ZERO)
}
