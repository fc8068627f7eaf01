use std::time::{Duration, SystemTime};

/// Reads the value of a `Retry-After` header in both forms of RFC 9110, section 10.2.3: seconds
/// (`120`) or an HTTP date (`Fri, 31 Dec 1999 23:59:59 GMT`, and the two obsolete forms of it).
///
/// `now` is the time that a date counts from: the `Date` header of the same answer, where there is
/// one (then the two clocks need not agree), else the system's time. A date that has passed is zero.
/// More digits than fit are the longest duration; the throttle caps what it is told.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use domain_throttle::retry_after;
///
/// assert_eq!(retry_after("120", UNIX_EPOCH)?, Duration::from_secs(120));
/// assert_eq!(retry_after("Thu, 01 Jan 1970 00:01:00 GMT", UNIX_EPOCH)?, Duration::from_secs(60));
/// # Ok::<(), domain_throttle::RetryAfterError>(())
/// ```
///
/// # Errors
///
/// [`RetryAfterError`] for anything else: treat the answer as if it had no such header.
pub fn retry_after(value: &str, now: SystemTime) -> Result<Duration, RetryAfterError> {
    let value = value.trim_matches([' ', '\t']);
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let at = httpdate::parse_http_date(value).map_err(|_| RetryAfterError::new(value))?;
    Ok(at.duration_since(now).unwrap_or(Duration::ZERO))
}

/// A `Retry-After` that is neither a number of seconds nor an HTTP date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{value:?} is no Retry-After: write seconds, or a date as in `Fri, 31 Dec 1999 23:59:59 GMT`"
)]
pub struct RetryAfterError {
    value: String,
}

impl RetryAfterError {
    fn new(value: &str) -> Self {
        Self { value: value.chars().take(64).collect() }
    }
}
