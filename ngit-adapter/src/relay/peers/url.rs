use std::{fmt, str::FromStr};

use purgatory_sync::{CloneUrl, OurDomain, domain_throttle::Endpoint};
use url::Url;

/// The address of another relay: `ws://` or `wss://`, a host, perhaps a port and a path.
///
/// ```
/// # use ngit_adapter::relay::PeerUrl;
/// let url: PeerUrl = "WSS://Relay.Example.org:443".parse()?;
/// assert_eq!(url.to_string(), "wss://relay.example.org/");
/// assert!("https://relay.example.org".parse::<PeerUrl>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerUrl(Url);

/// The most bytes of a relay's URL.
const MAX_BYTES: usize = 512;

/// Where a relay is, the same for every spelling of it. `ws` and `wss` on their default ports are one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::relay) struct Place {
    pub(super) host: String,
    port: Option<u16>,
    path: String,
}

/// Why a text is no relay's URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{input:?} is no relay's URL: give one like wss://relay.example.org")]
pub struct PeerUrlError {
    input: String,
}

impl PeerUrl {
    pub(super) fn url(&self) -> &Url {
        &self.0
    }

    pub(super) fn is_secure(&self) -> bool {
        self.0.scheme() == "wss"
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(if self.is_secure() { 443 } else { 80 })
    }

    /// Whether it leads to this service itself: its host, and port where it has one (P7).
    pub(in crate::relay) fn is_ours(&self, ours: &OurDomain) -> bool {
        self.as_http().parse::<CloneUrl>().is_ok_and(|url| ours.serves(&url))
    }

    pub(in crate::relay) fn place(&self) -> Place {
        let host = match Endpoint::from_str(&self.as_http()) {
            Ok(endpoint) => endpoint.domain().as_str().to_owned(),
            Err(_) => self.0.host_str().unwrap_or_default().to_owned(),
        };
        let path = self.0.path().trim_end_matches('/').to_owned();
        Place { host, port: self.0.port(), path }
    }

    /// The same host and port as the rules for clone URLs know them.
    fn as_http(&self) -> String {
        let rest = self.0.as_str().strip_prefix("ws").unwrap_or_default();
        format!("http{rest}")
    }
}

impl FromStr for PeerUrl {
    type Err = PeerUrlError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let error = || {
            let input = input.chars().take(MAX_BYTES).collect();
            PeerUrlError { input }
        };
        let text = input.trim();
        if text.len() > MAX_BYTES || text.contains(['@', '\\']) {
            return Err(error());
        }
        let url: Url = text.parse().map_err(|_| error())?;
        let plain = matches!(url.scheme(), "ws" | "wss")
            && url.host_str().is_some_and(|host| !host.is_empty())
            && url.query().is_none()
            && url.fragment().is_none();
        if plain { Ok(Self(url)) } else { Err(error()) }
    }
}

impl fmt::Display for PeerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> PeerUrl {
        text.parse().unwrap()
    }

    /// R9: one relay in many spellings is one place; another port or path is another one.
    #[test]
    fn spellings_of_one_relay_are_one_place() {
        let place = url("wss://relay.example.org").place();
        for same in [
            "wss://RELAY.example.org/",
            "ws://relay.example.org",
            "wss://relay.example.org:443/",
            " wss://relay.example.org. ",
            "ws://relay.example.org:80",
        ] {
            assert_eq!(url(same).place(), place, "{same}");
        }
        for other in [
            "wss://relay.example.org:444",
            "wss://relay.example.org/path",
            "wss://example.org",
            "wss://notrelay.example.org",
        ] {
            assert_ne!(url(other).place(), place, "{other}");
        }
        assert_eq!(url("ws://127.1:7000").place(), url("ws://0x7f.0.0.1:7000/").place());
    }

    /// R9, G1: nothing but a plain websocket URL is taken.
    #[test]
    fn what_is_no_plain_websocket_url_is_refused() {
        let long = format!("wss://relay.example.org/{}", "x".repeat(MAX_BYTES));
        for text in [
            "",
            "relay.example.org",
            "http://relay.example.org",
            "file:///etc/passwd",
            "ws://",
            "wss://user@relay.example.org",
            "wss://user:word@relay.example.org",
            "wss://relay.example.org/?a=b",
            "wss://relay.example.org/#a",
            "wss://relay.example.org\\@other.example.org",
            &long,
        ] {
            assert!(text.parse::<PeerUrl>().is_err(), "{text}");
        }
    }

    /// P7, R9: our own service is known by host, and by port where our name has one; never as a part of a name.
    #[test]
    fn our_own_service_is_known() {
        let ours = "git.example.org".parse().unwrap();
        for own in ["wss://git.example.org", "ws://GIT.example.org.:7000/x"] {
            assert!(url(own).is_ours(&ours), "{own}");
        }
        assert!(!url("wss://notgit.example.org").is_ours(&ours));
        let ours = "127.0.0.1:7000".parse().unwrap();
        assert!(
            url("ws://127.1:7000").is_ours(&ours) && !url("ws://127.0.0.1:7001").is_ours(&ours)
        );
    }
}
