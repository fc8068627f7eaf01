//! What a state does to refs.

use ngit_adapter::{RefError, RefKeeper, StateRefs, nostr::event::EventId};
use purgatory_sync::Oid;

use crate::{
    objects_folder::{Folder, give, ref_name, repository, state},
    support::TestRepo,
};

/// A repository that has twenty commits, a tag, a tree and a blob, and no refs.
struct Scene {
    folder: Folder,
    repo: TestRepo,
    commits: Vec<Oid>,
    tag: Oid,
    tree: Oid,
    blob: Oid,
}

impl Scene {
    async fn new() -> Self {
        let folder = Folder::new();
        let source = folder.elsewhere("source");
        let commits = source.commits("main", 20);
        let tag = source.annotated_tag("v1", commits[3]);
        let parse = |text: String| text.parse::<Oid>().expect("git prints object ids");
        let tree = parse(source.git(["rev-parse", "main^{tree}"]));
        let blob = parse(source.git(["rev-parse", "main:dir0/file0.txt"]));
        give(&folder, &source, &[commits[19], tag], &repository(0, "r")).await;
        let repo = folder.made(&repository(0, "r")).await;
        Self { folder, repo, commits, tag, tree, blob }
    }

    async fn apply(&self, state: &StateRefs) -> Result<(), RefError> {
        self.folder.repositories.apply_state(&repository(0, "r"), state).await
    }

    /// Applies it and looks whether git sees the same.
    async fn applied(&self, state: &StateRefs) {
        self.apply(state).await.expect("the state can be applied");
        let wanted = state.refs.iter().map(|(name, oid)| (name.to_string(), *oid)).collect();
        let mut seen = self.repo.refs();
        seen.retain(|name, _| !name.starts_with("refs/nostr/"));
        assert_eq!(seen, wanted);
    }

    async fn refused(&self, state: &StateRefs, parts_of_reason: &[&str]) {
        let before = (self.repo.refs(), self.repo.head());
        match self.apply(state).await {
            Err(RefError::Conflict(reason)) => {
                for part in parts_of_reason {
                    assert!(reason.contains(part), "{part:?} is not in {reason:?}");
                }
            }
            other => panic!("expected a conflict, got {other:?}"),
        }
        assert_eq!((self.repo.refs(), self.repo.head()), before, "nothing moved");
    }
}

/// G9: heads and tags that the state does not name go; HEAD follows; a later state moves them again.
#[tokio::test]
async fn refs_become_those_of_the_state() {
    let scene = Scene::new().await;
    let c = &scene.commits;
    let mut first = state([
        ("refs/heads/main", c[5]),
        ("refs/heads/topic/one", c[7]),
        ("refs/tags/v1", scene.tag),
        ("refs/tags/light", c[2]),
    ]);
    first.head = Some(ref_name("refs/heads/topic/one"));
    scene.applied(&first).await;
    assert_eq!(scene.repo.head(), "refs/heads/topic/one");
    // Once more is the same.
    scene.applied(&first).await;
    let mut second = state([("refs/heads/main", c[19])]);
    second.head = Some(ref_name("refs/heads/main"));
    scene.applied(&second).await;
    assert_eq!(scene.repo.head(), "refs/heads/main");
    assert!(scene.repo.git(["fsck", "--strict", "--no-dangling"]).is_empty());
}

/// G9, R3: an empty state changes nothing, not even HEAD.
#[tokio::test]
async fn an_empty_state_changes_nothing() {
    let scene = Scene::new().await;
    scene.applied(&state([("refs/heads/main", scene.commits[5])])).await;
    let empty = StateRefs { head: Some(ref_name("refs/heads/other")), ..StateRefs::default() };
    scene.apply(&empty).await.expect("nothing to do");
    assert_eq!(scene.repo.ref_oid("main"), Some(scene.commits[5]));
    assert_eq!(scene.repo.head(), "refs/heads/main");
}

/// G9: the refs of pull requests are no matter of states.
#[tokio::test]
async fn pull_requests_stay_when_a_state_comes() {
    let scene = Scene::new().await;
    let event = EventId::from_byte_array([7; 32]);
    let id = repository(0, "r");
    let kept = scene.folder.repositories.keep_pull_request(&id, &event, &scene.commits[9]).await;
    kept.expect("it can be kept");
    scene.applied(&state([("refs/heads/main", scene.commits[5])])).await;
    scene.applied(&state([("refs/heads/other", scene.commits[6])])).await;
    let name = format!("refs/nostr/{}", event.to_hex());
    assert_eq!(scene.repo.ref_oid(&name), Some(scene.commits[9]));
}

/// G9: `a` beside `a/b` cannot be, and the reason names both.
#[tokio::test]
async fn a_branch_below_a_branch_is_a_conflict() {
    let scene = Scene::new().await;
    let c = &scene.commits;
    scene.applied(&state([("refs/heads/main", c[1])])).await;
    let both = state([
        ("refs/heads/a", c[1]),
        ("refs/heads/a-b", c[1]),
        ("refs/heads/a/b/c", c[2]),
        ("refs/heads/main", c[3]),
    ]);
    scene.refused(&both, &["refs/heads/a ", "refs/heads/a/b/c"]).await;
}

/// G9: a branch is a commit. A tag may be anything.
#[tokio::test]
async fn a_branch_that_is_no_commit_is_a_conflict() {
    let scene = Scene::new().await;
    let main = ("refs/heads/main", scene.commits[1]);
    scene.applied(&state([main])).await;
    for (oid, kind) in [(scene.tree, "tree"), (scene.blob, "blob"), (scene.tag, "tag")] {
        let wrong = state([("refs/heads/odd", oid), ("refs/heads/main", scene.commits[4])]);
        scene.refused(&wrong, &["refs/heads/odd", kind, &oid.to_string()]).await;
        scene.applied(&state([main, ("refs/tags/odd", oid)])).await;
    }
}

/// G9: all branches change their names, also where a branch becomes a folder of branches and back.
#[tokio::test]
async fn a_state_may_rename_everything() {
    let scene = Scene::new().await;
    let c = &scene.commits;
    let flat = state([("refs/heads/a", c[1]), ("refs/heads/b", c[2]), ("refs/tags/t", scene.tag)]);
    let deep = state([
        ("refs/heads/a/x/y", c[1]),
        ("refs/heads/a/z", c[3]),
        ("refs/heads/b/a", c[2]),
        ("refs/tags/t/1", scene.tag),
    ]);
    let mixed = state([("refs/heads/a/x", c[1]), ("refs/heads/b", c[2]), ("refs/tags/t", c[4])]);
    for state in [&flat, &deep, &flat, &mixed, &deep, &mixed, &flat] {
        scene.applied(state).await;
    }
}
