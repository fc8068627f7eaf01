use std::{net::IpAddr, time::Duration};

use async_trait::async_trait;
use purgatory_sync::domain_throttle::Domain;

use crate::git::{Lookup, LookupError};

/// A server of the demo. Each has a name of its own, so each is a domain of its own, with limits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    Quick,
    Older,
    Slow,
    Strict,
    Forks,
    Closed,
}

/// How long the slow server takes for each answer.
pub(super) const SLOWNESS: Duration = Duration::from_millis(600);
/// How long the strict server wants to be left alone, in whole seconds.
pub(super) const REST: Duration = Duration::from_secs(2);

impl Host {
    pub(super) const ALL: [Self; 6] =
        [Self::Quick, Self::Older, Self::Slow, Self::Strict, Self::Forks, Self::Closed];

    /// The names end in a domain that is set aside for tests (RFC 6761): nobody's server is called so.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick.test",
            Self::Older => "older.test",
            Self::Slow => "slow.test",
            Self::Strict => "strict.test",
            Self::Forks => "forks.test",
            Self::Closed => "closed.test",
        }
    }

    /// Which server this domain is.
    pub(super) fn of(domain: &Domain) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.name() == domain.as_str())
    }

    /// The last part of its own loopback address, where the system has more than one.
    pub(super) fn number(self) -> u8 {
        self as u8 + 1
    }

    /// How it behaves, for a person.
    pub(super) fn manner(self) -> String {
        match self {
            Self::Quick => "answers at once".to_owned(),
            Self::Older => "has old copies only".to_owned(),
            Self::Slow => format!("takes {} ms to answer", SLOWNESS.as_millis()),
            Self::Strict => format!("first says: come in {} s", REST.as_secs()),
            Self::Forks => "has what others changed".to_owned(),
            Self::Closed => "refuses every connection".to_owned(),
        }
    }
}

/// Where the demo's servers are. It knows nobody else, so no other name can be asked for.
#[derive(Debug)]
pub(super) struct Names(pub(super) Vec<(Host, IpAddr)>);

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let found = self.0.iter().find(|(known, _)| known.name() == host);
        found.map(|(_, address)| vec![*address]).ok_or(LookupError::NoSuchName)
    }
}
