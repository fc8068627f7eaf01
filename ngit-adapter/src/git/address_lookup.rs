//! Names to addresses, each of them checked before a connection is made to it.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use dns_lookup::LookupErrorKind;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::AddressPolicy;

/// Turns host names into addresses.
///
/// [`SystemLookup`] asks the system. Another one can ask a resolver of its own.
#[async_trait]
pub trait Lookup: Send + Sync + fmt::Debug {
    /// The addresses of `host`, a name and no address.
    ///
    /// # Errors
    ///
    /// [`LookupError`]: there is no such name, or no answer was to be had.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe.
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError>;
}

/// Why a name has no addresses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The name does not exist, or has no address.
    #[error("there is no such host name")]
    NoSuchName,
    /// No answer could be had. Later there may be one.
    #[error("the look-up of the host name failed")]
    Failed(#[source] io::Error),
}

/// Asks the system's resolver (`getaddrinfo`), with whatever it is set up to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let host = host.to_owned();
        let answer = tokio::task::spawn_blocking(move || {
            dns_lookup::lookup_host(&host).map(Iterator::collect::<Vec<_>>)
        });
        match answer.await {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(LookupError::NoSuchName),
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(match error.kind() {
                LookupErrorKind::NoName | LookupErrorKind::NoData => LookupError::NoSuchName,
                _ => LookupError::Failed(error.into()),
            }),
            Err(ended) => Err(LookupError::Failed(io::Error::other(ended))),
        }
    }
}

/// The look-up that the HTTP client connects by: the addresses it gives are the ones that are
/// connected to, so what is checked here cannot be another one a moment later.
#[derive(Debug)]
pub(super) struct CheckedLookup {
    lookup: Arc<dyn Lookup>,
    policy: AddressPolicy,
}

/// Our policy refuses an address.
#[derive(Debug, thiserror::Error)]
#[error(
    "{address} is no address that may be connected to: it leads into a private network, or nowhere"
)]
pub(super) struct AddressRefused {
    pub(super) address: IpAddr,
}

impl CheckedLookup {
    pub(super) fn new(lookup: Arc<dyn Lookup>, policy: AddressPolicy) -> Self {
        Self { lookup, policy }
    }
}

impl Resolve for CheckedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, policy) = (Arc::clone(&self.lookup), self.policy);
        Box::pin(async move {
            let addresses = lookup.lookup(name.as_str()).await?;
            // One that is refused spoils all: which one is connected to is for others to influence.
            if let Some(address) = addresses.iter().find(|address| !policy.allows(**address)) {
                return Err(AddressRefused { address: *address }.into());
            }
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Says one address after the other.
    #[derive(Debug)]
    struct Rebinding(Mutex<Vec<&'static str>>);

    #[async_trait]
    impl Lookup for Rebinding {
        async fn lookup(&self, _: &str) -> Result<Vec<IpAddr>, LookupError> {
            let next = self.0.lock().expect("no panic").pop().ok_or(LookupError::NoSuchName)?;
            Ok(vec![next.parse().expect("an address")])
        }
    }

    /// G3: a name that is public at one look and private at the next is refused at the next. The HTTP client
    /// connects to nothing but what such a look gives.
    #[tokio::test]
    async fn a_name_that_changes_its_address_is_checked_each_time() {
        let names = Rebinding(Mutex::new(vec!["127.0.0.1", "93.184.216.34"]));
        let lookup = CheckedLookup::new(Arc::new(names), AddressPolicy::public_only());
        let resolve = || lookup.resolve("git.example.org".parse().expect("a name"));
        let addresses: Vec<_> = resolve().await.map(Iterator::collect).unwrap_or_default();
        assert_eq!(addresses, [SocketAddr::from(([93, 184, 216, 34], 0))]);
        let error = resolve().await.map(|_| ()).expect_err("it is private now");
        assert!(error.is::<AddressRefused>());
        let error = resolve().await.map(|_| ()).expect_err("it is gone now");
        assert!(error.is::<LookupError>());
    }
}
