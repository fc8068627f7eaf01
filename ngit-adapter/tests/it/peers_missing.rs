//! Data of what is served that has gone.

use tempfile::TempDir;

use crate::{
    peers_support::{EAGER, served},
    serve_support::{Client, RelayProcess, until},
    support::TestRepo,
    support_events::Person,
    support_server::TestServer,
};

/// R9: what is served and lost its data, a state and a pull request, is looked for again from time to time, and put back. The events
/// are served all the while.
#[tokio::test(flavor = "multi_thread")]
async fn data_that_was_lost_comes_back() {
    let (dir, owner, author) = (TempDir::new().unwrap(), Person::new(1), Person::new(2));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    source.set_branch("change", main);
    let tip = source.commit("change", "b", "2");
    let server = TestServer::start("127.0.0.2", dir.path());
    let relay = RelayProcess::start_with(&[&EAGER[..], &["--sync-again-secs=1"]].concat(), &[]);
    let state = owner.state("lantern", &[("refs/heads/main", main)]);
    let pull = author.pull_request(&owner, "lantern", tip, &[]);
    let mut client = Client::connect(&relay).await;
    client.publish_held(&relay.announcement(&owner, "lantern", &[&server.url("source.git")])).await;
    client.publish_held(&state).await;
    client.publish_held(&pull).await;
    served(&relay, &state).await;
    served(&relay, &pull).await;

    let name = format!("refs/nostr/{}", pull.id.to_hex());
    let path = relay.git_data().join(owner.npub()).join("lantern.git");
    std::fs::remove_dir_all(&path).expect("the repository is there");
    let has_all = || {
        path.exists() && {
            let repository = relay.repository(&owner, "lantern");
            let refs = repository.refs();
            refs.get("refs/heads/main") == Some(&main) && refs.get(&name) == Some(&tip)
        }
    };
    until("the data is back", has_all).await;
    assert!(relay.repository(&owner, "lantern").is_complete(tip));
    assert!(relay.log().contains("data of what is served is missing"), "{}", relay.log());
    let ids = serde_json::json!({"kinds": [30618, 1618]});
    assert_eq!(Client::connect(&relay).await.served(ids).await.len(), 2);
}

/// R9: data that is lost for good does not keep the rest from being put right: refs come back with what a sibling has.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_for_good_holds_up_nothing_else() {
    let dir = TempDir::new().unwrap();
    let (owner, sibling, author) = (Person::new(1), Person::new(3), Person::new(2));
    let source = TestRepo::init(dir.path().join("source.git"));
    let main = source.commit("main", "a", "1");
    source.set_branch("change", main);
    let tip = source.commit("change", "b", "2");
    let server = TestServer::start("127.0.0.2", dir.path());
    let relay = RelayProcess::start_with(&[&EAGER[..], &["--sync-again-secs=1"]].concat(), &[]);
    let pull = author.pull_request(&owner, "lantern", tip, &[]);
    let mut client = Client::connect(&relay).await;
    for person in [&owner, &sibling] {
        let urls = [&*server.url("source.git")];
        client.publish_held(&relay.announcement(person, "lantern", &urls)).await;
        let state = person.state("lantern", &[("refs/heads/main", main)]);
        // The second one's data is here.
        assert!(client.publish(&state).await.0);
        served(&relay, &state).await;
    }
    client.publish_held(&pull).await;
    served(&relay, &pull).await;

    // Nobody has the tip any more. The sibling has the branch.
    drop(server);
    let path = relay.git_data().join(owner.npub()).join("lantern.git");
    std::fs::remove_dir_all(&path).expect("the repository is there");
    let has_main = || {
        let refs = || relay.repository(&owner, "lantern").refs();
        path.join("HEAD").exists() && refs().get("refs/heads/main") == Some(&main)
    };
    until("the branch is back", has_main).await;
    assert!(relay.log().contains("data of what is served is missing"), "{}", relay.log());
}
