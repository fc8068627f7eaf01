//! Pushes and clones with a real git client, at the real program.

use std::io::Write;

use serde_json::json;
use tempfile::TempDir;

use crate::{
    serve_support::{
        Client, RelayProcess, assert_pushed, clone, push, push_with, state_at, stderr, until,
    },
    support::TestRepo,
    support_events::Person,
    support_server::TestServer,
};

fn repo(dir: &TempDir) -> TestRepo {
    TestRepo::init(dir.path().join("source.git"))
}

/// R2, R3, R7: a state is held and not served, a push of its commits is accepted, and at once the state and its
/// announcement are served, told live, and `HEAD` and the refs are right.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_fits_a_state_is_accepted_and_the_state_is_served_at_once() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = repo(&dir);
    let main = *source.commits("trunk", 5).last().unwrap();
    let tag = source.annotated_tag("v1", main);
    let mut tags = vec![
        vec!["d".to_owned(), "lantern".to_owned()],
        vec!["HEAD".to_owned(), "ref: refs/heads/trunk".to_owned()],
        vec!["refs/heads/trunk".to_owned(), main.to_string()],
        vec!["refs/tags/v1".to_owned(), tag.to_string()],
    ];
    tags.push(vec!["refs/tags/v1^{}".to_owned(), main.to_string()]);
    let announcement = relay.announcement(&owner, "lantern", &[]);
    let state = owner.sign(nostr::event::Kind::RepoState, 1_760_000_000, &tags);
    let url = relay.repository_url(&owner, "lantern");

    let mut client = Client::connect(&relay).await;
    client.publish_held(&announcement).await;
    client.publish_held(&state).await;
    let git = json!({"kinds": [30617, 30618]});
    assert!(client.request("live", git.clone()).await.is_empty());
    assert!(!clone(&url, &dir.path().join("early.git"), &[]).status.success());

    assert_pushed(&push(&source, &url, &["refs/heads/trunk", "refs/tags/v1"]));
    let mut told = [client.live("live").await, client.live("live").await];
    let mut both = [announcement.id.to_hex(), state.id.to_hex()];
    told.sort();
    both.sort();
    assert_eq!(told, both);
    let mut served = client.served(git).await;
    served.sort();
    assert_eq!(served, both);

    let here = relay.repository(&owner, "lantern");
    assert_eq!(here.head(), "refs/heads/trunk");
    assert_eq!(here.refs(), source.refs());
    for protocol in ["protocol.version=2", "protocol.version=0"] {
        let to = TempDir::new().unwrap();
        let cloned = clone(&url, &to.path().join("clone.git"), &[protocol]);
        assert!(cloned.status.success(), "{}", stderr(&cloned));
        let cloned = TestRepo::open(to.path().join("clone.git"));
        assert_eq!((cloned.refs(), cloned.head()), (source.refs(), "refs/heads/trunk".to_owned()));
        assert!(cloned.is_complete(tag));
    }
}

/// R7: what no state says is refused, with the reason at the client, and nothing of it stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_fits_no_state_is_refused_and_says_why() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = repo(&dir);
    let (first, second) = (source.commit("main", "a", "1"), source.commit("main", "a", "2"));
    let mut client = Client::connect(&relay).await;
    let url = relay.repository_url(&owner, "lantern");

    let refused = push(&source, &url, &["main"]);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("publish its announcement first"), "{}", stderr(&refused));

    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    let refused = stderr(&push(&source, &url, &["main"]));
    assert!(refused.contains("no state with authority over this repository is known"), "{refused}");

    client.publish_held(&owner.state("lantern", &[("refs/heads/main", first)])).await;
    let refused = stderr(&push(&source, &url, &["main"]));
    assert!(refused.contains("[remote rejected] main -> main"), "{refused}");
    assert!(refused.contains(&format!("the signed state says {first}")), "{refused}");
    let refused = stderr(&push(&source, &url, &["main:refs/heads/other", "main:refs/x/y"]));
    assert!(refused.contains("the signed state has no such ref"), "{refused}");
    assert!(refused.contains("only branches, tags and refs/nostr/"), "{refused}");
    assert!(client.served(json!({})).await.is_empty());
    let here = relay.repository(&owner, "lantern");
    assert!(!here.path().exists() || here.object_files().is_empty());

    assert_pushed(&push(&source, &url, &[&format!("{first}:refs/heads/main")]));
    let refused = stderr(&push(&source, &url, &["main"]));
    assert!(refused.contains(&format!("the signed state says {first}")), "{refused}");
    client.publish_held(&state_at(&owner, "lantern", 1, &[("refs/heads/main", second)])).await;
    assert_pushed(&push(&source, &url, &["main"]));
    assert_eq!(here.ref_oid("main"), Some(second));
}

/// R7: a state is applied as a whole. A push of a part says what else it needs, and a push of all is taken; a branch that
/// a newer state drops goes by a push too.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_brings_the_repository_to_the_whole_state_or_nowhere() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = repo(&dir);
    let (main, dev) = (source.commit("main", "a", "1"), source.commit("dev", "b", "1"));
    let mut client = Client::connect(&relay).await;
    let url = relay.repository_url(&owner, "lantern");
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    let refs = [("refs/heads/main", main), ("refs/heads/dev", dev)];
    client.publish_held(&owner.state("lantern", &refs)).await;

    let refused = stderr(&push(&source, &url, &["main"]));
    assert!(refused.contains(&format!("needs refs/heads/dev at {dev} too")), "{refused}");
    assert!(relay.repository(&owner, "lantern").object_files().is_empty());
    assert_pushed(&push(&source, &url, &["main", "dev"]));
    let here = relay.repository(&owner, "lantern");
    assert_eq!(here.refs(), source.refs());

    // One push moves a branch and takes another away.
    let next = source.commit("main", "a", "2");
    client.publish_held(&state_at(&owner, "lantern", 1, &[("refs/heads/main", next)])).await;
    let refused = stderr(&push(&source, &url, &["main", "dev:refs/heads/other"]));
    assert!(refused.contains("the signed state has no such ref"), "{refused}");
    assert_eq!(here.refs().len(), 2);
    assert_pushed(&push(&source, &url, &["main", ":dev"]));
    assert_eq!(here.refs(), [("refs/heads/main".to_owned(), next)].into());
}

/// P3, R3: a state that needs nothing new is served as it comes: its refs move, and nobody has to push.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_whose_data_is_here_is_served_as_it_comes() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = repo(&dir);
    let (first, second) = (source.commit("main", "a", "1"), source.commit("main", "a", "2"));
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", second)])).await;
    assert_pushed(&push(&source, &relay.repository_url(&owner, "lantern"), &["main"]));
    let back =
        state_at(&owner, "lantern", 1, &[("refs/heads/main", first), ("refs/heads/x", second)]);
    assert_eq!(client.publish(&back).await, (true, String::new()));
    let here = relay.repository(&owner, "lantern");
    assert_eq!((here.ref_oid("main"), here.ref_oid("x")), (Some(first), Some(second)));
    assert_eq!(client.served(json!({"kinds": [30618]})).await, [back.id.to_hex()]);
}

/// G10, R7: after a push the siblings over which the state has authority have the same refs, in full.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_reaches_the_siblings() {
    let (relay, dir) = (RelayProcess::start(), TempDir::new().unwrap());
    let [owner, other, stranger] = [1, 2, 3].map(Person::new);
    let source = repo(&dir);
    let main = *source.commits("main", 3).last().unwrap();
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement_with(&owner, "lantern", &[], &[&other])).await;
    client.publish_held(&relay.announcement_with(&other, "lantern", &[], &[&owner])).await;
    client.publish_held(&relay.announcement(&stranger, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", main)])).await;
    assert_pushed(&push(&source, &relay.repository_url(&owner, "lantern"), &["main"]));
    for owner in [&owner, &other] {
        let to = dir.path().join(format!("{}.git", owner.npub()));
        let cloned = clone(&relay.repository_url(owner, "lantern"), &to, &[]);
        assert!(cloned.status.success(), "{}", stderr(&cloned));
        assert_eq!(TestRepo::open(to).ref_oid("main"), Some(main));
    }
    assert!(!relay.repository(&stranger, "lantern").path().exists());
    assert_eq!(client.served(json!({"kinds": [30617]})).await.len(), 2);
}

/// R4, R7: a maintainer's state counts for the owner's repository, a stranger's does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_maintainers_state_opens_the_owners_repository() {
    let (relay, dir) = (RelayProcess::start(), TempDir::new().unwrap());
    let [owner, maintainer, stranger] = [1, 2, 3].map(Person::new);
    let source = repo(&dir);
    let main = source.commit("main", "a", "1");
    let mut client = Client::connect(&relay).await;
    let announcement = relay.announcement_with(&owner, "lantern", &[], &[&maintainer]);
    client.publish_held(&announcement).await;
    client.publish_held(&stranger.state("lantern", &[("refs/heads/main", main)])).await;
    let url = relay.repository_url(&owner, "lantern");
    let refused = stderr(&push(&source, &url, &["main"]));
    assert!(refused.contains("no state with authority"), "{refused}");
    let state = maintainer.state("lantern", &[("refs/heads/main", main)]);
    client.publish_held(&state).await;
    assert_pushed(&push(&source, &url, &["main"]));
    assert_eq!(client.served(json!({"kinds": [30618]})).await, [state.id.to_hex()]);
}

/// R7: the commit of a pull request may come before its event, which is served then as it comes, or after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_requests_commit_comes_before_or_after_its_event() {
    let (relay, dir) = (RelayProcess::start(), TempDir::new().unwrap());
    let (owner, author) = (Person::new(1), Person::new(2));
    let source = repo(&dir);
    let main = source.commit("main", "a", "1");
    source.set_branch("one", main);
    source.set_branch("two", main);
    let (one, two) = (source.commit("one", "b", "1"), source.commit("two", "c", "1"));
    let mut client = Client::connect(&relay).await;
    let url = relay.repository_url(&owner, "lantern");
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", main)])).await;
    assert_pushed(&push(&source, &url, &["main"]));
    client.request("live", json!({"kinds": [1618]})).await;
    let here = relay.repository(&owner, "lantern");

    let first = author.pull_request(&owner, "lantern", one, &[]);
    let name = format!("refs/nostr/{}", first.id.to_hex());
    assert_pushed(&push(&source, &url, &[&format!("one:{name}")]));
    assert_eq!(here.ref_oid(&name), Some(one));
    assert!(client.publish(&first).await.0);
    assert_eq!(client.live("live").await, first.id.to_hex());
    assert_eq!(here.ref_oid(&name), Some(one));

    let second = author.pull_request(&owner, "lantern", two, &[]);
    let name = format!("refs/nostr/{}", second.id.to_hex());
    client.publish_held(&second).await;
    let refused = stderr(&push(&source, &url, &[&format!("one:{name}")]));
    assert!(refused.contains(&format!("the event names another commit: {two}")), "{refused}");
    assert_eq!(here.ref_oid(&name), None);
    assert_pushed(&push(&source, &url, &[&format!("two:{name}")]));
    assert_eq!(client.live("live").await, second.id.to_hex());
    assert_eq!(here.ref_oid(&name), Some(two));
    let elsewhere = author.pull_request(&author, "other", one, &[]);
    client.publish_held(&elsewhere).await;
    let refspec = format!("one:refs/nostr/{}", elsewhere.id.to_hex());
    let refused = stderr(&push(&source, &url, &[&refspec]));
    assert!(refused.contains("the event is about another repository"), "{refused}");
    let refused = stderr(&push(&source, &url, &[&format!(":{name}")]));
    assert!(refused.contains("it goes when its event does"), "{refused}");
    let refused = stderr(&push(&source, &url, &["one:refs/nostr/abc"]));
    assert!(refused.contains("only branches, tags and refs/nostr/<event id>"), "{refused}");
}

/// R7: a pushed commit whose pull request never comes goes after its time, and only it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_commit_without_its_event_goes_after_a_while() {
    let relay = RelayProcess::start_with(&["--hold-pushed-secs=1"], &[]);
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = repo(&dir);
    let main = source.commit("main", "a", "1");
    let mut client = Client::connect(&relay).await;
    let url = relay.repository_url(&owner, "lantern");
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", main)])).await;
    let name = format!("refs/nostr/{}", "ab".repeat(32));
    assert_pushed(&push(&source, &url, &["main", &format!("main:{name}")]));
    let here = relay.repository(&owner, "lantern");
    until("the ref is gone", || here.ref_oid(&name).is_none()).await;
    assert_eq!(here.ref_oid("main"), Some(main));
    assert!(relay.log().contains("pushed commit without event given up"), "{}", relay.log());
}

/// R7: large pushes come in chunks after a probe; the client's settings decide.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_push_comes_in_chunks() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = repo(&dir);
    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    let mut text = String::new();
    while text.len() < 3 << 20 {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        text.push_str(&format!("{noise:016x}\n"));
    }
    let main = source.commit("main", "noise", &text);
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", main)])).await;
    let url = relay.repository_url(&owner, "lantern");
    assert_pushed(&push_with(&source, &url, &["main"], &["http.postBuffer=65536"]));
    assert!(relay.repository(&owner, "lantern").is_complete(main));
}

/// G7: a push passes the checks of a fetch: what fsck refuses stays out, and so does what is not whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_fails_the_checks_leaves_nothing() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = repo(&dir);
    source.commit("main", "a", "1");
    let blob = source.git_with_input(&["hash-object", "-w", "--stdin"], b"x");
    let mut tree = b"100644 .git\0".to_vec();
    for pair in blob.as_bytes().as_chunks::<2>().0 {
        tree.push(u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
    }
    let arguments = ["hash-object", "-t", "tree", "--literally", "-w", "--stdin"];
    let tree = source.git_with_input(&arguments, &tree);
    let bad = source.git(["commit-tree", "-m", "bad", &tree]).parse().unwrap();
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", bad)])).await;
    let url = relay.repository_url(&owner, "lantern");
    let refused = stderr(&push(&source, &url, &[&format!("{bad}:refs/heads/main")]));
    assert!(refused.contains("the pack failed the checks"), "{refused}");
    let here = relay.repository(&owner, "lantern");
    assert!(here.object_files().is_empty() && here.refs().is_empty());
    assert!(client.served(json!({})).await.is_empty());
    until("the quarantine is empty", || quarantines(&relay) == 0).await;
}

/// How many packs are in quarantine.
fn quarantines(relay: &RelayProcess) -> usize {
    let entries = std::fs::read_dir(relay.git_data().join(".quarantine")).unwrap();
    entries.flatten().filter(|it| it.file_name().to_string_lossy().starts_with("fetch-")).count()
}

/// G4: when a client goes in the middle of its push, every process that worked for it ends and nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_leaves_nothing_behind() {
    let (relay, dir, owner) = (RelayProcess::start(), TempDir::new().unwrap(), Person::new(1));
    let source = repo(&dir);
    let main = source.commit("main", "a", "1");
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", main)])).await;
    let path = relay.repository_url(&owner, "lantern");
    let path = path.split_once("//").unwrap().1.split_once('/').unwrap().1;
    let line = format!("{} {main} refs/heads/main\0report-status side-band-64k", "0".repeat(40));
    let line = format!("{:04x}{line}0000PACK\0\0\0\u{2}\0\0\0\u{9}", line.len() + 4);
    let mut stream = std::net::TcpStream::connect(relay.address()).unwrap();
    write!(
        stream,
        "POST /{path}/git-receive-pack HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\
         Content-Type: application/x-git-receive-pack-request\r\n\r\n{line}"
    )
    .unwrap();
    until("the push is in quarantine", || quarantines(&relay) == 1).await;
    drop(stream);
    until("the quarantine is empty", || quarantines(&relay) == 0).await;
    assert!(relay.repository(&owner, "lantern").object_files().is_empty());
    assert_pushed(&push(&source, &relay.repository_url(&owner, "lantern"), &["main"]));
}

/// R2: git data that is here before its event may be served is not served either.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_fetched_in_part_is_not_served() {
    let relay = RelayProcess::start_with(&["--sync-default-delay-secs=1"], &[]);
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("lantern.git"));
    let main = source.commit("main", "a", "1");
    let server = TestServer::start("127.0.0.2", dir.path());
    let nowhere = "ab".repeat(20).parse().unwrap();
    let mut client = Client::connect(&relay).await;
    let url = server.url("lantern.git");
    client.publish_held(&relay.announcement(&owner, "lantern", &[&url])).await;
    let refs = [("refs/heads/main", main), ("refs/heads/dev", nowhere)];
    client.publish_held(&owner.state("lantern", &refs)).await;
    let here = relay.repository(&owner, "lantern");
    until("a part is here", || here.path().exists() && !here.object_files().is_empty()).await;
    assert!(here.is_complete(main));
    let url = relay.repository_url(&owner, "lantern");
    assert!(!clone(&url, &dir.path().join("clone.git"), &[]).status.success());
    assert!(client.served(json!({})).await.is_empty());
}
