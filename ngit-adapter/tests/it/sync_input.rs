//! Lines that are no events, and events that are none of our business.

use tempfile::TempDir;

use crate::{
    support::TestRepo,
    support_events::{Person, SOME_TIME, lines},
    support_program::SyncRun,
    support_project::Project,
    support_server::TestServer,
};

/// R1: each bad line is rejected by its number and with a reason; the good ones among them are released.
#[test]
fn bad_lines_are_rejected_by_number_and_the_others_go_on() {
    let folder = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(folder.path().join("project.git"));
    let main = repo.commits("main", 3);
    let server = TestServer::start("127.0.0.1", folder.path());
    let [owner, other] = [1, 2].map(Person::new);
    let announcement = owner.announcement("project", &[&server.url("project.git")]);
    let state = owner.state("project", &[("refs/heads/main", main[2])]);
    let pull_request = other.pull_request(&owner, "project", main[1], &[]);

    let json = pull_request.as_json();
    let changed = |from: &str, to: &str| {
        assert!(json.contains(from), "{from} is in {json}");
        json.replacen(from, to, 1)
    };
    let id = pull_request.id.to_hex();
    let sig = pull_request.sig.to_string();
    let wrong_id = changed(&id, &"0".repeat(64));
    let wrong_signature = changed(&sig, &state.sig.to_string());
    let someone_else = changed(&other.key().to_hex(), &owner.key().to_hex());
    let nested = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
    let nested_in_event = json.replacen("\"tags\":", &format!("\"x\":{nested},\"tags\":"), 1);
    let no_commit = other.sign(
        nostr::event::Kind::GitPullRequest,
        SOME_TIME,
        &[["a", &format!("30617:{}:project", owner.key().to_hex())]],
    );
    let bad_commit = other.sign(
        nostr::event::Kind::GitPullRequest,
        SOME_TIME,
        &[["a", &format!("30617:{}:project", owner.key().to_hex())], ["c", "--upload-pack=x"]],
    );
    let no_repository =
        other.sign(nostr::event::Kind::GitPullRequest, SOME_TIME, &[["c", &main[0].to_string()]]);
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(3 << 20));
    let input = [
        /* 1 */ "this is no JSON".to_owned(),
        /* 2 */ announcement.as_json(),
        /* 3 */ wrong_id,
        /* 4 */ wrong_signature,
        /* 5 */ someone_else,
        /* 6 */ String::new(),
        /* 7 */ nested,
        /* 8 */ state.as_json(),
        /* 9 */ nested_in_event,
        /* 10 */ no_commit.as_json(),
        /* 11 */ bad_commit.as_json(),
        /* 12 */ no_repository.as_json(),
        /* 13 */ long,
        /* 14 */ "null".to_owned(),
        /* 15 */ json.clone(),
    ]
    .join("\n");
    let ran = SyncRun::new(&input).run();

    assert_eq!(ran.status, Some(0), "{ran:?}");
    let mut lines: Vec<u64> =
        ran.of_type("rejected").iter().filter_map(|record| record["line"].as_u64()).collect();
    lines.sort_unstable();
    assert_eq!(lines, [1, 3, 4, 5, 7, 9, 10, 11, 12, 13, 14]);
    for record in ran.of_type("rejected") {
        let reason = record["reason"].as_str().expect("a reason is a text");
        assert!(!reason.is_empty() && reason.len() < 500, "{record}");
    }
    let mut released = [state.id.to_hex(), pull_request.id.to_hex()];
    released.sort();
    assert_eq!(ran.texts("released", "id"), released);
    assert_eq!(ran.summary("rejected"), 11);
    assert_eq!(ran.summary("events"), 3);
}

/// A line that is not UTF-8, or has no end, or ends as other systems end lines.
#[test]
fn input_comes_as_bytes() {
    let [owner, other] = [1, 2].map(Person::new);
    let patch = other.sign(nostr::event::Kind::GitPatch, SOME_TIME, &[["d", "x"]]);
    let announcement = owner.announcement("project", &[]);
    let mut input = b"\xef\xbb\xbf".to_vec();
    input.extend_from_slice(patch.as_json().as_bytes());
    input.extend_from_slice(b"\r\n\xff\xfe\n");
    input.extend_from_slice(announcement.as_json().as_bytes());
    let sync = SyncRun::new("");
    let mut command = sync.command(std::path::Path::new(crate::support_program::PROGRAM));
    // The last of two values counts for nothing: the file is given once.
    let file = sync.git_data_dir().with_file_name("events.jsonl");
    std::fs::write(&file, input).expect("a file can be written");
    let output = command.output().expect("the program can be started");
    let ran = crate::support_program::Ran::new(output, std::time::Duration::ZERO);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!((ran.summary("passed"), ran.summary("announcements")), (1, 1));
    assert_eq!(ran.of_type("rejected")[0]["line"], 2);
    assert_eq!(ran.summary("rejected"), 1);
}

/// Real events from public relays are read as what they are. No request is made: the quiet time is longer than the run.
#[test]
fn real_events_are_counted_by_kind() {
    let input = include_str!("../data/nip34-events.jsonl");
    let sync =
        SyncRun::strict(input).arg("--sync-immediate-delay-ms=3600000").arg("--deadline-secs=8");
    let ran = sync.run();
    assert_eq!(ran.status, Some(3), "{ran:?}");
    assert_eq!(ran.summary("events"), 29);
    assert_eq!(ran.summary("rejected"), 0);
    assert_eq!(ran.summary("announcements"), 14);
    assert_eq!(ran.summary("held"), 12);
    assert_eq!(ran.summary("passed"), 1);
    assert_eq!(ran.summary("other"), 2);
    assert_eq!(ran.summary("released"), 0);
    assert_eq!(ran.summary("fetches"), 0);
    assert_eq!(ran.of_type("held").len(), 12);
    for held in ran.of_type("held") {
        assert_eq!(held["kind"], 30618);
        let missing = held["missing"].as_array().expect("a list");
        assert!(!missing.is_empty(), "{held}");
    }
}

/// An event that comes twice is held and released once, and its lines are all counted.
#[test]
fn a_duplicate_is_no_new_event() {
    let project = Project::served();
    let Project { server, announcement, state, .. } = &project;
    let all = [announcement, state, state, announcement, state];
    let ran = SyncRun::new(&lines(all)).run();
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!(ran.summary("events"), 5);
    assert_eq!((ran.summary("released"), ran.summary("announcements")), (1, 1));
    assert_eq!(server.log().fetches(), 1);
}
