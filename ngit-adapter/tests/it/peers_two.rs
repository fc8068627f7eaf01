//! Two relays of which one hears from the other.

use tempfile::TempDir;

use crate::{
    peers_support::{announcement_for, relay_with_peers, served},
    serve_support::{Client, RelayProcess, assert_pushed, push, until},
    support::TestRepo,
    support_events::Person,
};

/// R9: push to one, and the other learns the events, fetches the data and serves the state with `main` at the commit;
/// first what was there before, by NIP-77, then what comes live.
#[tokio::test(flavor = "multi_thread")]
async fn push_to_one_and_the_other_serves_it() {
    let first = RelayProcess::start();
    let second = relay_with_peers(&[first.websocket()]);
    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    let announcement = announcement_for(&[&first, &second], &owner, "lantern", &[]);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    let mut client = Client::connect(&first).await;
    client.publish_held(&announcement).await;
    client.publish_held(&state).await;
    assert_pushed(&push(&source, &first.repository_url(&owner, "lantern"), &["main"]));
    served(&second, &state).await;
    served(&second, &announcement).await;
    let repository = second.repository(&owner, "lantern");
    assert_eq!(repository.ref_oid("main"), Some(main));
    until("it is said", || second.log().contains("caught up with a peer")).await;
}
