use std::borrow::Cow;

use url::{Host, Url};

/// What a text names: the one parser behind [`Endpoint`](crate::Endpoint),
/// [`Domain`](crate::Domain) and [`DomainPattern`](crate::DomainPattern), after the rule L13.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) scheme: Cow<'static, str>,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

/// What is wrong with a text, and how to mend it.
pub(crate) type Fault = &'static str;

const LONGEST_INPUT: usize = 64 * 1024;
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

impl Address {
    /// Reads a URL, or `user@host:path` as ssh and git write it.
    pub(crate) fn parse(input: &str) -> Result<Self, Fault> {
        if input.len() > LONGEST_INPUT {
            return Err("it is longer than 64 KiB");
        }
        let trimmed = input.trim_matches(|c: char| c.is_ascii_whitespace() || c.is_ascii_control());
        if trimmed.is_empty() {
            return Err("it is empty");
        }
        if trimmed.contains("://") && !is_scp_like_before_slashes(trimmed) {
            return Self::from_url(&parse_url(trimmed)?);
        }
        // `https:host` and `https:\\host` are URLs too, as browsers and HTTP clients read them.
        if let Ok(url) = Url::parse(trimmed)
            && url.has_host()
        {
            return Self::from_url(&url);
        }
        parse_scp_like(trimmed)
    }

    pub(crate) fn from_url(url: &Url) -> Result<Self, Fault> {
        let scheme = scheme(url.scheme());
        if scheme == "file" {
            return Err("a file is on no server");
        }
        let text = url.host_str().filter(|host| !host.is_empty()).ok_or("it has no host")?;
        let port = url.port_or_known_default().or(default_port(&scheme));
        Ok(Self { scheme, host: canonical_host(text)?, port })
    }
}

/// The one spelling of a host: a name in lower-case ASCII without a dot at its end, or an IP
/// address without brackets. IPv4 in IPv6 is IPv4.
pub(crate) fn canonical_host(text: &str) -> Result<String, Fault> {
    let host = Host::parse(text).map_err(|_| "its host is neither a name nor an IP address")?;
    match host {
        Host::Ipv4(address) => Ok(address.to_string()),
        Host::Ipv6(address) => Ok(match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => address.to_string(),
        }),
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
            if name.is_empty() {
                return Err("it has no host");
            }
            if name.len() > LONGEST_NAME {
                return Err("its host is longer than 253 characters");
            }
            if name.split('.').any(|label| label.is_empty() || label.len() > LONGEST_LABEL) {
                return Err(
                    "a part of its host between dots is empty or longer than 63 characters",
                );
            }
            if name.contains('*') {
                return Err(
                    "a star stands only at the beginning of an override, as in `*.example.org`",
                );
            }
            Ok(name)
        }
    }
}

fn parse_url(text: &str) -> Result<Url, Fault> {
    Url::parse(text).map_err(|error| match error {
        url::ParseError::EmptyHost => "it has no host",
        url::ParseError::InvalidPort => "its port is no number up to 65535",
        url::ParseError::IdnaError => "its host is no valid international name",
        url::ParseError::InvalidIpv4Address => "its host ends like an IPv4 address but is none",
        url::ParseError::InvalidIpv6Address => "its host is no IPv6 address",
        url::ParseError::InvalidDomainCharacter => "its host contains a character that no host has",
        url::ParseError::RelativeUrlWithoutBase => {
            "it is no absolute URL; write `https://host/...`"
        }
        _ => "it is no URL",
    })
}

/// `git@host:a://b` has its colon before the slashes and a user before the colon.
fn is_scp_like_before_slashes(text: &str) -> bool {
    let before = text.split("://").next().unwrap_or_default();
    before.split_once(':').is_some_and(|(host, _)| host.contains('@'))
}

/// `[user@]host:path`, `[user@][host]:path` and `[user@host:port]:path`: always ssh. What stands
/// behind the colon is a path, also when it looks like a port.
fn parse_scp_like(text: &str) -> Result<Address, Fault> {
    const NO_SERVER: Fault = "write `https://host/...` or `user@host:path`";
    let ssh = |host: &str, port| {
        Ok(Address { scheme: Cow::Borrowed("ssh"), host: canonical_host(host)?, port: Some(port) })
    };
    if let Some((user, rest)) = split_at_bracket(text) {
        let (inside, path) = rest.split_once(']').ok_or("a bracket of its host is not closed")?;
        if !path.starts_with(':') {
            return Err(NO_SERVER);
        }
        let inside = inside.rsplit_once('@').map_or(inside, |(_, host)| host);
        return match inside.split_once(':') {
            _ if user.contains(['/', ':']) => Err(NO_SERVER),
            Some((host, port)) if !port.contains(':') => {
                ssh(host, port.parse().map_err(|_| "its port is no number up to 65535")?)
            }
            Some(_) => ssh(&format!("[{inside}]"), SSH_PORT),
            None => ssh(inside, SSH_PORT),
        };
    }
    let (before, path) = text.split_once(':').ok_or(NO_SERVER)?;
    let (user, host) =
        before.rsplit_once('@').map_or((None, before), |(user, host)| (Some(user), host));
    let is_transport = path.starts_with(':');
    if before.contains(['/', '\\']) || is_transport || host.is_empty() {
        return Err(NO_SERVER);
    }
    // Without a user it could be a URL without a host, such as `mailto:` or `C:\`.
    if user.is_none() && !host.contains('.') && host != "localhost" {
        return Err(NO_SERVER);
    }
    ssh(host, SSH_PORT)
}

/// `user@[...` or `[...`, without the bracket.
fn split_at_bracket(text: &str) -> Option<(&str, &str)> {
    let (user, rest) = text.split_once('[')?;
    (user.is_empty() || user.ends_with('@')).then_some((user, rest))
}

const SSH_PORT: u16 = 22;

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "ssh" => Some(SSH_PORT),
        "git" => Some(9418),
        _ => None,
    }
}

/// The scheme in one spelling; the usual ones cost no memory.
fn scheme(text: &str) -> Cow<'static, str> {
    let known = match text {
        "https" => "https",
        "http" => "http",
        "ssh" | "git+ssh" | "ssh+git" => "ssh",
        "git" => "git",
        "wss" => "wss",
        "ws" => "ws",
        "ftp" => "ftp",
        other => return Cow::Owned(other.to_owned()),
    };
    Cow::Borrowed(known)
}

/// An input as an error shows it: not longer than a line, and without what may be a password.
pub(crate) fn for_errors(input: &str) -> String {
    const SHOWN: usize = 120;
    let (before, after) = input.split_once("://").unwrap_or(("", input));
    let authority_end = after.find(['/', '\\', '?', '#']).unwrap_or(after.len());
    let hidden = match after[..authority_end].rfind('@') {
        Some(at) if !before.is_empty() => format!("{before}://...{}", &after[at..]),
        _ => input.to_owned(),
    };
    match hidden.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}...", &hidden[..cut]),
        None => hidden,
    }
}
