//! Git runs without its surroundings, and values from outside stay values.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use ngit_adapter::{
    RepositoryId,
    git::{Git, GitError, GitVersion, Repositories, SmartHttpFetcher},
};
use purgatory_sync::{CloneUrl, FetchRequest, GitFetcher, Identifier, Target};
use tempfile::TempDir;

use crate::{
    fetch_support::{Here, files_below},
    support::TestRepo,
    support_server::TestServer,
};

/// Writes a program.
fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    // Through a copy: a program that is open for writing in any process cannot be run.
    let draft = dir.join(format!("{name}.draft"));
    fs::write(&draft, text).expect("a file can be written");
    let status = std::process::Command::new("cp").arg(&draft).arg(&path).status();
    assert!(status.expect("cp can be started").success());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path
}

fn real_git() -> PathBuf {
    let path = std::env::var_os("PATH").expect("there is a PATH");
    let mut gits = std::env::split_paths(&path).map(|folder| folder.join("git"));
    gits.find(|git| git.is_file()).expect("git is installed")
}

/// G2: git is run with an environment of its own and nothing else, and no value from outside is among its arguments.
#[tokio::test]
async fn git_sees_nothing_of_its_surroundings() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commits("main", 3)[2];
    let server = TestServer::start("127.0.0.1", dir.path());
    let log = dir.path().join("log");
    let spy = script(
        dir.path(),
        "spy",
        &format!(
            "#!/bin/sh\n{{ echo \"ARGS $*\"; export -p; }} >>'{}'\nexec '{}' \"$@\"\n",
            log.display(),
            real_git().display()
        ),
    );
    let git = Git::at(&spy).await.expect("it is git");
    let here = Here::with(|builder| builder.allow_private_networks(true).git(git)).await;
    here.fetch(&server.url("project.git"), &[tip]).await.expect("it works");
    let log = fs::read_to_string(log).expect("git was run");

    let runs: Vec<&str> = log.lines().filter(|line| line.starts_with("ARGS ")).collect();
    let subcommands = ["version", "index-pack", "rev-list"];
    assert_eq!(runs.len(), subcommands.len(), "{runs:?}");
    for (run, subcommand) in runs.iter().zip(subcommands) {
        assert!(run.contains(&format!(" {subcommand}")), "{run}");
        assert!(run.contains("core.hooksPath=/dev/null") && run.contains("protocol.allow=never"));
        assert!(!run.contains(&tip.to_string()) && !run.contains("project"), "{run}");
    }
    let allowed = [
        "LC_ALL",
        "LANGUAGE",
        "HOME",
        "XDG_CONFIG_HOME",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_GLOBAL",
        "GIT_ATTR_NOSYSTEM",
        "GIT_ALLOW_PROTOCOL",
        "GIT_PROTOCOL_FROM_USER",
        "GIT_TERMINAL_PROMPT",
        "GIT_ASKPASS",
        "SSH_ASKPASS",
        "GIT_PAGER",
        "GIT_EDITOR",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_NO_LAZY_FETCH",
        "GIT_DIR",
        "GIT_ALLOC_LIMIT",
        // What the shell of this test adds.
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    ];
    for line in
        log.lines().filter(|line| line.starts_with("export ") || line.starts_with("declare "))
    {
        let name =
            line.split([' ', '=']).find(|word| !matches!(*word, "export" | "declare" | "-x"));
        assert!(name.is_some_and(|name| allowed.contains(&name)), "{line}");
    }
    assert!(log.contains("HOME='/dev/null'") || log.contains("HOME=\"/dev/null\""), "{log}");
}

/// G2: a git that is missing, silent, no git, or too old is a clear error at the start.
#[tokio::test]
async fn unusable_gits_are_clear_errors() {
    let dir = TempDir::new().expect("a temporary folder");
    let says =
        |name: &str, text: &str| script(dir.path(), name, &format!("#!/bin/sh\necho '{text}'\n"));
    let missing = Git::at(dir.path().join("nothing")).await.expect_err("there is none");
    assert!(matches!(missing, GitError::Run { .. }) && missing.to_string().contains("nothing"));
    let other = Git::at(says("other", "hg version 6")).await.expect_err("it is no git");
    assert!(matches!(other, GitError::NoVersion { .. }));
    let old = Git::at(says("old", "git version 2.36.6")).await.expect_err("it is too old");
    assert!(matches!(old, GitError::TooOld { .. }));
    assert!(old.to_string().contains("2.36.6") && old.to_string().contains("2.37"), "{old}");
    let new = Git::at(says("new", "git version 2.37.0.windows.1")).await.expect("it is new enough");
    assert_eq!(new.version(), GitVersion::new(2, 37, 0));
    assert!(Git::find().await.expect("git is installed").program().is_absolute());
}

/// G2: versions as they are printed by git and by those who package it.
#[test]
fn versions_are_read() {
    let version = |text| GitVersion::parse(text);
    assert_eq!(version("git version 2.39.5\n"), Some(GitVersion::new(2, 39, 5)));
    assert_eq!(version("git version 2.39.5 (Apple Git-154)"), Some(GitVersion::new(2, 39, 5)));
    assert_eq!(version("git version 2.48.0.rc1"), Some(GitVersion::new(2, 48, 0)));
    assert_eq!(version("git version 2.49.GIT"), Some(GitVersion::new(2, 49, 0)));
    for text in [
        "",
        "git version",
        "git version two",
        "version 2.39.5",
        "git version 2",
        "git version 2.99999999999",
    ] {
        assert_eq!(version(text), None, "{text}");
    }
    let holes = |minor, patch| GitVersion::new(2, minor, patch).has_known_holes();
    assert!(holes(39, 5) && holes(43, 6) && holes(47, 2) && holes(50, 0));
    assert!(
        !holes(43, 7)
            && !holes(47, 3)
            && !holes(51, 0)
            && !GitVersion::new(3, 0, 0).has_known_holes()
    );
}

/// G1, G11: identifiers and targets that look like options, commands, refspecs or paths are names and nothing else.
#[tokio::test]
async fn identifiers_are_only_names() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commit("main", "file", "text");
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    let url: CloneUrl = server.url("project.git").parse().expect("a clone URL");
    for name in [
        "--upload-pack=touch marker",
        "-c",
        "ext::sh -c touch% marker",
        "$(touch marker)",
        "`touch marker`",
        "; touch marker",
        "| touch marker",
        "+refs/heads/*:refs/heads/*",
        "../../marker",
        "..",
        "/marker",
        "..%2Fmarker",
        "line\nbreak",
        "nul\0byte",
        ".git",
        "a:b",
        "\u{1f980}",
        "",
        "marker.git/objects",
    ] {
        let id = RepositoryId::new(here.id.owner, Identifier::from(name));
        let targets = [id.to_target()];
        let oids = [tip];
        let request = FetchRequest::new(&id.identifier, &url, &oids, &targets);
        let fetched = here.fetcher.fetch(request).await.expect(name);
        assert_eq!(fetched.received, [tip], "{name:?}");
        let path = here.fetcher.repositories().path(&id);
        assert!(TestRepo::open(path).is_complete(tip), "{name:?}");
    }
    let marked = files_below(here.dir.path()).into_iter().filter(|path| path.ends_with("marker"));
    assert_eq!(marked.count(), 0);
    let mut entries: Vec<_> = fs::read_dir(here.dir.path())
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    entries.sort();
    assert_eq!(entries.len(), 2, "the owner's folder and the quarantine: {entries:?}");
}

/// G1: a target that names no repository, or one of another identifier, brings nothing anywhere.
#[tokio::test]
async fn targets_of_others_are_refused() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commit("main", "file", "text");
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    let url: CloneUrl = server.url("project.git").parse().expect("a clone URL");
    let owner = here.id.owner.to_hex();
    for target in
        ["", "x", "../..:project", &format!("{owner}:other"), &format!("{}:project", &owner[1..])]
    {
        let targets = [Target::new(target)];
        let oids = [tip];
        let request = FetchRequest::new(&here.id.identifier, &url, &oids, &targets);
        let error = here.fetcher.fetch(request).await.expect_err(target);
        assert_eq!(error.kind(), purgatory_sync::FetchErrorKind::Local, "{target}");
    }
    assert!(here.missing(&[tip]).await == [tip]);
}

/// G2: what strangers may have left in a repository is not run by a fetch into it.
#[tokio::test]
async fn settings_and_hooks_of_the_repository_are_not_run() {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let commits = repo.commits("main", 5);
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    let url = server.url("project.git");
    here.fetch(&url, &commits[..3]).await.expect("it works");
    here.repo().set_branch("main", commits[2]);
    let (path, marker) = (here.repo().path().to_owned(), dir.path().join("marker"));
    let touch =
        script(dir.path(), "touch-it", &format!("#!/bin/sh\ntouch '{}'\n", marker.display()));
    fs::create_dir_all(path.join("hooks")).expect("it is ours");
    for hook in ["post-index-change", "reference-transaction", "pre-auto-gc", "post-update"] {
        fs::copy(&touch, path.join("hooks").join(hook)).expect("it is ours");
    }
    let settings = format!(
        "[core]\n\tfsmonitor = {0}\n\talternateRefsCommand = {0}\n\tsshCommand = {0}\n\tpager = {0}\n\
         [uploadpack]\n\tpackObjectsHook = {0}\n[gpg]\n\tprogram = {0}\n[alias]\n\tindex-pack = !{0}\n",
        touch.display()
    );
    let mut config = fs::read_to_string(path.join("config")).expect("it is there");
    config.push_str(&settings);
    fs::write(path.join("config"), config).expect("it is ours");
    here.fetch(&url, &commits[4..]).await.expect("it works");
    assert!(!marker.exists());
    assert!(here.repo().is_complete(commits[4]));
}

/// G2: at the start a folder that cannot be used is a clear error.
#[tokio::test]
async fn a_start_without_certificates_is_told() {
    let dir = TempDir::new().expect("a temporary folder");
    let repositories = Repositories::open(dir.path()).expect("the folder can be used");
    for pem in [
        &b""[..],
        b"nonsense",
        b"-----BEGIN CERTIFICATE-----\nAAAA",
        b"-----BEGIN PRIVATE KEY-----\n",
    ] {
        let builder = SmartHttpFetcher::builder(repositories.clone());
        assert!(builder.add_root_certificates(pem).is_err());
    }
}
