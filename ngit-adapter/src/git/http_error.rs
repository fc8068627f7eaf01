//! What went wrong with a request, by what kind of thing went wrong.

use std::{error::Error, io};

use purgatory_sync::FetchErrorKind as Kind;

use super::{LookupError, address_lookup::AddressRefused, failure::Failure};

/// The class of a request's failure.
pub(super) fn classify(error: reqwest::Error) -> Failure {
    let (kind, what) = kind_of(&error);
    let failure = Failure::new(kind, what);
    match kind {
        Kind::Refused | Kind::Dns => failure.nothing_sent().because(error),
        _ => failure.because(error),
    }
}

fn kind_of(error: &reqwest::Error) -> (Kind, &'static str) {
    for cause in causes(error) {
        if cause.is::<AddressRefused>() {
            return (Kind::Refused, "the host's address is refused");
        }
        match cause.downcast_ref::<LookupError>() {
            Some(LookupError::NoSuchName) => return (Kind::Dns, "the host name does not exist"),
            Some(_) => return (Kind::Network, "the host name could not be looked up"),
            None => {}
        }
        if error.is_connect() && is_tls(cause) {
            return (Kind::Tls, "TLS could not be set up");
        }
        match cause.downcast_ref::<hyper::Error>() {
            Some(parse) if parse.is_parse_too_large() => {
                return (Kind::TooLarge, "the head of the answer is too large");
            }
            Some(parse) if parse.is_parse() => {
                return (Kind::Unsupported, "the answer is not HTTP");
            }
            _ => {}
        }
    }
    if error.is_timeout() {
        return (Kind::Timeout, "the server could not be reached in time");
    }
    (Kind::Network, "the connection failed")
}

/// TLS errors come wrapped in I/O errors, once or more, which hide them from `source`.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    if cause.is::<rustls::Error>() {
        return true;
    }
    let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    inner.is_some_and(|inner| is_tls(inner))
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}
