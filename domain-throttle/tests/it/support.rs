use std::{num::NonZeroU32, time::Duration};

use domain_throttle::{Endpoint, Limits};

pub(crate) fn at(url: &str) -> Endpoint {
    url.parse().expect("a test's URL names a server")
}

pub(crate) fn limits(max_concurrent: u32, max_per_window: u32, window: Duration) -> Limits {
    let count = |limit| NonZeroU32::new(limit).expect("no test asks for zero");
    Limits { max_concurrent: count(max_concurrent), max_per_window: count(max_per_window), window }
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
