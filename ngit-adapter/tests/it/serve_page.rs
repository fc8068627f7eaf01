//! The status page, in a real browser where there is one.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    serve_support::{Client, RelayProcess, assert_pushed, push, until},
    support::TestRepo,
    support_events::Person,
};

/// A relay with something held, a server that is down, and something let go of late.
async fn relay_with_something_to_show() -> RelayProcess {
    let relay = RelayProcess::start_with(&["--sync-default-delay-secs=1"], &[]);
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[])).await;
    client.publish_held(&owner.state("lantern", &[("refs/heads/main", main)])).await;
    assert_pushed(&push(&source, &relay.repository_url(&owner, "lantern"), &["main"]));
    let name = "<script>document.title='caught'</script> & more";
    let dead = "http://127.0.0.3:9/dead.git";
    client.publish_held(&relay.announcement(&owner, name, &[dead])).await;
    client.publish_held(&owner.state(name, &[("refs/heads/main", main)])).await;
    client.publish_held(&Person::new(2).pull_request(&owner, "nobody knows it", main, &[])).await;
    until("a server was tried", || relay.get("/").text().contains("next attempt in")).await;
    relay
}

/// A browser that shows a page without a screen, if one is installed.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

fn browse(browser: &Path, profile: &Path, what: &[&str]) -> String {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    command.args(["--no-proxy-server", "--hide-scrollbars", "--window-size=1000,1100"]);
    command.arg(format!("--user-data-dir={}", profile.display())).args(what);
    let output = command.output().expect("the browser can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The page says what is held and why, when it is tried next, which servers were asked, and what was let go; what
/// strangers wrote is shown and does nothing. With a browser on `PATH` it is what the browser shows, with a picture in
/// `target/tmp/status-page.png`; without one it is the page as it was sent.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_page_shows_what_is_going_on() {
    let relay = relay_with_something_to_show().await;
    let sent = relay.get("/");
    assert!(sent.head.contains("content-type: text/html; charset=utf-8"), "{}", sent.head);
    assert!(sent.head.contains("content-security-policy: default-src 'none'"), "{}", sent.head);
    balanced(&sent.text());
    let shown = match browser() {
        Some(browser) => in_browser(&browser, &relay),
        None => sent.text(),
    };
    for part in [
        "events held",
        "next attempt in",
        "waits for 1 object",
        "no announcement of its repository is known",
        "127.0.0.3",
        "&lt;script&gt;",
        "lantern",
        "Announcement",
        "State",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("<script"), "{shown}");
    assert!(!shown.contains("<title>caught"), "{shown}");
}

/// What a browser makes of the page: its elements, and a picture that is no empty one.
fn in_browser(browser: &Path, relay: &RelayProcess) -> String {
    let profile = TempDir::new().unwrap();
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("status-page.png");
    let _ = std::fs::remove_file(&picture);
    let url = relay.http("/");
    browse(browser, profile.path(), &[&format!("--screenshot={}", picture.display()), &url]);
    let png = std::fs::read(&picture).expect("the browser made a picture");
    assert!(png.starts_with(b"\x89PNG") && png.len() > 20_000, "{} bytes", png.len());
    let size = |at: usize| u32::from_be_bytes([png[at], png[at + 1], png[at + 2], png[at + 3]]);
    assert_eq!((size(16), size(20)), (1_000, 1_100));
    browse(browser, profile.path(), &["--dump-dom", &url])
}

/// Every element that begins ends, in order.
fn balanced(page: &str) {
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let name: String =
            tag.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').collect();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "{page}"),
            None if matches!(name.as_str(), "meta" | "") => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}
