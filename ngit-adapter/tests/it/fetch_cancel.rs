//! However a fetch ends, nothing of it is left: no process, no file.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::FutureExt;
use ngit_adapter::git::{Repositories, SmartHttpFetcher};
use purgatory_sync::{FetchRequest, GitFetcher, Oid};
use tempfile::TempDir;

use crate::{
    fetch_packs::{Kind as Is, PackBuilder, bomb},
    fetch_server::{
        ADVERTISEMENT, RESULT, ScriptedServer, answer_truly, endless_head, ok, pack_answer,
        serves_pack, truth,
    },
    fetch_support::{Here, absent, files_below},
    support::TestRepo,
    support_server::TestServer,
};

/// Processes whose environment names something in this folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("this is Linux").flatten() {
        let Ok(environ) = fs::read(entry.path().join("environ")) else { continue };
        if environ.windows(needle.len()).any(|part| part == needle) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// Waits until `done`, for as long as a test may reasonably take.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "still not: {what}");
        std::thread::yield_now();
    }
}

/// G4: dropping a fetch while its pack comes ends git and removes the quarantine.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_fetch_leaves_nothing() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commits("main", 50)[49];
    let sent = Arc::new(AtomicUsize::new(0));
    let (sending, served) = (sent.clone(), repo.clone());
    let server = ScriptedServer::start(move |request, stream| {
        if request.is_discovery() {
            return answer_truly(&served, request, stream);
        }
        let truth = truth(&served, request);
        endless_head(stream, RESULT)?;
        std::io::Write::write_all(stream, &truth[..truth.len() / 2])?;
        sending.fetch_add(1, Ordering::SeqCst);
        crate::fetch_server::hang(stream)
    });
    let here = Arc::new(Here::new().await);
    for turn in 1..=5 {
        let (task_here, url) = (here.clone(), server.url());
        let fetch = tokio::spawn(async move { task_here.fetch(&url, &[tip]).await.map(|_| ()) });
        wait_until("git reads the pack", || {
            sent.load(Ordering::SeqCst) == turn && !processes_of(here.dir.path()).is_empty()
        });
        fetch.abort();
        assert!(fetch.await.expect_err("it was ended").is_cancelled());
        here.fetcher.cleaned_up().await;
        assert_eq!(here.quarantined(), Vec::<PathBuf>::new());
        assert_eq!(processes_of(here.dir.path()), Vec::<String>::new());
        assert!(here.repo().object_files().is_empty());
    }
    let true_server = TestServer::start("127.0.0.1", dir.path());
    let fetched = here.fetch(&true_server.url("project.git"), &[tip]).await.expect("it works");
    assert_eq!(fetched.received, [tip]);
}

/// G4: dropping a fetch at any moment leaves a folder in which the next one works.
#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_can_be_dropped_at_any_moment() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commits("main", 200)[199];
    let server = TestServer::start("127.0.0.1", dir.path());
    for turn in 0..20 {
        let here = Here::new().await;
        let url = server.url("project.git");
        // Sooner or later, up to when it is about to be done.
        let limit = Duration::from_millis(turn * 5);
        let ended = tokio::time::timeout(limit, here.fetch(&url, &[tip])).await.is_ok();
        here.fetcher.cleaned_up().await;
        assert_eq!(here.quarantined(), Vec::<PathBuf>::new());
        assert_eq!(processes_of(here.dir.path()), Vec::<String>::new());
        if !ended {
            here.fetch(&url, &[tip]).await.expect("it works");
        }
        assert!(here.repo().is_complete(tip));
    }
}

/// G4: a fetch that is polled once and dropped has sent nothing that lasts.
#[tokio::test]
async fn a_fetch_that_hardly_began_leaves_nothing() {
    let here = Here::new().await;
    let url = "http://127.0.0.1:9/project.git";
    assert!(here.fetch(url, &[absent(1)]).now_or_never().is_none());
    here.fetcher.cleaned_up().await;
    assert!(here.quarantined().is_empty());
}

/// G4: a git that is busy when the fetch is dropped is killed, and does not work on for nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_git_is_killed() {
    let mut pack = PackBuilder::default();
    let base = pack.add(Is::Blob, &[0; 0x1_0000]);
    for number in 0..200_u8 {
        pack.add_delta(base, &bomb(0x1_0000, 200 * 16, &[number]));
    }
    let server = serves_pack(pack_answer(&pack.finish()));
    let here = Arc::new(Here::new().await);
    let (task_here, url) = (here.clone(), server.url());
    let fetch = tokio::spawn(async move { task_here.fetch(&url, &[absent(1)]).await.map(|_| ()) });
    wait_until("git works", || !processes_of(here.dir.path()).is_empty());
    fetch.abort();
    assert!(fetch.await.expect_err("it was ended").is_cancelled());
    here.fetcher.cleaned_up().await;
    assert_eq!(processes_of(here.dir.path()), Vec::<String>::new());
    assert!(here.quarantined().is_empty());
}

/// What the helper is to do: a folder, a URL and an object, one a line.
const HELPER: &str = "NGIT_TEST_FETCH";

/// A process that fetches once, and says how that ended. Run by the tests below; on its own it does nothing.
#[test]
fn helper_that_fetches_once() {
    let Ok(task) = std::env::var(HELPER) else { return };
    let mut lines = task.lines();
    let mut next = || lines.next().expect("three lines");
    let (folder, url, oid) = (next(), next(), next());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let kind = runtime.block_on(async {
        let repositories = Repositories::open(folder).expect("the folder can be used");
        let builder = SmartHttpFetcher::builder(repositories).allow_private_networks(true);
        let fetcher = builder.build().await.expect("git is installed");
        let here = Here { dir: TempDir::new().expect("a folder"), fetcher, id: Here::repository() };
        let oids: [Oid; 1] = [oid.parse().expect("an object id")];
        let (url, targets) = (url.parse().expect("a clone URL"), [here.target()]);
        let request = FetchRequest::new(&here.id.identifier, &url, &oids, &targets);
        let ended = here.fetcher.fetch(request).await;
        assert!(here.fetcher.repositories().root().join(".quarantine").is_dir());
        ended.map(|fetched| fetched.received.len()).map_err(|error| {
            eprintln!("{}", crate::fetch_support::chain(&error));
            error.kind()
        })
    });
    println!("ENDED {kind:?}");
}

fn start_helper(mut command: Command, folder: &Path, url: &str, oid: Oid) -> Child {
    command
        .args([
            "fetch_cancel::helper_that_fetches_once",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(HELPER, format!("{}\n{url}\n{oid}", folder.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test can be run")
}

fn this_test() -> PathBuf {
    std::env::current_exe().expect("this test is a file")
}

/// All files below a folder by their paths from there; what has a random name by its kind.
fn listing(folder: &Path) -> BTreeSet<String> {
    let name = |path: PathBuf| {
        let path = path.strip_prefix(folder).expect("it is below").to_string_lossy().into_owned();
        let parts = path.split('/').map(|part| match part.split_once('-') {
            Some(("session", _)) => "session",
            _ => part,
        });
        parts.collect::<Vec<_>>().join("/")
    };
    files_below(folder).into_iter().map(name).collect()
}

/// G4: after fifty processes that were killed in the middle of a fetch, a folder has the same files as after a fetch
/// that nobody disturbed.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_leave_nothing() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commits("main", 100)[99];
    let step = Arc::new(AtomicUsize::new(0));
    let (stepping, served) = (step.clone(), repo.clone());
    let server = ScriptedServer::start(move |request, stream| {
        use std::io::Write;
        let truth = truth(&served, request);
        if request.is_discovery() {
            stepping.store(1, Ordering::SeqCst);
            return ok(stream, ADVERTISEMENT, &truth);
        }
        endless_head(stream, RESULT)?;
        for part in truth.chunks(truth.len() / 8 + 1) {
            stream.write_all(part)?;
            stepping.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(4));
        }
        Ok(())
    });
    let disturbed = TempDir::new().expect("a temporary folder");
    let mut killed = 0;
    for turn in 0..50 {
        step.store(0, Ordering::SeqCst);
        let mut child =
            start_helper(Command::new(this_test()), disturbed.path(), &server.url(), tip);
        // Each turn at another stage; beyond the last part it is git's checks and the linking that are hit.
        wait_until("the stage is reached", || {
            step.load(Ordering::SeqCst) > turn % 10
                || step.load(Ordering::SeqCst) == 9
                || child.try_wait().expect("it is our child").is_some()
        });
        if turn % 10 == 9 {
            std::thread::sleep(Duration::from_millis(u64::try_from(turn).expect("small") / 2));
        }
        child.kill().expect("it is our child");
        killed += usize::from(child.wait().expect("it is our child").signal() == Some(9));
    }
    assert!(killed >= 40, "only {killed} were hit");
    wait_until("gits end with their pipes", || processes_of(disturbed.path()).is_empty());

    let mut listings = Vec::new();
    for folder in [disturbed, TempDir::new().expect("a temporary folder")] {
        let child = start_helper(Command::new(this_test()), folder.path(), &server.url(), tip);
        let output = child.wait_with_output().expect("it is our child");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("ENDED Ok(1)"), "{said}");
        listings.push((listing(folder.path()), folder));
    }
    assert_eq!(listings[0].0, listings[1].0);
    assert!(listings[0].0.iter().any(|file| file.ends_with(".idx")), "{:?}", listings[0].0);
}

/// G6: a full disk is our failure and not the server's, and leaves nothing behind. It needs a small file system of its own, and so the
/// right to make one; where that is not given, this test cannot tell anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_local() {
    let mount = TempDir::new().expect("a temporary folder");
    let make = r#"mount -t tmpfs -o size=400k none "$0" && shift && exec "$@""#;
    let unshare = || {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", make])
            .arg(mount.path())
            .arg("-");
        command
    };
    let can =
        unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("no right to mount a file system here");
        return;
    }
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let noise: String =
        (0..200_000_u32).map(|x| format!("{:x}", x.wrapping_mul(2_654_435_761))).collect();
    let tip = repo.commit("main", "file", &noise);
    let server = TestServer::start("127.0.0.1", dir.path());
    let mut command = unshare();
    command.arg(this_test());
    let child = start_helper(command, mount.path(), &server.url("project.git"), tip);
    let output = child.wait_with_output().expect("it is our child");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("ENDED Err(Local)"), "{said}");
}
