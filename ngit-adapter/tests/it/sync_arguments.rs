//! What the program says to wrong arguments, and where settings come from.

use std::path::Path;

use crate::support_program::{PROGRAM, Ran, SyncRun, clean_command};

fn run(args: &[&str]) -> Ran {
    let started = std::time::Instant::now();
    let output = clean_command(Path::new(PROGRAM)).args(args).output();
    Ran::new(output.expect("the program can be started"), started.elapsed())
}

#[test]
fn wrong_usage_has_status_2() {
    for args in [
        &[][..],
        &["nonsense"],
        &["sync"],
        &["sync", "--events=-"],
        &["sync", "--git-data-dir=x"],
        &["sync", "--events=-", "--git-data-dir=x", "--deadline-secs=0"],
        &["sync", "--events=-", "--git-data-dir=x", "--our-domain=http://x/y"],
        &["sync", "--events=-", "--git-data-dir=x", "--database=sqlite:y"],
        &["demo", "x"],
    ] {
        let ran = run(args);
        assert_eq!(ran.status, Some(2), "{args:?}: {ran:?}");
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{args:?}: {ran:?}");
    }
}

#[test]
fn help_and_version_are_no_mistake() {
    for args in [&["--help"][..], &["sync", "--help"], &["demo", "--help"], &["--version"]] {
        let ran = run(args);
        assert_eq!(ran.status, Some(0), "{args:?}: {ran:?}");
        assert!(!ran.stdout.is_empty());
    }
    let help = run(&["sync", "--help"]).stdout;
    for name in [
        "--sync-loop-interval-ms",
        "NGIT_SYNC_LOOP_INTERVAL_MS",
        "--sync-domain-concurrent",
        "NGIT_SYNC_DOMAIN_CONCURRENT",
        "--sync-domain-rate-limit",
        "NGIT_SYNC_DOMAIN_RATE_LIMIT",
        "--sync-default-delay-secs",
        "NGIT_SYNC_DEFAULT_DELAY_SECS",
        "--sync-immediate-delay-ms",
        "NGIT_SYNC_IMMEDIATE_DELAY_MS",
    ] {
        assert!(help.contains(name), "{name} is in the help");
    }
}

/// Zero, and what is no number, is refused, whether it is a flag or comes from the environment; what is allowed is said.
#[test]
fn zero_is_refused_and_what_is_allowed_is_said() {
    for name in [
        "loop-interval-ms",
        "domain-concurrent",
        "domain-rate-limit",
        "default-delay-secs",
        "immediate-delay-ms",
    ] {
        let variable = format!("NGIT_SYNC_{}", name.replace('-', "_").to_uppercase());
        for value in ["0", "-1", "x", "", "1.5", "4294967296"] {
            let flag = SyncRun::new("").arg(format!("--sync-{name}={value}")).run();
            let environment = SyncRun::new("").env(&variable, value).run();
            for ran in [flag, environment] {
                assert_eq!(ran.status, Some(2), "{name}={value:?}: {ran:?}");
                assert!(ran.stderr.contains("from 1 to "), "{name}={value:?}: {ran:?}");
                assert!(ran.stderr.contains(&variable), "{name}={value:?}: {ran:?}");
            }
        }
        let flag_wins = SyncRun::new("").env(&variable, "0").arg(format!("--sync-{name}=1")).run();
        assert_eq!(flag_wins.status, Some(0), "a flag beats the environment: {flag_wins:?}");
        let environment = SyncRun::new("").env(&variable, "1").run();
        assert_eq!(environment.status, Some(0), "{environment:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_a_failure_that_names_it() {
    let missing = SyncRun::new("").arg("--events=/nonexistent/events.jsonl").run();
    assert_eq!(missing.status, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("/nonexistent/events.jsonl"), "{missing:?}");
    let folder = SyncRun::new("").arg("--events=/").run();
    assert_eq!(folder.status, Some(1), "{folder:?}");
    let out = SyncRun::new("").arg("--out=/nonexistent/out.jsonl").run();
    assert_eq!(out.status, Some(1), "{out:?}");
    assert!(out.stderr.contains("/nonexistent/out.jsonl"), "{out:?}");
    let git = SyncRun::new("").arg("--git-data-dir=/dev/null/git").run();
    assert_eq!(git.status, Some(1), "{git:?}");
    assert!(git.stderr.contains("/dev/null/git"), "{git:?}");
}

/// G2: without git it says so, and does nothing.
#[test]
fn a_missing_git_is_a_clear_error() {
    let sync = SyncRun::new("");
    let mut command = sync.command(Path::new(PROGRAM));
    let output = command.env("PATH", "/nonexistent").output().expect("the program can be started");
    let ran = Ran::new(output, std::time::Duration::ZERO);
    assert_eq!(ran.status, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("git") && ran.stderr.contains("PATH"), "{ran:?}");
}
