use std::time::Duration;

use clap::Args;
use purgatory_sync::{ConfigError, SyncConfig};

/// The settings of the engine as arguments of a program. A flag beats the environment, which beats the default.
///
/// | flag | environment | default | allowed |
/// |---|---|---|---|
/// | `--sync-loop-interval-ms` | `NGIT_SYNC_LOOP_INTERVAL_MS` | 1000 | 1 to 3600000 |
/// | `--sync-domain-concurrent` | `NGIT_SYNC_DOMAIN_CONCURRENT` | 5 | 1 to 10000 |
/// | `--sync-domain-rate-limit` | `NGIT_SYNC_DOMAIN_RATE_LIMIT` | 30 | 1 to 1000000 |
/// | `--sync-default-delay-secs` | `NGIT_SYNC_DEFAULT_DELAY_SECS` | 180 | 1 to 86400 |
/// | `--sync-immediate-delay-ms` | `NGIT_SYNC_IMMEDIATE_DELAY_MS` | 500 | 1 to 3600000 |
///
/// A relay of your own takes them over with `#[command(flatten)]`:
///
/// ```
/// use clap::Parser;
/// use ngit_adapter::cli::SyncArgs;
///
/// #[derive(Parser)]
/// struct Relay {
///     #[command(flatten)]
///     sync: SyncArgs,
/// }
///
/// let relay = Relay::parse_from(["relay", "--sync-domain-concurrent", "2"]);
/// assert_eq!(relay.sync.to_config()?.domain_concurrent(), 2);
/// # Ok::<(), purgatory_sync::ConfigError>(())
/// ```
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Sync settings")]
#[non_exhaustive]
pub struct SyncArgs {
    /// Rounds of starting what is due begin at least this far apart.
    #[arg(
        long, value_name = "MS", env = "NGIT_SYNC_LOOP_INTERVAL_MS", default_value_t = 1_000,
        value_parser = Allowed { max: 3_600_000, env: "NGIT_SYNC_LOOP_INTERVAL_MS" },
    )]
    pub sync_loop_interval_ms: u32,
    /// Requests to one domain that may be on at once.
    #[arg(
        long, value_name = "N", env = "NGIT_SYNC_DOMAIN_CONCURRENT", default_value_t = 5,
        value_parser = Allowed { max: 10_000, env: "NGIT_SYNC_DOMAIN_CONCURRENT" },
    )]
    pub sync_domain_concurrent: u32,
    /// Requests to one domain that may start in any minute.
    #[arg(
        long, value_name = "N", env = "NGIT_SYNC_DOMAIN_RATE_LIMIT", default_value_t = 30,
        value_parser = Allowed { max: 1_000_000, env: "NGIT_SYNC_DOMAIN_RATE_LIMIT" },
    )]
    pub sync_domain_rate_limit: u32,
    /// The wait after an event that its author sent: the push usually follows.
    #[arg(
        long, value_name = "SECS", env = "NGIT_SYNC_DEFAULT_DELAY_SECS", default_value_t = 180,
        value_parser = Allowed { max: 86_400, env: "NGIT_SYNC_DEFAULT_DELAY_SECS" },
    )]
    pub sync_default_delay_secs: u32,
    /// How quiet it must be after events that came from elsewhere before their data is looked for.
    #[arg(
        long, value_name = "MS", env = "NGIT_SYNC_IMMEDIATE_DELAY_MS", default_value_t = 500,
        value_parser = Allowed { max: 3_600_000, env: "NGIT_SYNC_IMMEDIATE_DELAY_MS" },
    )]
    pub sync_immediate_delay_ms: u32,
}

/// What stands between a quiet time and the longest wait: 500 ms and 5 s by default.
const MAX_WAIT_PER_QUIET: u32 = 10;

impl SyncArgs {
    /// The configuration that they make; all else in it is the default.
    ///
    /// The longest wait of a synced event is ten times its quiet time, an hour at most.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a value that is not allowed. Parsed arguments never have one.
    pub fn to_config(&self) -> Result<SyncConfig, ConfigError> {
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let millis = |ms: u32| Duration::from_millis(ms.into());
        let quiet = millis(self.sync_immediate_delay_ms);
        let longest = quiet.saturating_mul(MAX_WAIT_PER_QUIET).min(Duration::from_secs(3_600));
        SyncConfig::default()
            .with_loop_interval(millis(self.sync_loop_interval_ms))?
            .with_domain_concurrent(count(self.sync_domain_concurrent))?
            .with_domain_rate_limit(count(self.sync_domain_rate_limit))?
            .with_submitted_delay(Duration::from_secs(self.sync_default_delay_secs.into()))?
            .with_synced_delay(quiet)?
            .with_synced_max_wait(longest)
    }
}

/// Parses a whole number from 1 to `max`. What it says of another one names the variable too: the value may have
/// come from there.
#[derive(Clone, Copy)]
struct Allowed {
    max: u32,
    env: &'static str,
}

impl clap::builder::TypedValueParser for Allowed {
    type Value = u32;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<u32, clap::Error> {
        let text = value.to_string_lossy();
        text.parse().ok().filter(|number| (1..=self.max).contains(number)).ok_or_else(|| {
            let name = argument.map(ToString::to_string).unwrap_or_default();
            let why = format!(
                "invalid value '{text}' for '{name}': allowed is a whole number from 1 to {} (in the \
                 environment: {})\n",
                self.max, self.env
            );
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, why).with_cmd(command)
        })
    }
}
