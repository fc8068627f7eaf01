use std::time::Duration;

use domain_throttle::Limits;
use keyed_debounce::Debounce;
use serde::{Deserialize, Serialize};

use crate::{
    Arrival,
    config_values::{ConfigError, ConfigValues},
};

/// The settings of an engine. Every value of this type is valid.
///
/// In a file it is a table of whole numbers; times are in milliseconds and their names end in
/// `_ms`. What is left out has its default. A name that is not known and a number that is not
/// allowed are errors that say what is.
///
/// | name | default | allowed | meaning |
/// |---|---|---|---|
/// | `loop_interval_ms` | 1,000 | 1 to 3,600,000 | rounds of starting what is due begin at least this far apart |
/// | `domain_concurrent` | 5 | 1 to 10,000 | requests to one domain at once |
/// | `domain_rate_limit` | 30 | 1 to 1,000,000 | requests to one domain in any minute |
/// | `submitted_delay_ms` | 180,000 | 1 to 86,400,000 | wait after an event that its author sent |
/// | `synced_delay_ms` | 500 | 1 to 3,600,000 | quiet time after events that came from other relays |
/// | `synced_max_wait_ms` | 5,000 | 1 to 3,600,000 | longest wait of such an event; never below `synced_delay_ms` |
/// | `backoff_initial_ms` | 20,000 | 1 to 86,400,000 | wait after the first pass that left something held; doubles |
/// | `backoff_max_ms` | 120,000 | 1 to 86,400,000 | longest such wait; never below the initial one |
/// | `max_fetches` | 32 | 1 to 10,000 | fetches on at once, over all domains |
/// | `max_queued` | 100,000 | 1 to 10,000,000 | identifiers that may be queued |
/// | `oids_per_want` | 5,000 | 1 to 1,000,000 | objects of one want that are asked for at once |
/// | `urls_per_want` | 20 | 1 to 10,000 | announced URLs of one want that are used |
/// | `own_urls_per_want` | 3 | 0 to 10,000 | URLs of a pull request itself that are used |
/// | `wants_per_look` | 200 | 1 to 100,000 | wants that are worked on at once, the others in turns |
/// | `fetches_per_pass` | 64 | 1 to 10,000 | fetches of one pass |
/// | `fetch_deadline_ms` | 600,000 | 1 to 86,400,000 | longest time of one fetch |
/// | `look_deadline_ms` | 600,000 | 1 to 86,400,000 | longest time of one look into the store and at the objects |
/// | `shutdown_grace_ms` | 5,000 | 0 to 3,600,000 | time that running fetches have to end at a shutdown |
/// | `restore_spread_ms` | 60,000 | 0 to 86,400,000 | time over which what is held at the start is spread |
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ConfigValues", into = "ConfigValues")]
pub struct SyncConfig {
    values: ConfigValues,
}

impl SyncConfig {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long an identifier waits after an event that came this way.
    pub fn debounce(&self, arrival: Arrival) -> Debounce {
        match arrival {
            Arrival::Submitted => Debounce::after(self.submitted_delay()),
            Arrival::Synced => {
                let quiet = self.synced_delay();
                Debounce::new(quiet, self.synced_max_wait().max(quiet))
            }
        }
    }

    /// What one domain may be asked.
    pub fn limits(&self) -> Limits {
        Limits {
            max_concurrent: self.values.domain_concurrent(),
            max_per_window: self.values.domain_rate_limit(),
            window: Duration::from_secs(60),
        }
    }
}

impl TryFrom<ConfigValues> for SyncConfig {
    type Error = ConfigError;

    fn try_from(values: ConfigValues) -> Result<Self, ConfigError> {
        values.check()?;
        Ok(Self { values })
    }
}

impl From<SyncConfig> for ConfigValues {
    fn from(config: SyncConfig) -> Self {
        config.values
    }
}

/// Declares the reader and the checked writer of each setting.
macro_rules! settings {
    ($($(#[$doc:meta])* $kind:ident $read:ident, $write:ident => $field:ident;)*) => {
        impl SyncConfig {$(
            $(#[$doc])*
            pub fn $read(&self) -> settings!(@type $kind) {
                settings!(@read $kind self.values.$field)
            }

            #[doc = concat!("The same settings with another [`", stringify!($read), "`](Self::", stringify!($read), ").")]
            ///
            /// # Errors
            ///
            /// [`ConfigError`] if the value is outside of what is allowed.
            pub fn $write(mut self, value: settings!(@type $kind)) -> Result<Self, ConfigError> {
                self.values.$field = settings!(@write $kind value);
                Self::try_from(self.values)
            }
        )*}
    };
    (@type time) => { Duration };
    (@type count) => { usize };
    (@read time $field:expr) => { Duration::from_millis($field) };
    (@read count $field:expr) => { usize::try_from($field).unwrap_or(usize::MAX) };
    // A part of a millisecond counts as a whole one: no wait gets shorter by it.
    (@write time $value:ident) => { u64::try_from($value.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX) };
    (@write count $value:ident) => { u64::try_from($value).unwrap_or(u64::MAX) };
}

settings! {
    /// Rounds of starting what is due begin at least this far apart. Default 1 s.
    time loop_interval, with_loop_interval => loop_interval_ms;
    /// How many requests to one domain may be on at once. Default 5.
    count domain_concurrent, with_domain_concurrent => domain_concurrent;
    /// How many requests to one domain may start in any minute. Default 30.
    count domain_rate_limit, with_domain_rate_limit => domain_rate_limit;
    /// How long an identifier waits after an event that its author sent. Default 180 s.
    time submitted_delay, with_submitted_delay => submitted_delay_ms;
    /// How long nothing must come before synced events are hunted for. Default 500 ms.
    time synced_delay, with_synced_delay => synced_delay_ms;
    /// The longest that a synced event waits. Default 5 s.
    time synced_max_wait, with_synced_max_wait => synced_max_wait_ms;
    /// The wait after the first pass that left something held. Default 20 s.
    time backoff_initial, with_backoff_initial => backoff_initial_ms;
    /// The longest wait after such a pass. Default 120 s.
    time backoff_max, with_backoff_max => backoff_max_ms;
    /// How many fetches may be on at once, over all domains. Default 32.
    count max_fetches, with_max_fetches => max_fetches;
    /// How many identifiers may be queued. Default 100,000.
    count max_queued, with_max_queued => max_queued;
    /// How many objects of one want are asked for at once. Default 5,000.
    count oids_per_want, with_oids_per_want => oids_per_want;
    /// How many announced URLs of one want are used. Default 20.
    count urls_per_want, with_urls_per_want => urls_per_want;
    /// How many URLs of a pull request itself are used. Default 3.
    count own_urls_per_want, with_own_urls_per_want => own_urls_per_want;
    /// How many wants of one identifier are worked on at once; the others follow in turns. Default 200.
    count wants_per_look, with_wants_per_look => wants_per_look;
    /// How many fetches one pass makes at most. Default 64.
    count fetches_per_pass, with_fetches_per_pass => fetches_per_pass;
    /// How long one fetch may take. Default 10 min.
    time fetch_deadline, with_fetch_deadline => fetch_deadline_ms;
    /// How long one look into the store and at the objects may take. Default 10 min.
    time look_deadline, with_look_deadline => look_deadline_ms;
    /// How long running fetches have to end at a shutdown. Default 5 s.
    time shutdown_grace, with_shutdown_grace => shutdown_grace_ms;
    /// The time over which what is held at the start is spread. Default 60 s.
    time restore_spread, with_restore_spread => restore_spread_ms;
}
