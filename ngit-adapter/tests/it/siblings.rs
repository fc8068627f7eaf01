//! Repositories of one identifier: where a fetch goes, and how data gets to all that need it.

use std::{fs, time::Instant};

use ngit_adapter::{RefError, RefKeeper, RepositoryId, git::Repositories, nostr::event::EventId};
use purgatory_sync::{Identifier, Oid, Target};

use crate::{
    objects_folder::{Folder, adopt, give, owner, pack_of, ref_name, repository, state},
    support::TestRepo,
};

async fn set_main(folder: &Folder, id: &RepositoryId, oid: Oid) {
    let state = state([("refs/heads/main", oid)]);
    folder.repositories.apply_state(id, &state).await.expect("the state can be applied");
}

fn packs(repo: &TestRepo) -> usize {
    let is_pack = |file: &&std::path::PathBuf| file.extension().is_some_and(|it| it == "pack");
    repo.object_files().iter().filter(is_pack).count()
}

async fn chosen(repositories: &Repositories, targets: &[Target]) -> RepositoryId {
    let identifier = Identifier::from("r");
    let target = repositories.fetch_target(&identifier, targets).await;
    target.expect("there is a target").repository
}

/// G10: of three siblings the fetch goes into the one with the newest commit on its default branch, wherever newer ones are on other branches.
#[tokio::test]
async fn a_fetch_goes_into_the_sibling_with_the_newest_commit() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 30);
    let ids = [repository(0, "r"), repository(1, "r"), repository(2, "r")];
    for (id, at) in ids.iter().zip([5, 25, 15]) {
        give(&folder, &source, &[commits[29]], id).await;
        set_main(&folder, id, commits[at]).await;
    }
    let targets = [ids[0].to_target()];
    assert_eq!(chosen(&folder.repositories, &targets).await, ids[1]);
    // The newest commit of all, but on another branch.
    let mut other = state([("refs/heads/main", commits[15]), ("refs/heads/dev", commits[29])]);
    other.head = Some(ref_name("refs/heads/main"));
    folder.repositories.apply_state(&ids[2], &other).await.expect("the state can be applied");
    assert_eq!(chosen(&folder.repositories, &targets).await, ids[1]);
    // And on its default branch.
    other.head = Some(ref_name("refs/heads/dev"));
    folder.repositories.apply_state(&ids[2], &other).await.expect("the state can be applied");
    assert_eq!(chosen(&folder.repositories, &targets).await, ids[2]);
    let target = folder.repositories.fetch_target(&Identifier::from("r"), &targets).await;
    let target = target.expect("there is a target");
    assert_eq!(target.tips, [commits[29], commits[15]]);
    assert!(target.is_whole);
}

/// G10: of siblings that are equal the one that needs the data is taken, and a repository is made where there is none.
#[tokio::test]
async fn a_fetch_finds_a_repository_or_makes_one() {
    let folder = Folder::new();
    let (one, two) = (repository(0, "r"), repository(1, "r"));
    let nothing = folder.repositories.fetch_target(&Identifier::from("r"), &[]).await;
    assert!(nothing.is_err());
    let foreign = [Target::new("no target"), repository(0, "other").to_target()];
    let nothing = folder.repositories.fetch_target(&Identifier::from("r"), &foreign).await;
    assert!(nothing.is_err());
    assert_eq!(chosen(&folder.repositories, &[two.to_target(), one.to_target()]).await, two);
    assert_eq!(folder.made(&two).await.head(), "refs/heads/main");
    folder.made(&one).await;
    assert_eq!(chosen(&folder.repositories, &[one.to_target()]).await, one);
    assert_eq!(chosen(&folder.repositories, &[two.to_target()]).await, two);
}

/// G10: a state whose objects lie in three siblings is brought in full into a fourth.
#[tokio::test]
async fn data_from_three_siblings_reaches_a_fourth() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let base = source.commits("main", 20)[19];
    let mut tips = Vec::new();
    for number in 0..3_u8 {
        let name = format!("b{number}");
        source.set_branch(&name, base);
        tips.push(source.commits(&name, 5)[4]);
        give(&folder, &source, &tips[usize::from(number)..], &repository(number, "r")).await;
    }
    let tag = source.annotated_tag("v1", tips[2]);
    give(&folder, &source, &[tag], &repository(2, "r")).await;
    let fourth = repository(3, "r");
    let wanted = state([
        ("refs/heads/one", tips[0]),
        ("refs/heads/two", tips[1]),
        ("refs/heads/three", tips[2]),
        ("refs/tags/v1", tag),
    ]);
    folder.repositories.apply_state(&fourth, &wanted).await.expect("the state can be applied");
    let repo = folder.made(&fourth).await;
    assert_eq!(repo.refs().len(), 4);
    repo.git(["fsck", "--strict", "--no-dangling"]);
    assert_eq!(packs(&repo), 3);
    // It keeps what it has when the others are gone.
    for number in 0..3 {
        fs::remove_dir_all(folder.repositories.path(&repository(number, "r"))).expect("it goes");
    }
    assert!(tips.iter().all(|tip| repo.is_complete(*tip)));
}

/// G10: what an older state names comes in full to a repository whose refs it does not move.
#[tokio::test]
async fn objects_are_kept_without_a_ref() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 30);
    let (one, two) = (repository(0, "r"), repository(1, "r"));
    give(&folder, &source, &[commits[29]], &one).await;
    folder.repositories.keep_objects(&two, &[commits[9], commits[19]]).await.expect("they come");
    let repo = folder.made(&two).await;
    assert!(repo.refs().is_empty());
    fs::remove_dir_all(folder.repositories.path(&one)).expect("it goes");
    assert!(repo.is_complete(commits[19]) && !repo.is_complete(commits[20]));
    let lacking = folder.repositories.keep_objects(&two, &[commits[20]]).await;
    assert!(matches!(lacking, Err(RefError::Failed(_))), "{lacking:?}");
}

/// G10: what a sibling lacks comes as a small pack that builds on what it has.
#[tokio::test]
async fn a_copy_to_a_sibling_is_an_increment() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 220);
    let (one, two) = (repository(0, "r"), repository(1, "r"));
    give(&folder, &source, &[commits[199]], &two).await;
    set_main(&folder, &two, commits[199]).await;
    give(&folder, &source, &[commits[219]], &one).await;
    let repo = folder.made(&two).await;
    let size = |repo: &TestRepo| -> u64 {
        repo.object_files().iter().map(|file| file.metadata().expect("a file").len()).sum()
    };
    let before = size(&repo);
    set_main(&folder, &two, commits[219]).await;
    assert!(repo.is_complete(commits[219]));
    let grown = size(&repo) - before;
    assert!(grown * 3 < before, "{grown} bytes on {before}");
}

/// G10: one pack for two owners is one file; a pack that builds on one repository goes into that one only,
/// and the other gets the data when its refs are set.
#[tokio::test]
async fn a_pack_reaches_every_owner_that_needs_it() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 30);
    let (one, two) = (repository(0, "r"), repository(1, "r"));
    let targets = [one.to_target(), two.to_target(), repository(2, "other").to_target()];
    let repositories = &folder.repositories;
    let target = repositories.fetch_target(&one.identifier, &targets).await.expect("a target");
    let pack = pack_of(&source, &[commits[19]], &[]);
    repositories.adopt(&target, &pack, &targets).await.expect("the pack is taken");
    let (repo_one, repo_two) = (folder.made(&one).await, folder.made(&two).await);
    assert!(repo_one.is_complete(commits[19]) && repo_two.is_complete(commits[19]));
    assert!(!repositories.path(&repository(2, "other")).exists(), "another identifier");

    let increment = pack_of(&source, &[commits[29]], &[commits[19]]);
    adopt(&folder, &one, &increment).await;
    assert!(repo_one.is_complete(commits[29]));
    let missing = repositories.missing(&one.identifier, &commits).await;
    assert_eq!(missing.expect("it can be read"), []);
    assert!(!repo_two.is_complete(commits[29]));
    set_main(&folder, &two, commits[29]).await;
    assert!(repo_two.is_complete(commits[29]));
}

/// G10: a pull request that went into a sibling reaches the repository that it is for.
#[tokio::test]
async fn a_pull_request_reaches_its_repository() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 20);
    let (one, two) = (repository(0, "r"), repository(1, "r"));
    give(&folder, &source, &[commits[19]], &one).await;
    let event = EventId::from_byte_array([7; 32]);
    folder.repositories.keep_pull_request(&two, &event, &commits[12]).await.expect("kept");
    let repo = folder.made(&two).await;
    assert!(repo.is_complete(commits[12]));
    assert!(!repo.is_complete(commits[13]), "only what is needed comes");
}

/// G7: what is nowhere in full moves no ref, and may work later.
#[tokio::test]
async fn refs_do_not_move_without_all_data() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 20);
    let id = repository(0, "r");
    give(&folder, &source, &[commits[9]], &id).await;
    set_main(&folder, &id, commits[3]).await;
    let wanted = state([("refs/heads/main", commits[19]), ("refs/heads/dev", commits[9])]);
    let failed = folder.repositories.apply_state(&id, &wanted).await;
    assert!(matches!(failed, Err(RefError::Failed(_))), "{failed:?}");
    assert_eq!(folder.made(&id).await.ref_oid("main"), Some(commits[3]));
    assert_eq!(folder.made(&id).await.ref_oid("dev"), None);
    give(&folder, &source, &[commits[19]], &id).await;
    folder.repositories.apply_state(&id, &wanted).await.expect("now it can");
}

/// G7: what somebody tidied away after it was checked is noticed before refs move, is asked for again, and all is well when it came.
#[tokio::test]
async fn damage_is_noticed_and_made_good() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 40);
    let id = repository(0, "r");
    let repo = folder.made(&id).await;
    adopt(&folder, &id, &pack_of(&source, &[commits[19]], &[])).await;
    let first = repo.object_files();
    adopt(&folder, &id, &pack_of(&source, &[commits[39]], &[commits[19]])).await;
    for file in first.iter().filter(|file| file.to_string_lossy().contains("/pack/")) {
        fs::remove_file(file).expect("it goes");
    }
    let missing = async || {
        let missing = folder.repositories.missing(&id.identifier, &[commits[39]]).await;
        missing.expect("it can be read")
    };
    assert_eq!(missing().await, [], "nobody looked yet");
    let wanted = state([("refs/heads/main", commits[39])]);
    let failed = folder.repositories.apply_state(&id, &wanted).await;
    assert!(matches!(failed, Err(RefError::Failed(_))), "{failed:?}");
    assert!(repo.refs().is_empty());
    assert_eq!(missing().await, [commits[39]], "so it is hunted again");
    let target = folder.repositories.fetch_target(&id.identifier, &[id.to_target()]).await;
    assert!(!target.expect("a target").is_whole, "and nothing builds on what is left");
    adopt(&folder, &id, &pack_of(&source, &[commits[39]], &[])).await;
    assert_eq!(missing().await, []);
    folder.repositories.apply_state(&id, &wanted).await.expect("the state can be applied");
    assert!(repo.is_complete(commits[39]));
    let target = folder.repositories.fetch_target(&id.identifier, &[id.to_target()]).await;
    assert!(target.expect("a target").is_whole);
}

/// G10: a shallow sibling gives nothing that lacks history, and a whole one mends it.
#[tokio::test]
async fn a_shallow_repository_is_mended_from_a_sibling() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 20);
    let (whole, shallow) = (repository(0, "r"), repository(1, "r"));
    let clone = source.try_git([
        "clone".to_owned(),
        "--quiet".to_owned(),
        "--bare".to_owned(),
        "--depth=3".to_owned(),
        format!("file://{}", source.path().display()),
        folder.repositories.path(&shallow).display().to_string(),
    ]);
    assert!(clone.status.success(), "{}", String::from_utf8_lossy(&clone.stderr));
    let failed = async |id: &RepositoryId, at: usize| {
        let wanted = state([("refs/heads/main", commits[at])]);
        folder.repositories.apply_state(id, &wanted).await.is_err()
    };
    assert!(failed(&whole, 19).await && failed(&shallow, 18).await);
    give(&folder, &source, &[commits[19]], &whole).await;
    set_main(&folder, &shallow, commits[19]).await;
    let repo = folder.made(&shallow).await;
    assert!(repo.is_complete(commits[19]));
    assert_eq!(repo.git(["rev-parse", "--is-shallow-repository"]), "false");
}

/// G10: hundreds of owners cost no look at their objects.
#[tokio::test]
async fn many_owners_are_no_burden() {
    let folder = Folder::new();
    let source = folder.elsewhere("source");
    let commits = source.commits("main", 20);
    let id = repository(0, "r");
    give(&folder, &source, &[commits[19]], &id).await;
    let name = folder.repositories.path(&id).parent().expect("a parent").to_owned();
    let name = name.file_name().expect("a name").to_str().expect("ASCII").to_owned();
    for number in 0..300 {
        // Like an owner's folder, with another repository in it.
        let (start, end) = name.split_at(name.len() - 8);
        let other = format!("{start}{:08}", (number + end.len()) % 100_000_000);
        let path = folder.repositories.root().join(other).join("other.git/objects");
        fs::create_dir_all(path).expect("a folder");
    }
    let begun = Instant::now();
    let siblings = folder.repositories.siblings(&id.identifier).await.expect("they can be listed");
    assert_eq!(siblings, [RepositoryId::new(owner(0), id.identifier.clone())]);
    let missing = folder.repositories.missing(&id.identifier, &commits).await;
    assert_eq!(missing.expect("it can be read"), []);
    eprintln!("two looks at 300 owners: {:?}", begun.elapsed());
}
