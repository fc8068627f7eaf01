//! The examples of ngit-adapter run and do what they say.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use ngit_adapter::nostr::{
    event::{Event, EventBuilder, FinalizeEvent, Kind, Tag},
    key::Keys,
};

/// A folder with `project.git`, which has one commit, and that commit.
fn repository(folder: &Path) -> String {
    let path = folder.join("project.git");
    let git = |args: &[&str], input: &str| {
        let mut child = Command::new("git")
            .args(args)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")])
            .envs([("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
            .envs([("GIT_COMMITTER_NAME", "A"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
            .env("GIT_DIR", &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git starts");
        child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("git reads");
        let output = child.wait_with_output().expect("git ends");
        assert!(output.status.success(), "git {args:?}");
        String::from_utf8(output.stdout).expect("git prints text").trim().to_owned()
    };
    git(&["init", "--quiet", "--bare", "--template="], "");
    let tree = git(&["mktree"], "");
    let commit = git(&["commit-tree", "-m", "first", &tree], "");
    git(&["update-ref", "refs/heads/main", &commit], "");
    commit
}

struct Server(Child, String);

impl Server {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ngit_serve_git"))
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example starts");
        let mut url = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut url).expect("it says its address");
        Self(child, url.trim().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already: that is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(program: &str, args: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example starts");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("the example ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn a_commit_is_served_and_fetched() {
    let [served, here] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let commit = repository(served.path());
    let server = Server::start(served.path());
    let url = format!("{}project.git", server.1);
    let here = here.path().display().to_string();
    let text = run(env!("CARGO_BIN_EXE_ngit_fetch"), &[&url, &commit, &here, "--local"], "");
    assert!(text.starts_with("1 of 1 objects, 2 requests\n0 missing in "), "{text}");
}

#[test]
fn events_are_held_until_their_data_is_here() {
    let [served, here] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let commit = repository(served.path());
    let server = Server::start(served.path());
    let keys = Keys::generate();
    let sign = |kind, tags: &[[&str; 2]]| -> Event {
        let tags = tags.iter().map(|&tag| Tag::parse(tag).expect("a tag has a name"));
        EventBuilder::new(kind, "").tags(tags).finalize(&keys).expect("a key can sign")
    };
    let url = format!("{}project.git", server.1);
    let announcement = sign(Kind::GitRepoAnnouncement, &[["d", "project"], ["clone", &url]]);
    let state = sign(Kind::RepoState, &[["d", "project"], ["refs/heads/main", &commit]]);
    let nowhere = "ab".repeat(20);
    let held = sign(
        Kind::GitPullRequest,
        &[["a", &format!("30617:{}:project", keys.public_key().to_hex())], ["c", &nowhere]],
    );
    let input: String =
        [&state, &announcement, &held].map(|event| event.as_json() + "\n").concat() + "nonsense\n";
    let here = here.path().display().to_string();
    let text = run(env!("CARGO_BIN_EXE_ngit_hold_events"), &[&here, "--local"], &input);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("refused: "), "{text}");
    assert_eq!(lines[1], format!("announced project: {}", announcement.id));
    assert_eq!(lines[2], format!("released project: {}", state.id));
    assert_eq!(lines[3..], ["1 still held"]);
}
