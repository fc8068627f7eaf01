//! What comes is checked before it counts, and what fails the checks leaves nothing.

use ngit_adapter::git::SmartHttpFetcherBuilder;
use purgatory_sync::{FetchErrorKind as Kind, Oid};
use tempfile::TempDir;

use crate::{
    fetch_packs::{Kind as Is, PackBuilder, commit, object_id, tree},
    fetch_server::{
        ADVERTISEMENT, RESULT, Request, ScriptedServer, ok, pack_answer, pack_of, packet,
        serves_pack, truth,
    },
    fetch_support::{Here, absent},
    support::TestRepo,
    support_server::TestServer,
};

fn private(builder: SmartHttpFetcherBuilder) -> SmartHttpFetcherBuilder {
    builder.allow_private_networks(true)
}

/// Whether a fetch of `want` from a server that sends `pack` fails as corrupt and leaves nothing at all.
async fn is_refused(here: &Here, pack: &[u8], want: Oid, what: &str) {
    let server = serves_pack(pack_answer(pack));
    assert_eq!(here.fails(&server.url(), &[want]).await, Kind::Corrupt, "{what}");
    assert_eq!(here.missing(&[want]).await, [want], "{what}");
    assert_eq!(here.repo().object_files(), Vec::<std::path::PathBuf>::new(), "{what}");
    assert!(here.quarantined().is_empty(), "{what}");
}

/// The pack of a real repository with one commit, and that commit.
fn real_pack() -> (Vec<u8>, Oid) {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commit("main", "file", "content\n");
    let want = format!("want {tip}\n");
    let request = Request {
        method: "POST".to_owned(),
        path: String::new(),
        headers: vec![("git-protocol".to_owned(), "version=2".to_owned())],
        body: [&b"0011command=fetch0001"[..], b"0032", want.as_bytes(), b"0009done\n0000"].concat(),
    };
    (pack_of(&truth(&repo, &request)), tip)
}

/// G7: a pack that is whole is taken; cut anywhere, or with any byte changed, it is not.
#[tokio::test]
async fn damaged_packs_are_refused() {
    let (pack, tip) = real_pack();
    let here = Here::new().await;
    for cut in [0, 3, 11, 12, 40, pack.len() - 21, pack.len() - 1] {
        is_refused(&here, &pack[..cut], tip, &format!("cut at {cut}")).await;
    }
    for at in (0..pack.len()).step_by(pack.len() / 16) {
        let mut damaged = pack.clone();
        damaged[at] ^= 0x20;
        let server = serves_pack(pack_answer(&damaged));
        let kind = here.fails(&server.url(), &[tip]).await;
        // A number of objects in the billions is too large before it is wrong.
        assert!(kind == Kind::Corrupt || at < 12 && kind == Kind::TooLarge, "{kind:?} at {at}");
        assert_eq!(here.repo().object_files(), Vec::<std::path::PathBuf>::new());
    }
    let server = serves_pack(pack_answer(&pack));
    let fetched = here.fetch(&server.url(), &[tip]).await.expect("it is whole");
    assert_eq!(fetched.received, [tip]);
}

/// G7: a commit without its tree, its file, or its parent is not here, whatever git's exit status would be.
#[tokio::test]
async fn incomplete_packs_are_refused() {
    let here = Here::new().await;
    let mut pack = PackBuilder::default();
    let want = pack.add(Is::Commit, &commit(absent(1), &[]));
    is_refused(&here, &pack.finish(), want, "no tree").await;

    let mut pack = PackBuilder::default();
    let root = pack.add(Is::Tree, &tree(&[("100644 file", absent(2))]));
    let want = pack.add(Is::Commit, &commit(root, &[]));
    is_refused(&here, &pack.finish(), want, "no file").await;

    let mut pack = PackBuilder::default();
    let root = pack.add(Is::Tree, &tree(&[]));
    let want = pack.add(Is::Commit, &commit(root, &[absent(3)]));
    is_refused(&here, &pack.finish(), want, "no parent").await;

    let mut pack = PackBuilder::default();
    let blob = pack.add(Is::Blob, b"text");
    let root = pack.add(Is::Tree, &tree(&[("40000 folder", blob)]));
    let want = pack.add(Is::Commit, &commit(root, &[]));
    is_refused(&here, &pack.finish(), want, "a file where a folder should be").await;
}

/// G7: other objects than those that were asked for are none of ours.
#[tokio::test]
async fn other_objects_than_asked_for_are_refused() {
    let here = Here::new().await;
    let (pack, _) = real_pack();
    is_refused(&here, &pack, absent(9), "another commit").await;
    is_refused(&here, &PackBuilder::default().finish(), absent(9), "an empty pack").await;
    let mut pack = PackBuilder::default();
    let blob = pack.add(Is::Blob, b"text");
    is_refused(&here, &pack.finish_claiming(0), blob, "fewer objects than there are").await;
    let mut pack = PackBuilder::default();
    pack.add_delta(absent(4), b"\x04\x04\x04text");
    is_refused(&here, &pack.finish(), object_id(Is::Blob, b"text"), "a base that is nowhere").await;
}

/// A pack with a commit that git's checks may mind.
fn with_commit(text: &[u8]) -> (Vec<u8>, Oid) {
    let mut pack = PackBuilder::default();
    let root = pack.add(Is::Tree, &tree(&[]));
    let text = String::from_utf8_lossy(text).replace("TREE", &root.to_string());
    let want = pack.add(Is::Commit, text.as_bytes());
    (pack.finish(), want)
}

/// A pack with a commit of a tree that git's checks may mind.
fn with_entries(entries: &[&str]) -> (Vec<u8>, Oid) {
    let mut pack = PackBuilder::default();
    let blob = pack.add(Is::Blob, b"text");
    let entries: Vec<(&str, Oid)> = entries.iter().map(|name| (*name, blob)).collect();
    let root = pack.add(Is::Tree, &tree(&entries));
    let want = pack.add(Is::Commit, &commit(root, &[]));
    (pack.finish(), want)
}

/// G7: objects that break those who check them out, or that no git makes, are refused by strict fsck.
#[tokio::test]
async fn hostile_objects_are_refused() {
    let here = Here::new().await;
    for entries in [
        &["100644 .git"][..],
        &["100644 .GIT"],
        &["100644 git~1"],
        &["100644 .."],
        &["100644 ."],
        &["100644 a/b"],
        &["100644 b", "100644 a"],
        &["100644 a", "100644 a"],
        &["100644 "],
    ] {
        let (pack, want) = with_entries(entries);
        is_refused(&here, &pack, want, &format!("{entries:?}")).await;
    }
    let (author, committer) = ("author A <a@b> 1 +0000\n", "committer A <a@b> 1 +0000\n");
    for text in [
        format!("tree TREE\nauthor A 1 +0000\n{committer}\nno address\n"),
        format!("tree TREE\n{author}\nno committer\n"),
        format!("tree TREE\n{author}{committer}x\0y\n\nNUL in the head\n"),
        format!("tree TREE\nauthor A <a@b> 99999999999999999999999 +0000\n{committer}\nfar\n"),
        format!("{author}{committer}\nno tree\n"),
    ] {
        let (pack, want) = with_commit(text.as_bytes());
        is_refused(&here, &pack, want, &text).await;
    }
}

/// G7: what old and honest history has is let through.
#[tokio::test]
async fn old_flaws_are_let_through() {
    let committer = "committer A <a@b> 1 +0000\n";
    let commits = [
        format!("tree TREE\nauthor A <a@b> 1 +00000\n{committer}\nodd time zone\n"),
        format!("tree TREE\nauthor A<a@b> 1 +0000\n{committer}\nno space before the address\n"),
    ];
    let mut packs: Vec<_> = commits.iter().map(|text| with_commit(text.as_bytes())).collect();
    packs.push(with_entries(&["0100644 zero-padded"]));
    for (pack, want) in packs {
        let here = Here::new().await;
        let server = serves_pack(pack_answer(&pack));
        let fetched = here.fetch(&server.url(), &[want]).await.expect("it is let through");
        assert_eq!(fetched.received, [want]);
    }
}

/// G7: submodules are of other repositories: their commits are not looked for.
#[tokio::test]
async fn submodules_are_no_missing_objects() {
    let mut pack = PackBuilder::default();
    let root = pack.add(Is::Tree, &tree(&[("160000 module", absent(5))]));
    let want = pack.add(Is::Commit, &commit(root, &[]));
    let server = serves_pack(pack_answer(&pack.finish()));
    let here = Here::new().await;
    assert_eq!(here.fetch(&server.url(), &[want]).await.expect("it is whole").received, [want]);
}

/// G7: every kind of object can be asked for: tags, trees and files too.
#[tokio::test]
async fn all_kinds_of_objects_come() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commit("main", "file", "content\n");
    let tag = repo.annotated_tag("v1", tip);
    let root = repo.git(["rev-parse", "main^{tree}"]).parse().expect("a tree");
    let file = repo.git(["rev-parse", "main:file"]).parse().expect("a file");
    let server = TestServer::start("127.0.0.1", dir.path());
    for oids in [vec![file], vec![root], vec![tag], vec![tag, tip, root, file]] {
        let here = Here::new().await;
        let fetched = here.fetch(&server.url("project.git"), &oids).await.expect("it works");
        assert_eq!(fetched.received, oids);
        assert!(here.missing(&oids).await.is_empty());
    }
}

/// G5, G7: a second fetch builds on what the refs reach, and the repository is whole afterwards.
#[tokio::test]
async fn a_second_fetch_brings_only_what_is_new() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    // Text that does not compress away.
    let text: String =
        (0..4_000_u32).map(|line| format!("{}\n", line.wrapping_mul(2_654_435_761))).collect();
    let first = repo.commit("main", "large", &text);
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    let all = here.fetch(&server.url("project.git"), &[first]).await.expect("it works");
    here.repo().set_branch("main", first);
    let second = repo.commit("main", "large", &text.replacen("0\n", "zero\n", 1));
    let more = here.fetch(&server.url("project.git"), &[second]).await.expect("it works");
    assert!(more.bytes * 10 < all.bytes, "{} after {} bytes", more.bytes, all.bytes);
    here.repo().set_branch("main", second);
    here.repo().git(["fsck", "--strict", "--full"]);
}

/// G5: a server that is behind us, and knows none of our tips, sends no more than what is new to it and us.
#[tokio::test]
async fn a_server_that_is_behind_sends_little() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let text: String =
        (0..4_000_u32).map(|line| format!("{}\n", line.wrapping_mul(2_654_435_761))).collect();
    repo.commit("main", "large", &text);
    let old = repo.commits("main", 50)[49];
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    let all = here.fetch(&server.url("project.git"), &[old]).await.expect("it works");
    here.repo().set_branch("main", old);
    here.repo().commits("main", 300);
    let branch = repo.commit("main", "small", "new there\n");
    let more = here.fetch(&server.url("project.git"), &[branch]).await.expect("it works");
    assert!(more.bytes * 10 < all.bytes, "{} after {} bytes", more.bytes, all.bytes);
}

/// G7: a thin pack is completed with what is here; one that builds on what is not, is refused.
#[tokio::test]
async fn thin_packs_are_completed() {
    let here = Here::new().await;
    let mut pack = PackBuilder::default();
    let base_text = "a line that is long enough to be copied\n".repeat(20);
    let base = pack.add(Is::Blob, base_text.as_bytes());
    let root = pack.add(Is::Tree, &tree(&[("100644 file", base)]));
    let first = pack.add(Is::Commit, &commit(root, &[]));
    let server = serves_pack(pack_answer(&pack.finish()));
    here.fetch(&server.url(), &[first]).await.expect("it is whole");

    // Copies 0x40 bytes from the start of the base.
    let size = u8::try_from(base_text.len() & 0x7f).expect("seven bits") | 0x80;
    let delta = [size, u8::try_from(base_text.len() >> 7).expect("small"), 0x40, 0x90, 0x40];
    let mut thin = PackBuilder::default();
    thin.add_delta(base, &delta);
    let blob = object_id(Is::Blob, &base_text.as_bytes()[..0x40]);
    let root = thin.add(Is::Tree, &tree(&[("100644 file", blob)]));
    let second = thin.add(Is::Commit, &commit(root, &[first]));
    let server = serves_pack(pack_answer(&thin.finish()));
    // Without a ref nothing was offered to the server, so nothing may be built on.
    assert_eq!(here.fails(&server.url(), &[second]).await, Kind::Corrupt);
    here.repo().set_branch("main", first);
    let fetched = here.fetch(&server.url(), &[second]).await.expect("the base is here");
    assert_eq!(fetched.received, [second]);
    here.repo().set_branch("main", second);
    here.repo().git(["fsck", "--strict", "--full"]);
}

/// G7: into a repository that was made shallow, a pack has to bring all.
#[tokio::test]
async fn nothing_builds_on_a_shallow_repository() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let commits = repo.commits("main", 10);
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::with(private).await;
    let path = here.fetcher.repositories().create(&here.id).await.expect("it can be made");
    let local = TestRepo::open(&path);
    let url = format!("file://{}", repo.path().display());
    local.git(["fetch", "--quiet", "--depth=2", &url, "main:main"]);
    assert!(path.join("shallow").exists());
    assert_eq!(here.missing(&[commits[9]]).await, [commits[9]]);
    let fetched = here.fetch(&server.url("project.git"), &[commits[9]]).await.expect("it works");
    assert_eq!(fetched.received, [commits[9]]);
    assert!(!path.join("shallow").exists(), "with all its history it is shallow no more");
    assert!(local.is_complete(commits[9]));
}

/// G5, G7: what was asked for and not wanted in the end counts if it came all the same, in full.
#[tokio::test]
async fn what_comes_along_counts() {
    let mut pack = PackBuilder::default();
    let root = pack.add(Is::Tree, &tree(&[]));
    let first = pack.add(Is::Commit, &commit(root, &[]));
    let second = pack.add(Is::Commit, &commit(root, &[first]));
    let answer = pack_answer(&pack.finish());
    let server = ScriptedServer::start(move |request, stream| {
        if request.is_discovery() {
            let body = crate::fetch_server::capabilities("fetch=wait-for-done\n");
            ok(stream, ADVERTISEMENT, &body)
        } else if !request.wants() {
            let lines =
                [packet("acknowledgments\n"), packet(format!("ACK {second}\n")), b"0000".to_vec()];
            ok(stream, RESULT, &lines.concat())
        } else if request.contains(&absent(1).to_string()) {
            ok(stream, RESULT, &packet("ERR not our ref\n"))
        } else {
            ok(stream, RESULT, &answer)
        }
    });
    let here = Here::new().await;
    let asked = [absent(1), second, first];
    let fetched = here.fetch(&server.url(), &asked).await.expect("two are there");
    let mut received = fetched.received;
    received.sort_by_key(|oid| asked.iter().position(|asked| asked == oid));
    assert_eq!(received, [second, first]);
}
