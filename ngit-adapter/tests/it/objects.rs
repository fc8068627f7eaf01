//! What is here.

use std::{fs, future::Future, pin::pin, task::Poll};

use ngit_adapter::git::Repositories;
use purgatory_sync::{Identifier, Oid};
use tokio::runtime::Builder;

use crate::{
    objects_folder::{Folder, adopt, give, pack_of, repository},
    support::{TestRepo, git_command},
};

async fn missing(repositories: &Repositories, name: &str, oids: &[Oid]) -> Vec<Oid> {
    repositories.missing(&Identifier::from(name), oids).await.expect("the folder can be read")
}

/// G10: objects of any repository of the identifier count, those of other identifiers do not.
#[tokio::test]
async fn objects_of_all_siblings_are_here() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let mut tips = Vec::new();
    for number in 0..3_u8 {
        let name = format!("b{number}");
        let tip = source.commits(&name, 10)[9];
        give(&folder, &source, &[tip], &repository(number, "r")).await;
        tips.push(tip);
    }
    let elsewhere = source.commits("elsewhere", 3)[2];
    give(&folder, &source, &[elsewhere], &repository(0, "other")).await;
    let nowhere = Oid::sha1([9; 20]);
    let sha256 = Oid::sha256([9; 32]);
    let asked = [&tips[..], &[elsewhere, nowhere, sha256]].concat();
    let repositories = &folder.repositories;
    assert_eq!(missing(repositories, "r", &asked).await, [elsewhere, nowhere, sha256]);
    let others = [&tips[..], &[nowhere, sha256]].concat();
    assert_eq!(missing(repositories, "other", &asked).await, others);
    assert_eq!(missing(repositories, "none", &asked).await, asked);
}

/// G8: nothing is looked up on the thread that asks: while the one thread for such work is taken, there is no answer.
#[test]
fn a_look_at_objects_holds_up_no_worker() {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    runtime.expect("a runtime can be made").block_on(async {
        let folder = Folder::new();
        let identifier = Identifier::from("r");
        let asked = [Oid::sha1([1; 20])];
        let (free, taken) = std::sync::mpsc::channel::<()>();
        let other_work = tokio::task::spawn_blocking(move || taken.recv());
        let mut look = pin!(folder.repositories.missing(&identifier, &asked));
        for _ in 0..10 {
            let ready = std::future::poll_fn(|cx| Poll::Ready(look.as_mut().poll(cx).is_ready()));
            assert!(!ready.await, "it was looked up on this thread");
            tokio::task::yield_now().await;
        }
        drop(free);
        assert_eq!(look.await.expect("the folder can be read"), asked);
        other_work.await.expect("it only waits").expect_err("nothing is sent");
    });
}

/// G8: loose objects and packed ones, in a repository that somebody else made with git.
#[tokio::test]
async fn loose_and_packed_objects_are_here() {
    let folder = Folder::new();
    let id = repository(0, "r");
    fs::create_dir_all(folder.repositories.path(&id).parent().expect("a parent"))
        .expect("a folder");
    let repo = TestRepo::init(folder.repositories.path(&id));
    let packed = repo.commits("main", 150);
    repo.git(["repack", "-a", "-d", "-q"]);
    let loose = repo.commits("main", 5);
    assert!(repo.git(["count-objects"]).starts_with("15 "), "the test needs loose objects");
    let nowhere = Oid::sha1([9; 20]);
    let asked = [&packed[..], &loose[..], &[nowhere]].concat();
    assert_eq!(missing(&folder.repositories, "r", &asked).await, [nowhere]);
}

/// G8: many packs, many hits and many misses, in one look.
#[tokio::test]
async fn sixty_packs_are_looked_at_in_one_pass() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let id = repository(0, "r");
    let repo = folder.made(&id).await;
    let commits = source.commits("main", 240);
    let mut before = Vec::new();
    for part in commits.chunks(4) {
        let pack = pack_of(&source, &part[3..], &before);
        adopt(&folder, &id, &pack).await;
        before = part[3..].to_vec();
    }
    let packs = repo
        .object_files()
        .iter()
        .filter(|file| file.extension().is_some_and(|it| it == "pack"))
        .count();
    assert_eq!(packs, 60);
    let nowhere: Vec<Oid> = (0..1_000_u32)
        .map(|n| Oid::sha1([n.to_be_bytes(); 5].concat().try_into().expect("20 bytes")))
        .collect();
    let asked = [&nowhere[..500], &commits[..], &nowhere[500..]].concat();
    assert_eq!(missing(&folder.repositories, "r", &asked).await, nowhere);
}

/// A bare clone of the last commits of `source` only.
fn shallow_clone(source: &TestRepo, to: &std::path::Path) -> TestRepo {
    let output = git_command()
        .args(["clone", "--quiet", "--bare", "--depth=3"])
        .arg(format!("file://{}", source.path().display()))
        .arg(to)
        .output()
        .expect("git can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let clone = TestRepo::open(to);
    assert_eq!(clone.git(["rev-parse", "--is-shallow-repository"]), "true");
    clone
}

/// G7: what a shallow repository has counts only once its history came, and then it is shallow no more.
#[tokio::test]
async fn objects_of_a_shallow_repository_count_once_it_is_mended() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 12);
    let tip = commits[11];
    let id = repository(0, "r");
    let repo = shallow_clone(&source, &folder.repositories.path(&id));
    let tree: Oid = repo.git(["rev-parse", "main^{tree}"]).parse().expect("an object id");
    let repositories = &folder.repositories;
    // A tree has no history: it is here in full.
    assert_eq!(missing(repositories, "r", &[tip, commits[10], tree]).await, [tip, commits[10]]);
    let target = repositories.fetch_target(&id.identifier, &[]).await.expect("it is there");
    assert!(!target.is_whole && target.tips.is_empty(), "nothing may build on it");

    adopt(&folder, &id, &pack_of(&source, &[tip], &[])).await;
    assert_eq!(missing(repositories, "r", &commits).await, []);
    assert_eq!(repo.git(["rev-parse", "--is-shallow-repository"]), "false");
    let target = repositories.fetch_target(&id.identifier, &[]).await.expect("it is there");
    assert!(target.is_whole);
    assert_eq!(target.tips, [tip]);
}

/// G7: half of the missing history does not make a shallow repository whole.
#[tokio::test]
async fn a_shallow_repository_stays_so_until_all_of_its_history_came() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 12);
    let id = repository(0, "r");
    let repo = shallow_clone(&source, &folder.repositories.path(&id));
    adopt(&folder, &id, &pack_of(&source, &[commits[4]], &[])).await;
    assert_eq!(missing(&folder.repositories, "r", &commits).await, commits[5..]);
    assert_eq!(repo.git(["rev-parse", "--is-shallow-repository"]), "true");
}

/// G7: in a repository that others made, an object that lacks something is not here, and what it lacks not is.
#[tokio::test]
async fn an_object_that_lacks_something_is_not_here() {
    let folder = Folder::new();
    let id = repository(0, "r");
    fs::create_dir_all(folder.repositories.path(&id).parent().expect("a parent"))
        .expect("a folder");
    let repo = TestRepo::init(folder.repositories.path(&id));
    let one = repo.commit("main", "file", "one");
    let two = repo.commit("main", "file", "two");
    let three = repo.commit("main", "other", "three");
    let side = repo.commit("side", "file", "four");
    let blob = repo.git(["rev-parse", &format!("{two}:file")]);
    let (folder_name, file) = blob.split_at(2);
    fs::remove_file(repo.path().join("objects").join(folder_name).join(file)).expect("it is loose");
    let asked = [one, two, three, side];
    assert_eq!(missing(&folder.repositories, "r", &asked).await, [two, three]);
}

/// G10: a pack that two repositories share stays in the one when the other is tidied up or deleted.
#[tokio::test]
async fn a_donor_may_be_tidied_up_or_deleted() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 30);
    let (donor, other) = (repository(0, "r"), repository(1, "r"));
    let donor_repo = folder.made(&donor).await;
    let other_repo = folder.made(&other).await;
    let repositories = &folder.repositories;
    let targets = [donor.to_target(), other.to_target()];
    let target = repositories.fetch_target(&donor.identifier, &targets).await.expect("a target");
    let pack = pack_of(&source, &[commits[29]], &[]);
    repositories.adopt(&target, &pack, &targets).await.expect("the pack is taken");
    fs::remove_file(&pack.pack).expect("the quarantine goes");
    fs::remove_file(&pack.index).expect("the quarantine goes");
    assert!(donor_repo.is_complete(commits[29]) && other_repo.is_complete(commits[29]));

    donor_repo.git(["gc", "--quiet", "--prune=now"]);
    assert!(!donor_repo.is_complete(commits[29]), "no ref kept it there");
    assert!(other_repo.is_complete(commits[29]));
    assert_eq!(missing(repositories, "r", &commits).await, []);
    fs::remove_dir_all(donor_repo.path()).expect("it can be deleted");
    assert!(other_repo.is_complete(commits[29]));
    assert_eq!(missing(repositories, "r", &commits).await, []);
}

/// G7: a process that was killed between the two files of a pack leaves nothing that the next one minds.
#[tokio::test]
async fn a_pack_without_its_index_is_completed() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 30);
    let id = repository(0, "r");
    let repo = folder.made(&id).await;
    let pack = pack_of(&source, &[commits[29]], &[]);
    let name = pack.pack.file_name().expect("a name");
    fs::hard_link(&pack.pack, repo.path().join("objects/pack").join(name)).expect("a link");
    assert_eq!(missing(&folder.repositories, "r", &commits).await, commits);
    for _ in 0..2 {
        adopt(&folder, &id, &pack).await;
        assert_eq!(missing(&folder.repositories, "r", &commits).await, []);
    }
}
