//! Where a fetch may connect to.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use ngit_adapter::git::{AddressPolicy, Lookup, LookupError};
use proptest::prelude::*;
use purgatory_sync::{CloneUrl, FetchErrorKind as Kind};

use crate::{
    fetch_server::{ScriptedServer, answer},
    fetch_support::{Here, absent},
};

/// Says one list of addresses after the other, the last one for ever, and counts.
#[derive(Debug)]
struct Says {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
    names: Mutex<Vec<String>>,
}

impl Says {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse =
            |list: &&[&str]| list.iter().map(|ip| ip.parse().expect("an address")).collect();
        let answers = answers.iter().map(parse).collect();
        Arc::new(Self { answers, asked: AtomicUsize::new(0), names: Mutex::default() })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Lookup for Says {
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        self.names.lock().expect("no panic").push(host.to_owned());
        let turn = self.asked.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
        match &self.answers[turn] {
            none if none.is_empty() => Err(LookupError::Failed(std::io::ErrorKind::Other.into())),
            some => Ok(some.clone()),
        }
    }
}

async fn strict(lookup: Arc<Says>) -> Here {
    Here::with(|builder| builder.lookup(lookup)).await
}

/// A server on every address of this machine that notes that it was reached.
fn anywhere() -> ScriptedServer {
    ScriptedServer::start_at("[::]:0", |_, stream| answer(stream, "404 Not Found", &[], b""))
}

/// G3: every spelling of an address that is not public is refused, before a connection is made.
#[tokio::test]
async fn odd_spellings_of_refused_addresses_are_refused() {
    let server = anywhere();
    let here = Here::with(|builder| builder).await;
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "0",
        "0.0.0.0",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd12:3456::1]",
        "[ff02::1]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "localhost",
        "LOCALHOST",
    ] {
        let url = format!("http://{host}:{}/project.git", server.address().port());
        let error = here.fetch(&url, &[absent(1)]).await.expect_err(host);
        assert_eq!((error.kind(), error.requests()), (Kind::Refused, 0), "{host}");
    }
    assert!(server.requests().is_empty());
}

/// G3: URLs that two readers would read in two ways are no clone URLs.
#[test]
fn ambiguous_urls_are_no_clone_urls() {
    for url in [
        "http://127.0.0.1:80#@host/",
        "http://host#@127.0.0.1/",
        "http://user@host/x",
        "http://user:pw@host/x",
        "http://@host/x",
        "http://host\\@127.0.0.1/x",
        "http://host/x?y=z",
        "http://host/x#y",
        "http://ho st/x",
        "http://host/x\r\nHost: other",
        "http://host\t/x",
        "http://",
        "ext::sh -c touch% /tmp/x",
        "file:///etc/passwd",
        "/etc/passwd",
        "../x",
        "git://host/x",
        "ssh://host/x",
        "git@host:x",
        "--upload-pack=touch",
        "http::http://host/x",
        "ftp://host/x",
        "javascript:1",
        "http://[::1%25lo]/x",
        "http://[::1/x",
        "http://0x100000000/x",
        "http://256.256.256.256/x",
    ] {
        assert!(url.parse::<CloneUrl>().is_err(), "{url:?}");
    }
}

/// G3: one refused address among those of a name is enough.
#[tokio::test]
async fn a_name_with_one_refused_address_is_refused() {
    let server = anywhere();
    let port = server.address().port();
    for addresses in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["10.0.0.1", "93.184.216.34"],
        &["2606:4700::1", "::1"],
        &["93.184.216.34", "::ffff:127.0.0.1"],
        &["93.184.216.34", "169.254.169.254"],
    ] {
        let lookup = Says::new(&[addresses]);
        let here = strict(lookup.clone()).await;
        let url = format!("http://git.example.org:{port}/project.git");
        let error = here.fetch(&url, &[absent(1)]).await.expect_err("refused");
        assert_eq!((error.kind(), error.requests()), (Kind::Refused, 0), "{addresses:?}");
        assert_eq!(lookup.asked(), 1);
    }
    assert!(server.requests().is_empty());
}

/// G3: there is one look per connection, and the connection goes to what that look said.
#[tokio::test]
async fn connections_go_where_the_look_up_said() {
    let server = |ip: &str| {
        ScriptedServer::start_at(&format!("{ip}:0"), |_, stream| {
            answer(stream, "404 Not Found", &[], b"")
        })
    };
    let first = server("127.0.0.3");
    let port = first.address().port();
    let second = ScriptedServer::start_at(&format!("127.0.0.4:{port}"), |_, stream| {
        answer(stream, "404 Not Found", &[], b"")
    });
    let lookup = Says::new(&[&["127.0.0.3"], &["127.0.0.4"]]);
    let here =
        Here::with(|builder| builder.allow_private_networks(true).lookup(lookup.clone())).await;
    let url = format!("http://git.example.org:{port}/project.git");
    for turn in 1..=2 {
        assert_eq!(here.fails(&url, &[absent(1)]).await, Kind::NotFound);
        assert_eq!(
            (lookup.asked(), first.requests().len(), second.requests().len()),
            (turn, 1, turn - 1)
        );
    }
    assert_eq!(first.requests()[0].header("host"), Some(&*format!("git.example.org:{port}")));
}

/// Never answers.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl Lookup for Silent {
    async fn lookup(&self, _: &str) -> Result<Vec<IpAddr>, LookupError> {
        std::future::pending().await
    }
}

/// G4: the time for a connection counts from the look-up, and up to the end of TLS.
#[tokio::test]
async fn look_ups_and_handshakes_are_part_of_connecting() {
    let quick = std::time::Duration::from_millis(200);
    let here = Here::with(|builder| {
        let builder = builder.allow_private_networks(true).connect_timeout(quick);
        builder.lookup(Arc::new(Silent))
    })
    .await;
    let begun = std::time::Instant::now();
    assert_eq!(here.fails("https://git.example.org/x", &[absent(1)]).await, Kind::Timeout);
    let silent =
        ScriptedServer::start_raw(|mut stream| drop(crate::fetch_server::hang(&mut stream)));
    let url = format!("https://{}/project.git", silent.address());
    assert_eq!(here.fails(&url, &[absent(1)]).await, Kind::Timeout);
    // Not the 30 s that a server may be silent after that.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// G6: a look-up without an answer is no proof that there is no such name.
#[tokio::test]
async fn a_look_up_without_answer_is_network() {
    let here = strict(Says::new(&[&[]])).await;
    assert_eq!(here.fails("http://git.example.org/x", &[absent(1)]).await, Kind::Network);
}

/// G3: a redirect to another host, port or scheme is not followed, in whatever way it is written.
#[tokio::test]
async fn redirects_stay_on_their_host() {
    let other = anywhere();
    let target = other.address().port();
    for location in [
        format!("http://127.0.0.9:{target}/project.git/info/refs?service=git-upload-pack"),
        format!("http://127.0.0.1:{target}/project.git/info/refs?service=git-upload-pack"),
        format!("//127.0.0.9:{target}/project.git/info/refs?service=git-upload-pack"),
        format!("http://localhost:{target}/project.git/info/refs?service=git-upload-pack"),
        format!("https://127.0.0.1:{target}/project.git/info/refs?service=git-upload-pack"),
        "file:///etc/passwd".to_owned(),
        "http://user@127.0.0.1/x".to_owned(),
    ] {
        let header = format!("Location: {location}");
        let server = ScriptedServer::start_at("127.0.0.1:0", move |_, stream| {
            answer(stream, "302 Found", &[&header], b"")
        });
        let here = Here::new().await;
        let error = here.fetch(&server.url(), &[absent(1)]).await.expect_err("not followed");
        assert_eq!((error.kind(), error.requests()), (Kind::Refused, 1), "{location}");
    }
    assert!(other.requests().is_empty());
}

/// G3, G5: a redirect on the same server is followed, three times and not once more, and only at the start.
#[tokio::test]
async fn redirects_on_the_same_server_are_followed() {
    for (hops, kind, requests) in
        [(0, Kind::NotFound, 1), (3, Kind::NotFound, 4), (4, Kind::Unsupported, 4)]
    {
        let server = ScriptedServer::start(move |request, stream| {
            let hop = request.path.matches("more/").count();
            if hop == hops {
                return answer(stream, "404 Not Found", &[], b"");
            }
            let location = format!("Location: /more{}", request.path);
            answer(stream, "301 Moved Permanently", &[&location], b"")
        });
        let here = Here::new().await;
        let error = here.fetch(&server.url(), &[absent(1)]).await.expect_err("nothing there");
        assert_eq!((error.kind(), error.requests()), (kind, requests), "{hops} hops");
    }
    let strange =
        ScriptedServer::start(|_, stream| answer(stream, "302 Found", &["Location: /login"], b""));
    assert_eq!(Here::new().await.fails(&strange.url(), &[absent(1)]).await, Kind::Unsupported);
    let nowhere = ScriptedServer::start(|_, stream| answer(stream, "302 Found", &[], b""));
    assert_eq!(Here::new().await.fails(&nowhere.url(), &[absent(1)]).await, Kind::Unsupported);
}

/// G3: the edges of each network that is refused, and what lies just beside them.
#[test]
fn edges_of_refused_networks() {
    let policy = AddressPolicy::public_only();
    let allows = |ip: &str| policy.allows(ip.parse().expect("an address"));
    for (first, last, before, after) in [
        ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
        ("10.0.0.0", "10.255.255.255", Some("9.255.255.255"), Some("11.0.0.0")),
        ("100.64.0.0", "100.127.255.255", Some("100.63.255.255"), Some("100.128.0.0")),
        ("127.0.0.0", "127.255.255.255", Some("126.255.255.255"), Some("128.0.0.0")),
        ("169.254.0.0", "169.254.255.255", Some("169.253.255.255"), Some("169.255.0.0")),
        ("172.16.0.0", "172.31.255.255", Some("172.15.255.255"), Some("172.32.0.0")),
        ("192.0.0.0", "192.0.0.255", Some("191.255.255.255"), Some("192.0.1.0")),
        ("192.0.2.0", "192.0.2.255", Some("192.0.1.255"), Some("192.0.3.0")),
        ("192.168.0.0", "192.168.255.255", Some("192.167.255.255"), Some("192.169.0.0")),
        ("198.18.0.0", "198.19.255.255", Some("198.17.255.255"), Some("198.20.0.0")),
        ("198.51.100.0", "198.51.100.255", Some("198.51.99.255"), Some("198.51.101.0")),
        ("203.0.113.0", "203.0.113.255", Some("203.0.112.255"), Some("203.0.114.0")),
        ("224.0.0.0", "239.255.255.255", Some("223.255.255.255"), None),
        ("240.0.0.0", "255.255.255.255", None, None),
        ("::", "::ffff:ffff", None, None),
        ("::ffff:0:0", "::ffff:ffff:ffff", None, Some("::1:0:0:0")),
        ("64:ff9b::", "64:ff9b::ffff:ffff", None, Some("64:ff9b::1:0:0")),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", None, Some("2001:1::")),
        (
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            Some("2001:db7::"),
            Some("2001:db9::"),
        ),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("2001:ffff::"), Some("2003::")),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("fbff::"), Some("fe00::")),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("fe7f::"), None),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
    ] {
        assert!(!allows(first) && !allows(last), "{first} to {last}");
        for beside in [before, after].into_iter().flatten() {
            assert!(allows(beside), "{beside}");
        }
    }
    assert!(AddressPolicy::any().allows("127.0.0.1".parse().expect("an address")));
}

proptest! {
    /// G3: an IPv4 address inside an IPv6 address opens no way around the rules for either.
    #[test]
    fn embedded_addresses_are_refused(v4 in any::<[u8; 4]>()) {
        let policy = AddressPolicy::public_only();
        let [a, b, c, d] = v4.map(u16::from);
        let (high, low) = (a << 8 | b, c << 8 | d);
        for segments in [
            [0, 0, 0, 0, 0, 0xffff, high, low],
            [0, 0, 0, 0, 0, 0, high, low],
            [0, 0, 0, 0, 0xffff, 0, high, low],
            [0x64, 0xff9b, 0, 0, 0, 0, high, low],
            [0x2002, high, low, 0, 0, 0, 0, 1],
            [0x2001, 0, high, low, 0, 0, 0, 0],
        ] {
            prop_assert!(!policy.allows(Ipv6Addr::from(segments).into()));
        }
    }

    /// G3: what the standard library knows to be no public address is refused.
    #[test]
    fn what_is_known_to_be_private_is_refused(bits in any::<u32>(), wide in any::<u128>()) {
        let policy = AddressPolicy::public_only();
        let v4 = std::net::Ipv4Addr::from(bits);
        if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
            || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified() {
            prop_assert!(!policy.allows(v4.into()));
        }
        let v6 = Ipv6Addr::from(wide);
        if v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast() || v6.is_loopback() {
            prop_assert!(!policy.allows(v6.into()));
        }
    }
}
