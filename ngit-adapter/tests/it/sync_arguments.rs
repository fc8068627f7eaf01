//! What the program says to wrong arguments, and where settings come from.

use std::{path::Path, time::Duration};

use clap::Parser;
use ngit_adapter::cli::SyncArgs;
use purgatory_sync::SyncConfig;

use crate::{
    support_events::{Person, lines},
    support_program::{PROGRAM, Ran, SyncRun, clean_command},
};

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
    for args in [
        &["--help"][..],
        &["sync", "--help"],
        &["demo", "--help"],
        &["serve", "--help"],
        &["--version"],
    ] {
        let ran = run(args);
        assert_eq!(ran.status, Some(0), "{args:?}: {ran:?}");
        assert!(!ran.stdout.is_empty());
        // Where there is no terminal; at one, its own width.
        assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
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
    let ran = Ran::new(output, Duration::ZERO);
    assert_eq!(ran.status, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("git") && ran.stderr.contains("PATH"), "{ran:?}");
}

#[test]
fn the_input_is_not_overwritten_by_the_output() {
    let sync = SyncRun::new("this is precious\n");
    let input = sync.git_data_dir().with_file_name("events.jsonl");
    let link = input.with_file_name("link.jsonl");
    std::fs::hard_link(&input, &link).expect("a link can be made");
    for out in [&input, &link] {
        let mut command = sync.command(Path::new(PROGRAM));
        command.arg("--deadline-secs=5");
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut command = clean_command(Path::new(PROGRAM));
        // The same arguments, with another output.
        let place = args.iter().position(|arg| arg == "--out").expect("there is an output");
        command.args(&args[..=place]).arg(out).args(&args[place + 2..]);
        let output = command.output().expect("the program can be started");
        let ran = Ran::new(output, Duration::ZERO);
        assert_eq!(ran.status, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("is the input"), "{ran:?}");
        let kept = std::fs::read_to_string(&input).expect("the input is there");
        assert_eq!(kept, "this is precious\n");
    }
}

/// What could not be written is a failure, and not a success that lost something.
#[test]
fn a_full_disk_is_a_failure() {
    let owner = Person::new(1);
    let events = lines([&owner.announcement("project", &[])]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let sync = SyncRun::new(&events);
    let mut command = sync.command(Path::new(PROGRAM));
    let output = command.stdout(full.expect("/dev/full is there")).output();
    let ran = Ran::new(output.expect("the program can be started"), Duration::ZERO);
    assert_eq!(ran.status, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("standard output could not be written"), "{ran:?}");
}

/// The arguments and the configuration allow the same, and have the same defaults.
#[test]
fn the_arguments_are_those_of_the_configuration() {
    #[derive(clap::Parser)]
    struct Relay {
        #[command(flatten)]
        sync: SyncArgs,
    }
    let config = |args: &[&str]| Relay::try_parse_from(args).map(|relay| relay.sync.to_config());
    let defaults = config(&["relay"]).expect("no argument is needed");
    assert_eq!(defaults, Ok(SyncConfig::default()));
    for (name, most) in [
        ("loop-interval-ms", 3_600_000),
        ("domain-concurrent", 10_000),
        ("domain-rate-limit", 1_000_000),
        ("default-delay-secs", 86_400),
        ("immediate-delay-ms", 3_600_000),
    ] {
        for allowed in [1, most] {
            let args = ["relay".to_owned(), format!("--sync-{name}={allowed}")];
            let config = config(&args.each_ref().map(String::as_str));
            assert!(config.is_ok_and(|config| config.is_ok()), "{name}={allowed}");
        }
        let args = ["relay".to_owned(), format!("--sync-{name}={}", most + 1)];
        assert!(config(&args.each_ref().map(String::as_str)).is_err(), "{name} over {most}");
    }
    let config = config(&[
        "relay",
        "--sync-loop-interval-ms=11",
        "--sync-domain-concurrent=12",
        "--sync-domain-rate-limit=13",
        "--sync-default-delay-secs=14",
        "--sync-immediate-delay-ms=15",
    ]);
    let config = config.expect("they are allowed").expect("they are allowed");
    assert_eq!(config.loop_interval(), Duration::from_millis(11));
    assert_eq!(config.domain_concurrent(), 12);
    assert_eq!(config.domain_rate_limit(), 13);
    assert_eq!(config.submitted_delay(), Duration::from_secs(14));
    assert_eq!(config.synced_delay(), Duration::from_millis(15));
    assert_eq!(config.synced_max_wait(), Duration::from_millis(150));
}
