//! How it ends, and that what was acknowledged outlives it.

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    serve_support::{Client, RelayProcess, assert_pushed, push, until},
    support::TestRepo,
    support_events::Person,
};

/// R8: SIGTERM and Ctrl-C end it cleanly, with connections on, with exit status 0.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut relay = RelayProcess::start();
        let mut client = Client::connect(&relay).await;
        client.request("a", json!({})).await;
        let idle = std::net::TcpStream::connect(relay.address()).unwrap();
        let begun = std::time::Instant::now();
        let status = tokio::task::block_in_place(|| relay.end_by(signal));
        assert_eq!(status.code(), Some(0), "{signal:?}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
        assert_eq!(client.next().await, None);
        drop(idle);
    }
}

/// R8: what is held outlives SIGTERM and kill -9, and can be completed after either.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_outlives_the_process() {
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let mut relay = RelayProcess::start_with(&["--domain=relay.example.org"], &[]);
    let tags = [
        vec!["d".to_owned(), "lantern".to_owned()],
        vec!["clone".to_owned(), format!("https://relay.example.org/{}/lantern.git", owner.npub())],
        vec!["relays".to_owned(), "wss://relay.example.org".to_owned()],
    ];
    let announcement = owner.sign(nostr::event::Kind::GitRepoAnnouncement, 1_760_000_000, &tags);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    let pull_request = Person::new(2).pull_request(&owner, "lantern", main, &[]);
    let mut client = Client::connect(&relay).await;
    client.publish_held(&announcement).await;
    tokio::task::block_in_place(|| relay.end_by(Signal::TERM));
    relay = RelayProcess::start_in(relay.into_dir(), &["--domain=relay.example.org"], &[]);
    let mut client = Client::connect(&relay).await;
    client.publish_held(&state).await;
    // Killed without warning.
    relay = RelayProcess::start_in(relay.into_dir(), &["--domain=relay.example.org"], &[]);
    let url = relay.repository_url(&owner, "lantern");
    let name = format!("refs/nostr/{}", pull_request.id.to_hex());
    assert_pushed(&push(&source, &url, &["main", &format!("main:{name}")]));
    relay = RelayProcess::start_in(relay.into_dir(), &["--domain=relay.example.org"], &[]);
    let mut client = Client::connect(&relay).await;
    let mut served = client.served(json!({"kinds": [30617, 30618]})).await;
    served.sort();
    let mut both = [announcement.id.to_hex(), state.id.to_hex()];
    both.sort();
    assert_eq!(served, both);
    // The placeholder outlived it, too.
    client.request("live", json!({"kinds": [1618]})).await;
    assert!(client.publish(&pull_request).await.0);
    assert_eq!(client.live("live").await, pull_request.id.to_hex());
    assert_eq!(relay.repository(&owner, "lantern").ref_oid(&name), Some(main));
}

/// A second one on the same data is a clear error, and harms nothing; so is a port that is taken.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_use_is_a_clear_error() {
    let relay = RelayProcess::start();
    let data = relay.git_data().parent().unwrap().to_owned();
    let second = |address: String, relay_data: std::path::PathBuf| {
        let mut command = crate::support_program::clean_command(std::path::Path::new(
            crate::support_program::PROGRAM,
        ));
        command.args(["serve", "--bind-address", &address]);
        command.arg("--git-data-path").arg(data.join("git2"));
        command.arg("--relay-data-path").arg(relay_data);
        let output = command.output().expect("the program can be started");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, said) = second("127.0.0.1:0".to_owned(), data.join("relay"));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("the relay cannot be opened"), "{said}");
    let (status, said) = second(relay.address().to_string(), data.join("relay2"));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("cannot listen on"), "{said}");
    assert_eq!(relay.get("/healthz").text(), "ok\n");
}

/// `/healthz` says what is wrong: here, that the folder of repositories cannot be written.
#[tokio::test(flavor = "multi_thread")]
async fn health_says_what_is_wrong() {
    let relay = RelayProcess::start();
    assert_eq!(
        (relay.get("/healthz").status, relay.get("/healthz").text()),
        (200, "ok\n".to_owned())
    );
    let away = relay.git_data().with_file_name("away");
    std::fs::rename(relay.git_data(), &away).unwrap();
    let answer = relay.get("/healthz");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.text(), "the folder of repositories cannot be written\n");
    std::fs::rename(&away, relay.git_data()).unwrap();
    until("it is well again", || relay.get("/healthz").status == 200).await;
}

/// Log lines are text or JSON, as asked for.
#[tokio::test(flavor = "multi_thread")]
async fn log_lines_are_json_if_asked_for() {
    let relay =
        RelayProcess::start_with(&["--log-format=json"], &[("RUST_LOG", "ngit_adapter=info")]);
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", main)])).await;
    assert_pushed(&push(&source, &relay.repository_url(&owner, "lantern"), &["main"]));
    let lines = relay.log();
    let records: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let of = |message: &str| records.iter().any(|it| it["message"] == message);
    assert!(of("push accepted") && of("state synced"), "{lines}");
}
