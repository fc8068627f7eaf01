//! Many refs, many callers, and processes that die.

use std::{
    collections::BTreeMap,
    env, fs,
    future::Future,
    io::{BufRead, BufReader},
    path::Path,
    pin::pin,
    process::{Child, Command, Stdio},
    task::Poll,
    time::Duration,
};

use ngit_adapter::{RefError, RefKeeper, StateRefs, git::Repositories, nostr::event::EventId};
use purgatory_sync::Oid;

use crate::{
    objects_folder::{Folder, adopt, give, pack_of, ref_name, repository, state},
    support::TestRepo,
};

/// Names the folder in which the other process works.
const CHILD_FOLDER: &str = "NGIT_TEST_CHILD_FOLDER";

/// A repository with these many commits and no refs.
async fn scene(commits: usize) -> (Folder, TestRepo, Vec<Oid>) {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", commits);
    let id = repository(0, "r");
    give(&folder, &source, &[commits[commits.len() - 1]], &id).await;
    let repo = folder.made(&id).await;
    (folder, repo, commits)
}

/// Refs of every depth, two of which differ in all values and many names.
fn many(commits: &[Oid], shift: usize) -> StateRefs {
    let mut state = StateRefs::default();
    for number in 0..1_000 {
        let name = match number % 4 {
            0 => format!("refs/heads/b{number}"),
            1 => format!("refs/heads/d{}/{}/b{number}", number % 7, number % 3),
            2 => format!("refs/tags/t{number}-{shift}"),
            _ if shift == 0 => format!("refs/heads/x{number}"),
            _ => format!("refs/heads/x{number}/below"),
        };
        state.refs.insert(ref_name(&name), commits[(number + shift) % commits.len()]);
    }
    state.head = Some(ref_name(if shift == 0 { "refs/heads/b0" } else { "refs/heads/b4" }));
    state
}

fn names(state: &StateRefs) -> BTreeMap<String, Oid> {
    state.refs.iter().map(|(name, oid)| (name.to_string(), *oid)).collect()
}

/// G9: 1,000 refs, moved to others and back, as git sees them.
#[tokio::test]
async fn a_thousand_refs_move_together() {
    let (folder, repo, commits) = scene(50).await;
    for shift in [0, 1, 0] {
        let state = many(&commits, shift);
        let applied = folder.repositories.apply_state(&repository(0, "r"), &state).await;
        applied.expect("the state can be applied");
        assert_eq!(repo.refs(), names(&state));
        assert_eq!(repo.head(), state.head.expect("it has one").as_str());
    }
    let leftovers = files_below(&repo.path().join("refs"));
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

/// G9: refs that somebody else's git left as files, packed, symbolic or broken end as the state says.
#[tokio::test]
async fn refs_of_every_kind_become_those_of_the_state() {
    let (folder, repo, commits) = scene(10).await;
    let set = |name: &str, oid: Oid| repo.git(["update-ref", name, &oid.to_string()]);
    set("refs/heads/packed", commits[1]);
    set("refs/heads/both", commits[1]);
    repo.git(["pack-refs", "--all"]);
    set("refs/heads/both", commits[2]);
    set("refs/heads/loose", commits[3]);
    set("refs/heads/same", commits[4]);
    set("refs/heads/folder/of/one", commits[4]);
    repo.git(["symbolic-ref", "refs/heads/symbolic", "refs/heads/loose"]);
    fs::write(repo.path().join("refs/heads/gone"), format!("{}\n", Oid::sha1([9; 20])))
        .expect("a ref to nothing");
    fs::create_dir_all(repo.path().join("refs/heads/empty/folder")).expect("an empty folder");
    set("refs/other/kept", commits[5]);
    let mut wanted = state([
        ("refs/heads/packed", commits[6]),
        ("refs/heads/both", commits[7]),
        ("refs/heads/same", commits[4]),
        ("refs/heads/symbolic", commits[8]),
        ("refs/heads/folder", commits[9]),
        ("refs/heads/empty", commits[9]),
        ("refs/heads/loose/below", commits[9]),
    ]);
    wanted.head = Some(ref_name("refs/heads/folder"));
    let applied = folder.repositories.apply_state(&repository(0, "r"), &wanted).await;
    applied.expect("the state can be applied");
    let mut expected = names(&wanted);
    expected.insert("refs/other/kept".to_owned(), commits[5]);
    assert_eq!(repo.refs(), expected);
    assert_eq!(repo.head(), "refs/heads/folder");
}

/// G9: names that the state has with a value that cannot be read stay as they are, there or not.
#[tokio::test]
async fn refs_that_a_state_leaves_alone_stay() {
    let (folder, repo, commits) = scene(10).await;
    let id = repository(0, "r");
    let first = state([("refs/heads/main", commits[1]), ("refs/heads/odd", commits[2])]);
    folder.repositories.apply_state(&id, &first).await.expect("the state can be applied");
    let mut second = state([("refs/heads/main", commits[3])]);
    second.left_alone = [ref_name("refs/heads/odd"), ref_name("refs/heads/never")].into();
    folder.repositories.apply_state(&id, &second).await.expect("the state can be applied");
    let mut expected = names(&second);
    expected.insert("refs/heads/odd".to_owned(), commits[2]);
    assert_eq!(repo.refs(), expected);
}

/// G9: HEAD goes where the state says only if there is such a branch.
#[tokio::test]
async fn head_names_a_branch_that_is_there() {
    let (folder, repo, commits) = scene(3).await;
    for head in ["refs/heads/gone", "refs/tags/t"] {
        let mut odd = state([("refs/heads/dev", commits[0]), ("refs/tags/t", commits[0])]);
        odd.head = Some(ref_name(head));
        let applied = folder.repositories.apply_state(&repository(0, "r"), &odd).await;
        applied.expect("the state can be applied");
        assert_eq!(repo.head(), "refs/heads/main");
    }
}

/// G9: two processes that apply states at once do not mix them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_that_come_at_once_do_not_mix() {
    let (folder, repo, commits) = scene(50).await;
    let id = repository(0, "r");
    let (here, there) = (folder.repositories.clone(), folder.reopened());
    let (one, two) = (many(&commits, 0), many(&commits, 1));
    for _ in 0..3 {
        let (a, b, c) = tokio::join!(
            here.apply_state(&id, &one),
            there.apply_state(&id, &two),
            here.apply_state(&id, &two),
        );
        a.and(b).and(c).expect("each can be applied");
        let seen = repo.refs();
        assert!(seen == names(&one) || seen == names(&two), "{} refs", seen.len());
    }
}

/// G9: who holds a repository keeps others out, also another process; a wait that is given up leaves no trace.
#[tokio::test]
async fn a_locked_repository_is_left_alone() {
    let (folder, repo, commits) = scene(3).await;
    let id = repository(0, "r");
    let other_process = folder.reopened();
    let state = state([("refs/heads/main", commits[2])]);
    for holder in [&folder.repositories, &other_process] {
        let lock = holder.lock(&id).await.expect("it is free");
        let applying = folder.repositories.apply_state(&id, &state);
        let waited = tokio::time::timeout(Duration::from_millis(100), applying).await;
        assert!(waited.is_err(), "it did not wait");
        let kept = folder.repositories.lock(&id);
        let mut kept = pin!(kept);
        assert!(std::future::poll_fn(|cx| Poll::Ready(kept.as_mut().poll(cx).is_pending())).await);
        assert!(repo.refs().is_empty());
        drop(lock);
        drop(kept.await.expect("it is free"));
    }
    folder.repositories.apply_state(&id, &state).await.expect("it is free");
    assert_eq!(repo.refs(), names(&state));
}

/// G9: another git's lock on a ref is waited for and never broken.
#[tokio::test]
async fn a_lock_of_another_git_is_respected() {
    let (folder, repo, commits) = scene(3).await;
    let id = repository(0, "r");
    let lock = repo.path().join("packed-refs.lock");
    fs::write(&lock, "").expect("a lock");
    let state = state([("refs/heads/main", commits[2])]);
    let mut applying = pin!(folder.repositories.apply_state(&id, &state));
    let waited = tokio::time::timeout(Duration::from_millis(200), applying.as_mut()).await;
    assert!(waited.is_err() && lock.exists() && repo.refs().is_empty());
    fs::remove_file(&lock).expect("it is still there");
    applying.await.expect("it is free");
    assert_eq!(repo.refs(), names(&state));
}

/// G9: the locks of a process of ours that died are no obstacle.
#[tokio::test]
async fn locks_of_a_dead_process_are_removed() {
    let (folder, repo, commits) = scene(3).await;
    let id = repository(0, "r");
    for name in ["packed-refs.lock", "HEAD.lock", "ngit-moving-refs", "refs/heads/main.lock"] {
        fs::write(repo.path().join(name), "").expect("a file");
    }
    let mut state = state([("refs/heads/main", commits[2]), ("refs/heads/dev", commits[2])]);
    state.head = Some(ref_name("refs/heads/dev"));
    folder.repositories.apply_state(&id, &state).await.expect("the state can be applied");
    assert_eq!((repo.refs(), repo.head()), (names(&state), "refs/heads/dev".to_owned()));
}

/// G9: any number of callers make a repository at once, in two processes, and each finds it whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_is_made_once_by_many() {
    let folder = Folder::new();
    let other_process = folder.reopened();
    let id = repository(0, "r");
    let makers = (0..40).map(|number| {
        let maker = if number % 2 == 0 { &folder.repositories } else { &other_process };
        let (maker, id) = (maker.clone(), id.clone());
        tokio::spawn(async move {
            let path = maker.create(&id).await.expect("it can be made");
            assert!(path.join("config").is_file() && path.join("ngit-whole").is_file());
            drop(maker.lock(&id).await.expect("it can be locked"));
        })
    });
    for maker in makers.collect::<Vec<_>>() {
        maker.await.expect("no maker panics");
    }
    assert_eq!(folder.made(&id).await.git(["count-objects"]), "0 objects, 0 kilobytes");
}

/// The process that is killed: it applies two states in turns until then. Nothing to do in a usual run.
#[tokio::test]
async fn child_that_moves_refs() {
    let Some(root) = env::var_os(CHILD_FOLDER) else { return };
    let repositories = Repositories::open(root).expect("the folder can be opened");
    let id = repository(0, "r");
    let repo = TestRepo::open(repositories.path(&id));
    let commits: Vec<Oid> = repo
        .git(["rev-list", "--reverse", "refs/nostr/all"])
        .lines()
        .map(|oid| oid.parse().expect("git prints object ids"))
        .collect();
    let states = [many(&commits, 0), many(&commits, 1)];
    for state in states.iter().cycle() {
        repositories.apply_state(&id, state).await.expect("the state can be applied");
        println!("applied");
    }
}

/// G9: a process that is killed at any moment leaves the refs of one state or of the other, and the next one goes on at once.
#[tokio::test]
async fn a_kill_leaves_the_refs_of_one_state() {
    let (folder, repo, commits) = scene(50).await;
    let id = repository(0, "r");
    repo.git(["update-ref", "refs/nostr/all", &commits[49].to_string()]);
    let states = [many(&commits, 0), many(&commits, 1)].map(|state| {
        let mut names = names(&state);
        names.insert("refs/nostr/all".to_owned(), commits[49]);
        names
    });
    let mut stale = 0;
    for round in 0..24_u64 {
        let mut child =
            Running::start("refs_many::child_that_moves_refs", folder.repositories.root());
        child.wait_for("applied");
        std::thread::sleep(Duration::from_micros(1_700 * round));
        child.kill();
        stale += usize::from(repo.path().join("packed-refs.lock").exists());
        let seen = repo.refs();
        assert!(states.contains(&seen), "round {round}: {} refs", seen.len());
    }
    // A state with other names once more: the locks that are left are in nobody's way.
    let last = state([("refs/heads/b0/deeper", commits[7])]);
    folder.reopened().apply_state(&id, &last).await.expect("the state can be applied");
    let mut expected = names(&last);
    expected.insert("refs/nostr/all".to_owned(), commits[49]);
    assert_eq!(repo.refs(), expected);
    assert!(!repo.path().join("ngit-moving-refs").exists());
    assert!(files_below(&repo.path().join("refs")).iter().all(|file| !file.ends_with(".lock")));
    eprintln!("{stale} of 24 kills left a lock");
}

/// The process that is killed between a pack and its refs. Nothing to do in a usual run.
#[tokio::test]
async fn child_that_waits_with_a_pack() {
    let Some(root) = env::var_os(CHILD_FOLDER) else { return };
    let repositories = Repositories::open(root).expect("the folder can be opened");
    let id = repository(0, "r");
    let lock = repositories.lock(&id).await.expect("it is free");
    fs::write(repositories.path(&id).join("ngit-moving-refs"), "").expect("a file");
    println!("waiting");
    std::future::pending::<()>().await;
    drop(lock);
}

/// G9, R8: killed after the data came and before the refs moved, also with the lock held: the next process
/// finds the data here and moves the refs.
#[tokio::test]
async fn a_kill_between_pack_and_refs_is_made_good() {
    let (folder, repo, commits) = scene(5).await;
    let mut child =
        Running::start("refs_many::child_that_waits_with_a_pack", folder.repositories.root());
    child.wait_for("waiting");
    child.kill();
    let id = repository(0, "r");
    let next = folder.reopened();
    assert_eq!(next.missing(&id.identifier, &commits).await.expect("it can be read"), []);
    let state = state([("refs/heads/main", commits[4])]);
    next.apply_state(&id, &state).await.expect("the state can be applied");
    assert_eq!(repo.refs(), names(&state));
    let sessions =
        fs::read_dir(folder.repositories.root().join(".quarantine")).expect("it is there");
    let sessions = sessions.flatten().filter(|entry| entry.path().is_dir()).count();
    assert_eq!(sessions, 2, "those of this process stay, that of the dead one goes");
}

/// The process that has no git. Nothing to do in a usual run.
#[tokio::test]
async fn child_without_git() {
    let Some(root) = env::var_os(CHILD_FOLDER) else { return };
    let repositories = Repositories::open(root).expect("the folder can be opened");
    let id = repository(0, "r");
    let tips = fs::read_to_string(repositories.root().join("tips")).expect("what to move to");
    for tip in tips.lines() {
        let state = state([("refs/heads/main", tip.parse().expect("an object id"))]);
        match repositories.apply_state(&id, &state).await {
            Ok(()) => println!("moved"),
            Err(error) => println!("not moved: {:?}", error),
        }
    }
}

/// G7, G9: while all packs that came are there, refs move without git's look at history, in any process; once somebody
/// has tidied up, or a pack is gone, they do not, and all is well when git has looked.
#[tokio::test]
async fn git_looks_at_history_only_where_something_went() {
    let (folder, repo, commits) = scene(30).await;
    let id = repository(0, "r");
    let moves_without_git = |tips: &[Oid]| {
        let lines: String = tips.iter().map(|oid| format!("{oid}\n")).collect();
        fs::write(folder.repositories.root().join("tips"), lines).expect("a file");
        let output = Command::new(env::current_exe().expect("this program has a path"))
            .args(["--exact", "refs_many::child_without_git", "--nocapture"])
            .env(CHILD_FOLDER, folder.repositories.root())
            .env("PATH", "")
            .output();
        let said = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
        let (moved, not) =
            (said.matches("moved").count(), said.matches("git cannot be used").count());
        assert_eq!(moved, tips.len(), "{said}");
        not == 0
    };
    assert!(moves_without_git(&[commits[10], commits[11]]));
    assert_eq!(repo.ref_oid("main"), Some(commits[11]));
    // What comes later counts, too, and what the repository's own git does to refs is none of our business.
    let source = TestRepo::open(folder.repositories.root().join("source"));
    let more = source.commits("main", 5);
    adopt(&folder, &id, &pack_of(&source, &more[4..], &commits[29..])).await;
    repo.git(["pack-refs", "--all"]);
    assert!(moves_without_git(&[more[4], commits[12]]));

    // Git lets go of nothing that a ref reaches, but it moves objects to other packs.
    let all = state([("refs/heads/main", commits[12]), ("refs/heads/all", more[4])]);
    folder.repositories.apply_state(&id, &all).await.expect("the state can be applied");
    repo.git(["gc", "--quiet", "--prune=now"]);
    assert!(!moves_without_git(&[commits[13]]));
    assert_eq!(repo.ref_oid("main"), Some(commits[12]));
    let next = state([("refs/heads/main", commits[13]), ("refs/heads/all", more[4])]);
    folder.repositories.apply_state(&id, &next).await.expect("git looks, and all is well");
    assert_eq!(repo.ref_oid("main"), Some(commits[13]));

    // A loose object of somebody else.
    let other = repository(1, "r");
    give(&folder, &source, &[commits[29]], &other).await;
    let list = folder.repositories.path(&other).join("ngit-packs");
    assert!(list.is_file());
    folder.made(&other).await.git_with_input(&["hash-object", "-w", "--stdin"], b"loose");
    let main = state([("refs/heads/main", commits[3])]);
    folder.repositories.apply_state(&other, &main).await.expect("git looks, and all is well");
}

/// A pull request's ref is set once and stays; SHA-256 is refused by name.
#[tokio::test]
async fn a_pull_request_has_a_ref_of_its_own() {
    let (folder, repo, commits) = scene(3).await;
    let id = repository(0, "r");
    let event = EventId::from_byte_array([3; 32]);
    for tip in [commits[0], commits[0], commits[2]] {
        folder.repositories.keep_pull_request(&id, &event, &tip).await.expect("it can be kept");
        assert_eq!(repo.refs(), BTreeMap::from([(format!("refs/nostr/{}", event.to_hex()), tip)]));
    }
    let refused = folder.repositories.keep_pull_request(&id, &event, &Oid::sha256([1; 32])).await;
    assert!(matches!(refused, Err(RefError::Conflict(reason)) if reason.contains("SHA-256")));
    let nowhere = folder.repositories.keep_pull_request(&id, &event, &Oid::sha1([1; 20])).await;
    assert!(matches!(nowhere, Err(RefError::Failed(_))));
}

/// A test of this program that runs in a process of its own.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(test: &str, folder: &Path) -> Self {
        let mut child = Command::new(env::current_exe().expect("this program has a path"))
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(CHILD_FOLDER, folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program can be started once more");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    fn wait_for(&mut self, line: &str) {
        let found = self.lines.by_ref().any(|it| it.expect("it can be read").ends_with(line));
        assert!(found, "the other process ended too early");
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("it can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path.display().to_string());
        }
    }
    files
}
