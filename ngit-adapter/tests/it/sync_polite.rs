//! What servers see: never more than the limits, and nothing at all where we may not connect.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
};

use purgatory_sync::Oid;
use tempfile::TempDir;

use crate::{
    support::TestRepo,
    support_events::{Person, lines},
    support_program::SyncRun,
    support_server::TestServer,
};

/// G3: without leave no connection is made to loopback, however it is spelled.
#[test]
fn no_spelling_of_loopback_is_connected_to() {
    let v4 = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("there is a free port");
    let port = v4.local_addr().expect("a bound socket has an address").port();
    // The same port may be taken there, or there may be no IPv6 at all: then the other listener has to do.
    let v6 = TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).ok();
    let spellings = [
        "127.0.0.1",
        "127.0.0.2",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "user@127.0.0.1",
        "example.org:80#@127.0.0.1",
    ];
    let owner = Person::new(1);
    let mut events = Vec::new();
    for (number, host) in spellings.iter().enumerate() {
        let name = format!("repo-{number}");
        let url = format!("http://{host}:{port}/{name}.git");
        let secret = Oid::sha1([u8::try_from(number).expect("there are few"); 20]);
        events.push(owner.announcement(&name, &[&url]));
        events.push(owner.state(&name, &[("refs/heads/main", secret)]));
        let pull_request = Person::new(2).pull_request(&owner, &name, secret, &[&url]);
        events.push(pull_request);
    }
    let ran = SyncRun::strict(&lines(&events)).arg("--deadline-secs=8").run();

    assert_eq!(ran.status, Some(3), "{ran:?}");
    assert_eq!(ran.summary("held"), 2 * spellings.len() as u64);
    for listener in [Some(v4), v6].into_iter().flatten() {
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let accepted = listener.accept();
        assert!(
            matches!(&accepted, Err(error) if error.kind() == ErrorKind::WouldBlock),
            "somebody connected: {accepted:?}"
        );
    }
    for fetch in ran.of_type("fetch") {
        // A name with a dot at its end may be unknown to the system: then there is nothing to refuse.
        let unknown = fetch["url"].as_str().is_some_and(|url| url.contains("localhost."));
        if !unknown {
            assert_eq!(fetch["outcome"], "refused", "{fetch}");
        }
        assert_eq!(fetch["received"], 0);
    }
    assert_eq!(ran.summary("http_requests"), 0);
}

/// P7: our own service is not asked, and a service on another port of the host is.
#[test]
fn our_own_service_is_never_asked() {
    let folder = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(folder.path().join("project.git"));
    let main = repo.commits("main", 3);
    let [ours, theirs] = [(); 2].map(|()| TestServer::start("127.0.0.1", folder.path()));
    let owner = Person::new(1);
    let url = |server: &TestServer| server.url("project.git");
    let announcement = owner.announcement("project", &[&url(&ours), &url(&theirs)]);
    let state = owner.state("project", &[("refs/heads/main", main[2])]);
    let events = lines([&announcement, &state]);

    let all_of_it = SyncRun::new(&events).arg("--our-domain=127.0.0.1").run();
    assert_eq!(all_of_it.status, Some(3), "{all_of_it:?}");
    assert_eq!((ours.log().requests(), theirs.log().requests()), (0, 0));

    let one_port = format!("--our-domain={}", ours.address());
    let one_port = SyncRun::new(&events).arg(one_port).run();
    assert_eq!(one_port.status, Some(0), "{one_port:?}");
    assert_eq!(ours.log().requests(), 0);
    assert!(theirs.log().requests() > 0);
}
