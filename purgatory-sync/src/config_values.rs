use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// A setting that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}: allowed is {min} to {max}")]
pub struct ConfigError {
    name: &'static str,
    value: u64,
    min: u64,
    max: u64,
}

impl ConfigError {
    /// The setting's name, as in a file.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// Declares the plain numbers behind the settings, each with its default and what is allowed.
macro_rules! values {
    ($($name:ident = $default:expr, $min:expr, $max:expr;)*) => {
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct ConfigValues {
            $(pub(crate) $name: u64,)*
        }

        impl Default for ConfigValues {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl ConfigValues {
            pub(crate) fn check(&self) -> Result<(), ConfigError> {
                $(
                    let (value, min, max) = (self.$name, $min, $max);
                    if !(min..=max).contains(&value) {
                        return Err(ConfigError { name: stringify!($name), value, min, max });
                    }
                )*
                Ok(())
            }
        }
    };
}

values! {
    loop_interval_ms = 1_000, 1, HOUR;
    domain_concurrent = 5, 1, 10_000;
    domain_rate_limit = 30, 1, 1_000_000;
    submitted_delay_ms = 180_000, 1, DAY;
    synced_delay_ms = 500, 1, HOUR;
    synced_max_wait_ms = 5_000, 1, HOUR;
    backoff_initial_ms = 20_000, 1, DAY;
    backoff_max_ms = 120_000, 1, DAY;
    max_fetches = 32, 1, 10_000;
    max_queued = 100_000, 1, 10_000_000;
    oids_per_want = 5_000, 1, 1_000_000;
    urls_per_want = 20, 1, 10_000;
    own_urls_per_want = 3, 0, 10_000;
    wants_per_look = 200, 1, 100_000;
    fetches_per_pass = 64, 1, 10_000;
    fetch_deadline_ms = 600_000, 1, DAY;
    look_deadline_ms = 600_000, 1, DAY;
    shutdown_grace_ms = 5_000, 0, HOUR;
    restore_spread_ms = 60_000, 0, DAY;
}

impl ConfigValues {
    pub(crate) fn domain_concurrent(&self) -> NonZeroU32 {
        non_zero(self.domain_concurrent)
    }

    pub(crate) fn domain_rate_limit(&self) -> NonZeroU32 {
        non_zero(self.domain_rate_limit)
    }
}

/// Checked values lie well within these bounds.
fn non_zero(value: u64) -> NonZeroU32 {
    u32::try_from(value).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}
