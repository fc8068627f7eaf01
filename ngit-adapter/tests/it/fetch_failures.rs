//! Each class of failure, by a server that fails in that way.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use purgatory_sync::{FetchErrorKind as Kind, Oid};
use rustls::{
    ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tempfile::TempDir;

use crate::{
    fetch_server::{
        ADVERTISEMENT, RESULT, ScriptedServer, answer, answer_truly, capabilities, endless_head,
        hang, ok, packet, serves_pack, truth,
    },
    fetch_support::{Here, absent},
    support::TestRepo,
    support_server::TestServer,
};

const QUICK: Duration = Duration::from_millis(300);

/// A fetcher that is quickly out of patience.
async fn impatient() -> Here {
    Here::with(|builder| {
        builder.allow_private_networks(true).connect_timeout(QUICK).idle_timeout(QUICK)
    })
    .await
}

/// A repository with a few commits that a script can tell the truth about.
fn some_repo() -> (TempDir, TestRepo, Oid) {
    let dir = TempDir::new().expect("a temporary folder");
    let repo = TestRepo::init(dir.path().join("project.git"));
    let tip = repo.commits("main", 20)[19];
    (dir, repo, tip)
}

/// Fails one fetch from a server that answers discovery with this status and these headers.
async fn status(
    status: &'static str,
    headers: &'static [&'static str],
) -> (Kind, Option<Duration>) {
    let server = ScriptedServer::start(move |_, stream| answer(stream, status, headers, b"no"));
    let here = Here::new().await;
    let error = here.fetch(&server.url(), &[absent(1)]).await.expect_err("no answer is right here");
    assert_eq!(error.requests(), 1, "{status}");
    (error.kind(), error.retry_after())
}

/// G6: the class of an answer with a status comes from the status, and nothing else.
#[tokio::test]
async fn statuses_have_their_classes() {
    for (line, kind) in [
        ("401 Unauthorized", Kind::Auth),
        ("403 Forbidden", Kind::Auth),
        ("451 Unavailable For Legal Reasons", Kind::Auth),
        ("404 Not Found", Kind::NotFound),
        ("410 Gone", Kind::NotFound),
        ("429 Too Many Requests", Kind::RateLimited),
        ("408 Request Timeout", Kind::Timeout),
        ("500 not our ref certificate dns", Kind::ServerError),
        ("502 Bad Gateway", Kind::ServerError),
        ("503 Service Unavailable", Kind::ServerError),
        ("400 Bad Request", Kind::Unsupported),
        ("405 Method Not Allowed", Kind::Unsupported),
        ("204 No Content", Kind::Unsupported),
    ] {
        assert_eq!(status(line, &[]).await, (kind, None), "{line}");
    }
}

/// G6: `Retry-After` is told, as seconds and as a date, whatever the class.
#[tokio::test]
async fn retry_after_is_told() {
    let secs = |secs| Some(Duration::from_secs(secs));
    let told = status("429 Slow Down", &["Retry-After: 17"]).await;
    assert_eq!(told, (Kind::RateLimited, secs(17)));
    let told = status("503 Busy", &["Retry-After: 120"]).await;
    assert_eq!(told, (Kind::ServerError, secs(120)));
    // By the server's own clock, whatever ours says.
    let dates: &[&str] =
        &["Date: Thu, 01 Jan 2026 00:00:00 GMT", "Retry-After: Thu, 01 Jan 2026 00:01:30 GMT"];
    assert_eq!(status("429 Slow Down", dates).await, (Kind::RateLimited, secs(90)));
    let past: &[&str] =
        &["Date: Thu, 01 Jan 2026 00:00:00 GMT", "Retry-After: Wed, 01 Jan 2020 00:01:30 GMT"];
    assert_eq!(status("429 Slow Down", past).await, (Kind::RateLimited, secs(0)));
    // Nobody is believed for longer than 30 days, and nonsense is nothing.
    let told = status("429 Slow Down", &["Retry-After: 18446744073709551615"]).await;
    assert_eq!(told, (Kind::RateLimited, secs(30 * 24 * 3600)));
    let told = status("429 Slow Down", &["Retry-After: -5"]).await;
    assert_eq!(told, (Kind::RateLimited, None));
}

/// G6: a status in answer to the second request counts as much.
#[tokio::test]
async fn statuses_count_in_later_requests_too() {
    let (_dir, repo, tip) = some_repo();
    let server = ScriptedServer::start(move |request, stream| match request.is_discovery() {
        true => answer_truly(&repo, request, stream),
        false => answer(stream, "429 Slow Down", &["Retry-After: 9"], b""),
    });
    let here = Here::new().await;
    let error = here.fetch(&server.url(), &[tip]).await.expect_err("it was refused");
    assert_eq!((error.kind(), error.requests()), (Kind::RateLimited, 2));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(9)));
}

/// G6: nobody listens.
#[tokio::test]
async fn a_refused_connection_is_network() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("it has");
    let here = Here::new().await;
    assert_eq!(
        here.fails(&format!("http://{free}/project.git"), &[absent(1)]).await,
        Kind::Network
    );
}

/// G6: connections that end too early: without an answer, within its head, within the advertisement, within the pack.
#[tokio::test]
async fn cut_connections_are_network() {
    let (_dir, repo, tip) = some_repo();
    for cut in 0..4 {
        let repo = repo.clone();
        let server = ScriptedServer::start(move |request, stream| {
            let truth = truth(&repo, request);
            let (kind, step) = match request.is_discovery() {
                true => (ADVERTISEMENT, cut),
                false => (RESULT, 3),
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
                truth.len()
            );
            match step {
                0 => Ok(()),
                1 => stream.write_all(&head.as_bytes()[..30]),
                2 => {
                    stream.write_all(head.as_bytes())?;
                    stream.write_all(&truth[..20])
                }
                _ if request.is_discovery() => answer_truly(&repo, request, stream),
                _ => {
                    stream.write_all(head.as_bytes())?;
                    stream.write_all(&truth[..truth.len() / 2])
                }
            }
        });
        let here = Here::new().await;
        assert_eq!(here.fails(&server.url(), &[tip]).await, Kind::Network, "cut {cut}");
        assert_eq!(here.missing(&[tip]).await, [tip]);
        assert!(here.quarantined().is_empty());
    }
}

/// G6: a name that cannot exist, by the system's own resolver. Nothing is sent.
#[tokio::test]
async fn a_name_that_does_not_exist_is_dns() {
    let here = Here::new().await;
    let url = "http://-no-such-name.invalid/project.git";
    let error = here.fetch(url, &[absent(1)]).await.expect_err("there is no such name");
    assert_eq!((error.kind(), error.requests()), (Kind::Dns, 0));
}

/// G4, G6: a server that does not accept, is silent before the head, after the head, or within the pack.
#[tokio::test]
async fn silence_is_timeout() {
    let (_dir, repo, tip) = some_repo();
    for step in 0..4 {
        let repo = repo.clone();
        let server = ScriptedServer::start(move |request, stream| {
            let truth = truth(&repo, request);
            match (step, request.is_discovery()) {
                (0, _) => {}
                (1, _) => endless_head(stream, ADVERTISEMENT)?,
                (_, true) => return answer_truly(&repo, request, stream),
                (2, false) => endless_head(stream, RESULT)?,
                (_, false) => {
                    endless_head(stream, RESULT)?;
                    stream.write_all(&truth[..truth.len() / 2])?;
                }
            }
            hang(stream)
        });
        let here = impatient().await;
        assert_eq!(here.fails(&server.url(), &[tip]).await, Kind::Timeout, "step {step}");
        assert!(here.quarantined().is_empty());
    }
}

/// G4: one byte now and then keeps no fetch alive beyond the overall deadline.
#[tokio::test]
async fn drops_of_bytes_end_at_the_overall_deadline() {
    let server = ScriptedServer::start(|_, stream| {
        endless_head(stream, ADVERTISEMENT)?;
        stream.write_all(b"001e# service=git-upload-pack\n0000000eversion 2\n")?;
        let line = packet("agent=slow\n");
        loop {
            for byte in &line {
                stream.write_all(&[*byte])?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let here = Here::with(|builder| {
        builder.allow_private_networks(true).overall_timeout(Duration::from_millis(600))
    })
    .await;
    assert_eq!(here.fails(&server.url(), &[absent(1)]).await, Kind::Timeout);
}

/// G4: a host that swallows the connection.
#[tokio::test]
async fn a_connection_that_is_never_accepted_is_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    // Fills the queue of those who wait to be accepted: the kernel then drops who comes next.
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, QUICK) {
        waiting.push(stream);
        assert!(waiting.len() < 20_000, "this system queues without end");
    }
    let here = impatient().await;
    let kind = here.fails(&format!("http://{address}/project.git"), &[absent(1)]).await;
    assert_eq!(kind, Kind::Timeout);
}

/// A TLS server that answers 404, with the root that signed its certificate.
fn tls_server(certificate: &'static [u8]) -> ScriptedServer {
    let key = include_bytes!("certificates/server-key.pem");
    let key = PrivateKeyDer::from_pem_slice(key).expect("a key");
    let certificate = CertificateDer::from_pem_slice(certificate).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they fit together");
    let config = Arc::new(config);
    ScriptedServer::start_raw(move |stream| {
        let connection = ServerConnection::new(config.clone()).expect("a connection");
        let mut tls = rustls::StreamOwned::new(connection, stream);
        let mut request = [0; 4_096];
        // The client may not like the certificate: that is the test.
        if tls.read(&mut request).is_ok() {
            let _ = tls.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
        tls.conn.send_close_notify();
        let _ = tls.flush();
    })
}

async fn trusting() -> Here {
    Here::with(|builder| {
        let root = include_bytes!("certificates/root.pem");
        builder.allow_private_networks(true).add_root_certificates(root).expect("a certificate")
    })
    .await
}

/// G6: TLS that works says what the server says; an unknown root, an expired certificate and a server that speaks no TLS are
/// one class.
#[tokio::test]
async fn tls_that_cannot_be_set_up_is_tls() {
    let good = tls_server(include_bytes!("certificates/server.pem"));
    let url = |server: &ScriptedServer| format!("https://{}/project.git", server.address());
    assert_eq!(trusting().await.fails(&url(&good), &[absent(1)]).await, Kind::NotFound);
    assert_eq!(Here::new().await.fails(&url(&good), &[absent(1)]).await, Kind::Tls);
    let expired = tls_server(include_bytes!("certificates/expired.pem"));
    assert_eq!(trusting().await.fails(&url(&expired), &[absent(1)]).await, Kind::Tls);
    let plain = ScriptedServer::start_raw(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let _ = hang(&mut stream);
    });
    assert_eq!(trusting().await.fails(&url(&plain), &[absent(1)]).await, Kind::Tls);
}

/// G6: a certificate for another name.
#[tokio::test]
async fn a_certificate_for_another_name_is_tls() {
    let good = tls_server(include_bytes!("certificates/server.pem"));
    let here = trusting().await;
    let url = format!("https://localhost:{}/project.git", good.address().port());
    assert_eq!(here.fails(&url, &[absent(1)]).await, Kind::Tls);
}

/// G6: servers that speak something else: an older protocol, plain files, pages, no HTTP at all, another hash, compression.
#[tokio::test]
async fn other_protocols_are_unsupported() {
    let (_dir, repo, tip) = some_repo();
    let old = {
        let repo = repo.clone();
        ScriptedServer::start(move |request, stream| {
            let mut request = request.clone();
            request.headers.retain(|(name, _)| name != "git-protocol");
            answer_truly(&repo, &request, stream)
        })
    };
    let plain =
        ScriptedServer::start(|_, stream| ok(stream, "text/plain", b"0123 refs/heads/main\n"));
    let page = ScriptedServer::start(|_, stream| ok(stream, "text/html", b"<h1>git</h1>"));
    let other = ScriptedServer::start_raw(|mut stream| {
        let _ = stream.read(&mut [0; 4_096]);
        let _ = stream.write_all(b"ERROR 17 unknown command\r\n");
        let _ = hang(&mut stream);
    });
    let compressed = ScriptedServer::start(|_, stream| {
        let kind = format!("Content-Type: {ADVERTISEMENT}");
        answer(stream, "200 OK", &[&kind, "Content-Encoding: gzip"], b"\x1f\x8b")
    });
    let no_fetch = ScriptedServer::start(|_, stream| {
        ok(stream, ADVERTISEMENT, &[packet("version 2\n"), b"0000".to_vec()].concat())
    });
    let half = ScriptedServer::start(|_, stream| ok(stream, ADVERTISEMENT, &packet("version 2\n")));
    let here = Here::new().await;
    for server in [old, plain, page, other, compressed, no_fetch, half] {
        assert_eq!(here.fails(&server.url(), &[tip]).await, Kind::Unsupported);
    }
}

/// G1, G6: SHA-256 repositories and object ids.
#[tokio::test]
async fn sha256_is_unsupported() {
    let dir = TempDir::new().expect("a temporary folder");
    let made = crate::support::git_command()
        .args(["init", "--quiet", "--bare", "--object-format=sha256"])
        .arg(dir.path().join("project.git"))
        .status()
        .expect("git can be started");
    assert!(made.success());
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    assert_eq!(here.fails(&server.url("project.git"), &[absent(1)]).await, Kind::Unsupported);
    let error = here.fetch(&server.url("project.git"), &[Oid::sha256([7; 32])]).await;
    let error = error.expect_err("SHA-256 is not supported");
    assert_eq!((error.kind(), error.requests()), (Kind::Unsupported, 0));
    let cause = std::error::Error::source(&error).expect("a reason").to_string();
    assert!(cause.contains("SHA-256 is not supported"), "{cause}");
}

/// G6, G7: a server with a part of the history only.
#[tokio::test]
async fn a_shallow_server_is_shallow() {
    let (dir, repo, tip) = some_repo();
    let output = crate::support::git_command()
        .args(["clone", "--quiet", "--bare", "--depth=3"])
        .arg(format!("file://{}", repo.path().display()))
        .arg(dir.path().join("shallow.git"))
        .output()
        .expect("git can be started");
    assert!(output.status.success());
    let server = TestServer::start("127.0.0.1", dir.path());
    let here = Here::new().await;
    assert_eq!(here.fails(&server.url("shallow.git"), &[tip]).await, Kind::Shallow);
    assert_eq!(here.missing(&[tip]).await, [tip]);
    assert!(!here.repo().path().join("shallow").exists());
}

/// G6: a server that gives up in the middle, or at a probe, or refuses what it said it has.
#[tokio::test]
async fn a_server_that_gives_up_is_server_error() {
    let gives_up = serves_pack(
        [
            packet("packfile\n"),
            packet(b"\x03fatal: certificate expired \x1b[31m"),
            b"0000".to_vec(),
        ]
        .concat(),
    );
    let here = Here::new().await;
    assert_eq!(here.fails(&gives_up.url(), &[absent(1)]).await, Kind::ServerError);
    let refuses = serves_pack(packet("ERR I am a teapot\n"));
    let error =
        here.fetch(&refuses.url(), &[absent(1)]).await.expect_err("a probe needs an answer");
    assert_eq!((error.kind(), error.requests()), (Kind::ServerError, 3));
    let liar = ScriptedServer::start(|request, stream| match request {
        _ if request.is_discovery() => {
            ok(stream, ADVERTISEMENT, &capabilities("fetch=wait-for-done\n"))
        }
        _ if request.wants() => ok(stream, RESULT, &packet("ERR upload-pack: not our ref 1\n")),
        _ => {
            let ack = packet(format!("ACK {}\n", absent(1)));
            ok(stream, RESULT, &[packet("acknowledgments\n"), ack, b"0000".to_vec()].concat())
        }
    });
    let error = here.fetch(&liar.url(), &[absent(1)]).await.expect_err("it contradicts itself");
    assert_eq!((error.kind(), error.requests()), (Kind::ServerError, 3));
    let error = here.fetch(&liar.url(), &[absent(1), absent(2)]).await.expect_err("it still does");
    assert_eq!((error.kind(), error.requests()), (Kind::ServerError, 4));
}

/// G6: answers that are no answer.
#[tokio::test]
async fn nonsense_is_corrupt() {
    let here = Here::new().await;
    for nonsense in [
        &b""[..],
        b"0000",
        b"zzzz",
        b"0003",
        b"0004",
        b"fff1abc",
        b"000dpackfile\n",
        b"000dpackfile\n0005",
        b"000dpackfile\n0006\x07x0000",
        b"000bhello\n",
        b"0012acknowledgments",
    ] {
        let server = serves_pack(nonsense.to_vec());
        let text = String::from_utf8_lossy(nonsense);
        assert_eq!(here.fails(&server.url(), &[absent(1)]).await, Kind::Corrupt, "{text:?}");
    }
    assert!(here.quarantined().is_empty());
}

/// G6: something is wrong on this side.
#[tokio::test]
async fn a_quarantine_that_cannot_be_made_is_local() {
    let (_dir, repo, tip) = some_repo();
    let server = ScriptedServer::start(move |request, stream| answer_truly(&repo, request, stream));
    let here = Here::new().await;
    let folder = here.dir.path().join(".quarantine");
    std::fs::rename(&folder, here.dir.path().join("elsewhere")).expect("it is there");
    std::fs::write(&folder, "in the way").expect("a file can be written");
    assert_eq!(here.fails(&server.url(), &[tip]).await, Kind::Local);
}
