use domain_throttle::{Domain, DomainPattern, Endpoint};

/// Each row: what all the spellings behind it must lead to.
const SAME: &[(&str, &[&str])] = &[
    (
        "example.org",
        &[
            "https://example.org",
            "https://example.org/",
            "HTTPS://EXAMPLE.ORG/",
            "https://Example.Org./",
            "https://example.org:443/",
            "https://example.org:8443/a/b.git",
            "http://example.org:80",
            "http://example.org:/",
            "https://user@example.org/",
            "https://user:password@example.org:443/",
            "https://user@evil.example@example.org/",
            "https://evil.example%2F@example.org/",
            "https://evil.example:443@example.org/",
            "https://example.org?evil.example",
            "https://example.org#@evil.example/",
            "https://example.org/@evil.example",
            "https://example.org\\@evil.example/",
            "https:\\\\example.org\\a",
            "https:/example.org/a",
            "https:example.org/a",
            "https:///example.org/a",
            "https://exa%6dple.org/",
            "https://%65xample.org/",
            "https://exa\tmple.org/",
            "https://exam\nple.org/",
            "  https://example.org/  ",
            "\u{1}https://example.org/\u{1f}",
            "https://exa\u{ad}mple.org/",
            "https://ｅｘａｍｐｌｅ.org/",
            "https://example。org/",
            "https://example．org/",
            "https://ⓔⓧⓐⓜⓟⓛⓔ.org/",
            "git://example.org/a.git",
            "git://EXAMPLE.org:9418/a.git",
            "git://example.org./a.git",
            "ssh://git@example.org/a.git",
            "ssh://git@Example.ORG:22/a.git",
            "ssh://git@example.org.:2222/a.git",
            "ssh://exa%6dple.org/a.git",
            "ssh://git:password@example.org/~/a.git",
            "git+ssh://git@example.org/a.git",
            "ssh+git://git@example.org/a.git",
            "git@example.org:a/b.git",
            "git@EXAMPLE.org.:a/b.git",
            "git@example.org:2222/b.git",
            "git@example.org:/abs/b.git",
            "git@example.org:~/b.git",
            "git@example.org:a:b",
            "git@example.org:a@b",
            "git@example.org:x://y",
            "example.org:a/b.git",
            "git@[example.org]:a/b.git",
            "[git@example.org:2222]:a/b.git",
            "[example.org:2222]:a/b.git",
            "wss://example.org/",
            "ws://example.org:8080/",
            "ftp://example.org/",
        ],
    ),
    (
        "xn--bcher-kva.example",
        &[
            "https://bücher.example/",
            "https://BÜCHER.example/",
            "https://bu\u{308}cher.example/",
            "https://xn--bcher-kva.example/",
            "https://XN--BCHER-KVA.EXAMPLE./",
            "https://b%C3%BCcher.example/",
            "ssh://git@bücher.example/a",
            "git@bücher.example:a",
        ],
    ),
    (
        "127.0.0.1",
        &[
            "http://127.0.0.1/",
            "http://127.0.0.1./",
            "http://127.1/",
            "http://0x7f.1/",
            "http://0x7F000001/",
            "http://2130706433/",
            "http://017700000001/",
            "http://0177.0.0.01/",
            "http://１２７.0.0.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::FFFF:7f00:1]/",
            "http://[0:0:0:0:0:ffff:127.0.0.1]/",
            "ssh://git@127.1/a",
            "git://0x7f.1/a",
            "git@2130706433:a",
            "git@[::ffff:127.0.0.1]:a",
        ],
    ),
    (
        "2001:db8::1",
        &[
            "http://[2001:db8::1]/",
            "http://[2001:DB8::1]:8080/",
            "http://[2001:0db8:0000:0000:0000:0000:0000:0001]/",
            "http://[2001:db8:0:0::1]/",
            "http://[2001:db8::0.0.0.1]/",
            "ssh://git@[2001:DB8::1]:22/a",
            "git://[2001:db8::0:1]/a",
            "git@[2001:db8::1]:a/b",
            "[2001:db8::1]:a/b",
            "[git@2001:db8::1]:a/b",
        ],
    ),
    ("localhost", &["http://LOCALHOST./", "localhost:a/b.git", "git@localhost:a"]),
    ("under_score.example", &["https://under_score.example/", "git@under_score.example:a"]),
];

/// What names no server.
const NONE: &[&str] = &[
    "",
    "   ",
    "/",
    "/srv/git/a.git",
    "./a.git",
    "../a.git",
    "~/a.git",
    "a.git",
    "example.org",
    "example.org/a.git",
    "//example.org/a",
    "https://",
    "https:///",
    "https://./",
    "https://../",
    "https://example..org/",
    "https://.example.org/",
    "https://example.org../",
    "https://:443/",
    "https://user@/",
    "https://exa mple.org/",
    "https://example.org:99999/",
    "https://example.org:port/",
    "https://1.2.3.4.5/",
    "https://256.256.256.256/",
    "https://0x100000000/",
    "https://[::1/",
    "https://::1/",
    "https://[fe80::1%25eth0]/",
    "https://[::ffff:1.2.3.4.5]/",
    "https://exa%00mple.org/",
    "https://exa%2Fmple.org/",
    "https://exa%40mple.org/",
    "https://*.example.org/",
    "https://xn--a/",
    "file:///srv/git/a.git",
    "file://example.org/share",
    "ext::sh -c evil",
    "ext::sh -c 'evil://x'",
    "mailto:user@example.org",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "urn:isbn:0451450523",
    "about:blank",
    "C:\\a\\b",
    "C:/a/b",
    "host:a/b",
    "git@:a",
    "git@",
    "@:a",
    ":a",
    "git@exa mple.org:a",
    "git@example.org",
    "git@example..org:a",
    "a/git@example.org:b",
    "[example.org:port]:a",
    "[example.org",
    "[]:a",
    "git@[]:a",
    "--upload-pack=evil",
];

fn domain(text: &str) -> String {
    let endpoint: Endpoint = text.parse().unwrap_or_else(|error| panic!("{error}"));
    endpoint.domain().to_string()
}

/// L13: every spelling of a host leads to one domain.
#[test]
fn all_spellings_of_a_host_are_one_domain() {
    assert!(SAME.iter().map(|(_, spellings)| spellings.len()).sum::<usize>() >= 80);
    for (canonical, spellings) in SAME {
        for spelling in *spellings {
            assert_eq!(domain(spelling), *canonical, "{spelling:?}");
        }
    }
}

/// L13: what has no host is an error, never a domain of its own.
#[test]
fn what_has_no_host_is_an_error_that_names_the_input() {
    for text in NONE {
        let error = text.parse::<Endpoint>().expect_err(text).to_string();
        assert!(error.contains("names no server: "), "{error}");
    }
}

/// L13: hosts that only look alike are different domains.
#[test]
fn different_hosts_are_different_domains() {
    let all = [
        "https://example.org/",
        "https://www.example.org/",
        "https://notexample.org/",
        "https://example.org.evil.example/",
        "https://example.com/",
        "https://еxample.org/",
        "https://127.0.0.2/",
        "https://[::1]/",
        "https://[::127.0.0.1]/",
    ];
    let domains: std::collections::BTreeSet<_> = all.iter().map(|text| domain(text)).collect();
    assert_eq!(domains.len(), all.len());
}

/// L13: what stands behind the colon of `git@host:2222/x` is a path, not a port.
#[test]
fn the_number_in_an_scp_like_path_is_no_port() {
    let endpoint: Endpoint = "git@example.org:2222/x".parse().expect("a server");
    assert_eq!((endpoint.scheme(), endpoint.port()), ("ssh", Some(22)));
    let endpoint: Endpoint = "[git@example.org:2222]:x".parse().expect("a server");
    assert_eq!((endpoint.scheme(), endpoint.port()), ("ssh", Some(2222)));
}

/// L13: a port that is the scheme's own makes no other endpoint, another one does.
#[test]
fn endpoints_differ_by_scheme_and_port_only() {
    let same = [
        ("https://a.example", "https://u@A.example:443/x?y#z"),
        ("git://a.example", "git://a.example:9418/x"),
    ];
    for (one, two) in same {
        assert_eq!(one.parse::<Endpoint>(), two.parse::<Endpoint>());
    }
    assert_ne!("https://a.example".parse::<Endpoint>(), "http://a.example".parse::<Endpoint>());
    assert_ne!(
        "https://a.example".parse::<Endpoint>(),
        "https://a.example:8443".parse::<Endpoint>()
    );
}

/// L13: an endpoint reads back what it prints.
#[test]
fn an_endpoint_prints_what_it_reads() {
    for spelling in SAME.iter().flat_map(|(_, spellings)| *spellings) {
        let endpoint: Endpoint = spelling.parse().expect("a server");
        assert_eq!(endpoint.to_string().parse(), Ok(endpoint), "{spelling:?}");
    }
}

/// L13: names of a length that no resolver takes are refused, so a stranger cannot fill the memory.
#[test]
fn names_that_are_too_long_are_refused() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert_eq!(domain(&format!("https://{longest}/")), longest);
    for host in [format!("{longest}a"), format!("{label}a.example"), "a.".repeat(100_000)] {
        assert!(format!("https://{host}/").parse::<Endpoint>().is_err());
    }
}

/// An error shows neither a password nor a screen full of text.
#[test]
fn an_error_shows_no_password_and_stays_short() {
    let error = "https://user:secret@exa mple.org/".parse::<Endpoint>().expect_err("a space");
    assert!(!error.to_string().contains("secret"), "{error}");
    let error = format!("https://exa mple/{}", "x".repeat(10_000))
        .parse::<Endpoint>()
        .expect_err("a space");
    assert!(error.to_string().len() < 300);
}

/// L11, L13: a pattern is read by the parser that reads URLs.
#[test]
fn patterns_are_read_by_the_parser_of_urls() {
    let same = [
        ("example.org", "EXAMPLE.org."),
        ("*.example.org", "*.Example.ORG."),
        ("*.xn--bcher-kva.example", "*.bücher.example"),
        ("127.0.0.1", "0x7f.1"),
        ("::1", "[0:0:0:0:0:0:0:1]"),
        ("192.0.2.1", "[::ffff:192.0.2.1]"),
        ("example.org", "  example.org "),
    ];
    for (one, two) in same {
        let (one, two): (DomainPattern, DomainPattern) =
            (one.parse().expect(one), two.parse().expect(two));
        assert_eq!(one, two);
        assert_eq!(one.to_string().parse(), Ok(two));
    }
    let none = [
        "",
        "*",
        "*.",
        "*.*.org",
        "a.*.org",
        "*example.org",
        "*.127.0.0.1",
        "*.::1",
        "https://a.example",
        "a.example:80",
        "user@a.example",
        "a.example/x",
        "a b",
        ".",
        "..",
    ];
    for text in none {
        assert!(text.parse::<DomainPattern>().is_err(), "{text:?}");
    }
    assert_eq!("a.example".parse::<Domain>().map(DomainPattern::from), "a.example".parse());
}

proptest::proptest! {
    /// L13: no text makes the parser panic, and what it takes it takes again in its own spelling.
    #[test]
    fn no_text_makes_the_parser_panic(text in r"(https?|ssh|git|file)?(://|:|@|\[)?\PC{0,40}") {
        if let Ok(endpoint) = text.parse::<Endpoint>() {
            proptest::prop_assert!(!endpoint.domain().as_str().is_empty());
            proptest::prop_assert_eq!(endpoint.to_string().parse(), Ok(endpoint));
        }
        let _ = text.parse::<DomainPattern>();
    }
}
