//! Which peers may be connected to, and how.

use std::sync::Arc;

use futures::StreamExt;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::accept_async;

use crate::{
    serve_support::{PATIENCE, RelayProcess, until},
    support_program::{PROGRAM, clean_command},
};

/// A peer with TLS, which tells what it is asked first.
async fn peer_with_tls() -> (u16, mpsc::Receiver<String>) {
    let key = include_bytes!("certificates/server-key.pem");
    let key = PrivateKeyDer::from_pem_slice(key).expect("a key");
    let certificate = include_bytes!("certificates/server.pem");
    let certificate = CertificateDer::from_pem_slice(certificate).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they fit together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let (tell, told) = mpsc::channel(8);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("connections come");
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let Ok(mut socket) = accept_async(stream).await else { continue };
            if let Some(Ok(frame)) = socket.next().await {
                let _ = tell.send(frame.to_string()).await;
            }
        }
    });
    (port, told)
}

/// R9: a peer with TLS is reached if its certificate is right, by the roots of the system, and not if it is for another name.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_with_tls() {
    let (port, mut told) = peer_with_tls().await;
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/certificates/root.pem");
    let right = format!("--bootstrap-relay-url=wss://127.0.0.1:{port}");
    let _relay = RelayProcess::start_with(&[&right], &[("SSL_CERT_FILE", root)]);
    let asked = tokio::time::timeout(PATIENCE, told.recv()).await.expect("it is asked");
    assert!(asked.expect("the peer lives").starts_with("[\"REQ\",\"live\""));
    let wrong = format!("--bootstrap-relay-url=wss://localhost:{port}");
    let relay = RelayProcess::start_with(&[&wrong], &[("SSL_CERT_FILE", root)]);
    until("it is said", || relay.log().contains("peer not reached")).await;
    assert!(relay.log().contains("no TLS"), "{}", relay.log());
}

/// G3, R9: without leave, no peer in a private network is connected to, in any spelling, by its address or by a name.
#[tokio::test(flavor = "multi_thread")]
async fn peers_in_private_networks_are_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.set_nonblocking(true).expect("a socket can be made non-blocking");
    let port = listener.local_addr().expect("it is bound").port();
    let urls = ["127.0.0.1", "127.1", "0x7f000001", "localhost", "[::ffff:127.0.0.1]"]
        .map(|host| format!("ws://{host}:{port}/"));
    let dir = tempfile::TempDir::new().expect("a temporary folder");
    let log = dir.path().join("log");
    let mut relay = clean_command(std::path::Path::new(PROGRAM))
        .args(["serve", "--bind-address=127.0.0.1:0", "--database-backend=memory"])
        .arg("--git-data-path")
        .arg(dir.path().join("git"))
        .env("NGIT_SYNC_BOOTSTRAP_RELAY_URL", urls.join(", "))
        .stdout(std::process::Stdio::null())
        .stderr(std::fs::File::create(&log).expect("a file can be made"))
        .spawn()
        .expect("the program can be started");
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    // Three of the spellings are one place.
    until("all are refused", || said().matches("peer refused").count() >= 3).await;
    relay.kill().expect("it runs");
    relay.wait().expect("it can be waited for");
    assert!(listener.accept().is_err(), "{}", said());
    assert!(!said().contains("connected to a peer"), "{}", said());
}

/// A wrong URL is said with what is allowed.
#[test]
fn a_wrong_url_is_said() {
    let output = clean_command(std::path::Path::new(PROGRAM))
        .args(["serve", "--bootstrap-relay-url=wss://a.example.org,https://b.example.org"])
        .output()
        .expect("the program can be started");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("https://b.example.org") && said.contains("wss://"), "{said}");
}
