use std::{fmt, str::FromStr, sync::Arc};

use domain_throttle::{Domain, Endpoint};
use url::Url;

/// Where an object may be asked for: an absolute http or https URL without userinfo, query or
/// fragment. Cheap to clone.
///
/// It is held in the spelling of the `url` crate, which is what has to be passed on: the text that
/// came in may be read differently by others.
#[derive(Clone)]
pub struct CloneUrl(Arc<Inner>);

struct Inner {
    url: Url,
    endpoint: Endpoint,
}

/// The most bytes a clone URL may have.
const MAX_BYTES: usize = 2_048;

impl CloneUrl {
    /// The URL.
    pub fn url(&self) -> &Url {
        &self.0.url
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        self.0.url.as_str()
    }

    /// The server that is asked.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// The domain whose limits count.
    pub fn domain(&self) -> &Domain {
        self.0.endpoint.domain()
    }
}

impl FromStr for CloneUrl {
    type Err = CloneUrlError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        use CloneUrlError as E;
        if input.len() > MAX_BYTES {
            return Err(E::TooLong);
        }
        if input.contains(|c: char| c.is_control() || c == '\\' || c == ' ') {
            return Err(E::Character);
        }
        let url = Url::parse(input).map_err(|_| E::NotAbsolute)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(E::Scheme);
        }
        if !url.username().is_empty()
            || url.password().is_some()
            || input.contains('@') && authority(input).contains('@')
        {
            return Err(E::Userinfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(E::QueryOrFragment);
        }
        let endpoint = Endpoint::from_url(&url).map_err(|_| E::NoHost)?;
        Ok(Self(Arc::new(Inner { url, endpoint })))
    }
}

/// What stands between `//` and the path, as it was written.
fn authority(input: &str) -> &str {
    let rest = input.split_once("//").map_or(input, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

impl PartialEq for CloneUrl {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for CloneUrl {}

impl std::hash::Hash for CloneUrl {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for CloneUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CloneUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CloneUrl({self})")
    }
}

/// Why a text is no [`CloneUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloneUrlError {
    /// Over 2,048 bytes.
    #[error("a clone URL has at most {MAX_BYTES} bytes")]
    TooLong,
    /// A space, a backslash or a control character.
    #[error("a clone URL has no spaces, backslashes or control characters")]
    Character,
    /// No absolute URL.
    #[error("a clone URL is absolute, like https://host/path.git")]
    NotAbsolute,
    /// Another scheme than http or https.
    #[error("only http and https clone URLs are supported")]
    Scheme,
    /// A user name or a password.
    #[error("a clone URL has no user name or password")]
    Userinfo,
    /// A query or a fragment.
    #[error("a clone URL has no query or fragment")]
    QueryOrFragment,
    /// No host.
    #[error("a clone URL names a host")]
    NoHost,
}
