//! From a URL to a websocket at an address that was checked (G3).

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        self,
        client::IntoClientRequest,
        http::{HeaderValue, header::USER_AGENT},
        protocol::WebSocketConfig,
    },
};
use url::Host;

use super::PeerUrl;
use crate::git::{AddressPolicy, Lookup, LookupError};

/// Makes connections to peers.
#[derive(Debug)]
pub(in crate::relay) struct Dialer {
    lookup: Arc<dyn Lookup>,
    policy: AddressPolicy,
    tls: Arc<ClientConfig>,
}

pub(super) type Socket = WebSocketStream<Box<dyn Connection>>;

/// A connection, with TLS or without.
pub(super) trait Connection: AsyncRead + AsyncWrite + Unpin + Send + Sync {}

impl<C: AsyncRead + AsyncWrite + Unpin + Send + Sync> Connection for C {}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error(
        "{0} is no address that may be connected to: it leads into a private network, or nowhere"
    )]
    Refused(IpAddr),
    #[error(transparent)]
    Name(#[from] LookupError),
    #[error("no connection")]
    Connect(#[source] io::Error),
    #[error("no TLS")]
    Tls(#[source] io::Error),
    #[error("no websocket")]
    Websocket(#[source] Box<tungstenite::Error>),
    #[error("no answer in time")]
    Timeout,
}

/// How many addresses of a name are tried.
const MAX_ADDRESSES: usize = 4;
/// What is read at once.
const READ_BUFFER: usize = 32 << 10;
/// What may wait to be written: more than the longest of our messages.
const WRITE_BUFFER: usize = 4 << 20;

const OUR_NAME: HeaderValue =
    HeaderValue::from_static(concat!("ngit-adapter/", env!("CARGO_PKG_VERSION")));

impl Dialer {
    pub(in crate::relay) fn new(
        lookup: Arc<dyn Lookup>,
        policy: AddressPolicy,
        tls: Arc<ClientConfig>,
    ) -> Self {
        Self { lookup, policy, tls }
    }

    /// A websocket to the relay, over which messages of `max_message` bytes come at most. Redirects are not followed.
    /// `patience` is for the name and the connection, and once more for the handshakes.
    ///
    /// Cancel safe.
    pub(super) async fn dial(
        &self,
        url: &PeerUrl,
        max_message: usize,
        patience: Duration,
    ) -> Result<Socket, DialError> {
        let stream = timeout(patience, self.connect(url, patience)).await;
        let stream = stream.map_err(|_| DialError::Timeout)??;
        let socket = timeout(patience, self.shake_hands(url, stream, max_message)).await;
        socket.map_err(|_| DialError::Timeout)?
    }

    async fn connect(&self, url: &PeerUrl, patience: Duration) -> Result<TcpStream, DialError> {
        let addresses = self.addresses(url).await?;
        // The first address may lead nowhere: it must not take all the time.
        let tried = addresses.len().clamp(1, MAX_ADDRESSES);
        let share = patience / u32::try_from(tried).unwrap_or(1);
        let mut failure = DialError::Name(LookupError::NoSuchName);
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            let address = SocketAddr::new(address, url.port());
            failure = match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Messages are small and wanted at once. Without it they come a little later.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => DialError::Connect(error),
                Err(_) => DialError::Timeout,
            };
        }
        Err(failure)
    }

    /// The addresses of the URL's host. One that is refused spoils all.
    async fn addresses(&self, url: &PeerUrl) -> Result<Vec<IpAddr>, DialError> {
        let addresses = match url.url().host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => self.lookup.lookup(name).await?,
            None => Vec::new(),
        };
        match addresses.iter().find(|address| !self.policy.allows(**address)) {
            Some(refused) => Err(DialError::Refused(*refused)),
            None => Ok(addresses),
        }
    }

    async fn shake_hands(
        &self,
        url: &PeerUrl,
        stream: TcpStream,
        max_message: usize,
    ) -> Result<Socket, DialError> {
        let connection: Box<dyn Connection> = if url.is_secure() {
            let connector = TlsConnector::from(Arc::clone(&self.tls));
            let tls = connector.connect(server_name(url)?, stream).await;
            Box::new(tls.map_err(DialError::Tls)?)
        } else {
            Box::new(stream)
        };
        let no_websocket = |error| DialError::Websocket(Box::new(error));
        let mut request = url.url().as_str().into_client_request().map_err(no_websocket)?;
        request.headers_mut().insert(USER_AGENT, OUR_NAME);
        let limits = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(READ_BUFFER)
            .max_write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(max_message))
            .max_frame_size(Some(max_message));
        let joined = client_async_with_config(request, connection, Some(limits)).await;
        joined.map(|(socket, _)| socket).map_err(no_websocket)
    }
}

fn server_name(url: &PeerUrl) -> Result<ServerName<'static>, DialError> {
    let name = match url.url().host() {
        Some(Host::Ipv4(address)) => return Ok(ServerName::from(IpAddr::from(address))),
        Some(Host::Ipv6(address)) => return Ok(ServerName::from(IpAddr::from(address))),
        Some(Host::Domain(name)) => name.trim_end_matches('.').to_owned(),
        None => String::new(),
    };
    ServerName::try_from(name).map_err(|error| DialError::Tls(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;

    /// Gives one list of addresses after the other.
    #[derive(Debug)]
    struct Names(Mutex<Vec<Vec<IpAddr>>>);

    #[async_trait]
    impl Lookup for Names {
        async fn lookup(&self, _: &str) -> Result<Vec<IpAddr>, LookupError> {
            self.0.lock().unwrap().pop().ok_or(LookupError::NoSuchName)
        }
    }

    fn dialer(mut answers: Vec<Vec<IpAddr>>, policy: AddressPolicy) -> Dialer {
        answers.reverse();
        let tls = crate::git::tls(&[]).unwrap();
        Dialer::new(Arc::new(Names(Mutex::new(answers))), policy, Arc::new(tls))
    }

    /// G3, R9: a peer's name is looked up for each connection, the addresses that are looked at are those that are connected
    /// to, and one that is refused spoils all; an address in the URL is looked at, too.
    #[tokio::test]
    async fn what_is_connected_to_was_checked() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let [private, public]: [IpAddr; 2] =
            ["127.0.0.1", "93.184.216.34"].map(|it| it.parse().unwrap());
        let url: PeerUrl = format!("ws://relay.example.org:{port}").parse().unwrap();
        let answers = vec![vec![public, private], vec![private], vec![]];
        let strict = dialer(answers, AddressPolicy::public_only());
        let patience = Duration::from_secs(30);
        for _ in 0..2 {
            let refused = strict.dial(&url, 1_000, patience).await.map(drop).unwrap_err();
            assert!(matches!(refused, DialError::Refused(it) if it == private), "{refused}");
        }
        let unknown = strict.dial(&url, 1_000, patience).await.map(drop).unwrap_err();
        assert!(matches!(unknown, DialError::Name(_)), "{unknown}");
        for host in ["127.1", "0x7f.0.0.1", "[::1]", "[::ffff:127.0.0.1]"] {
            let url: PeerUrl = format!("ws://{host}:{port}").parse().unwrap();
            let refused = strict.dial(&url, 1_000, patience).await.map(drop).unwrap_err();
            assert!(matches!(refused, DialError::Refused(_)), "{host}: {refused}");
        }
        // With leave, the one that was looked up is connected to.
        let loose = dialer(vec![vec![private]], AddressPolicy::any());
        let dialled = loose.dial(&url, 1_000, patience);
        let (accepted, dialled) =
            tokio::join!(async { listener.accept().await.map(drop) }, dialled);
        accepted.unwrap();
        assert!(matches!(dialled.map(drop).unwrap_err(), DialError::Websocket(_)));
    }
}
