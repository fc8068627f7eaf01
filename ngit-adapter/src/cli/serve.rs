use std::{
    io::{IsTerminal, Write},
    time::Duration,
};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::{net::TcpListener, time::MissedTickBehavior};
use tokio_util::task::AbortOnDropHandle;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::{
    Exit, Failure,
    interrupt::Interrupt,
    serve_options::{LogFormat, ServeOptions},
};
use crate::relay::{Relay, RelayConfig};

/// Serves until a signal asks it to end.
pub(super) async fn run(options: ServeOptions) -> Result<Exit, Failure> {
    let mut interrupt =
        Interrupt::listen().map_err(Failure::because("signals cannot be caught"))?;
    let metrics = collect_metrics()?;
    let listener = TcpListener::bind(options.bind_address)
        .await
        .map_err(Failure::because(format!("cannot listen on {}", options.bind_address)))?;
    let bound = listener.local_addr().map_err(Failure::because("the socket has no address"))?;
    let config = options.to_config(bound)?;
    let said = greeting(&config, bound);
    let opening = Relay::open(config);
    let relay = tokio::select! {
        relay = opening => relay.map_err(Failure::because("the relay cannot be opened"))?,
        () = interrupt.received() => return Ok(Exit::Success),
    };
    let _upkeep = keep_up(metrics.clone());
    say(&said);
    let stop = async {
        interrupt.received().await;
        tracing::info!("asked to end");
    };
    relay.with_metrics(move || metrics.render()).serve(listener, stop).await;
    tracing::info!("ended");
    Ok(Exit::Success)
}

/// What is logged unless `RUST_LOG` says otherwise. At INFO the database tells of a new file as of a migration.
const LOGGED: &str = "info,nostr_lmdb=warn";

/// Log lines go to standard error.
pub(super) fn log_to_stderr(format: LogFormat) {
    let asked = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let asked = if asked.trim().is_empty() { LOGGED } else { &asked };
    let filter =
        EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).parse_lossy(asked);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Failing means that somebody set one already: theirs is as good.
    let _ = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}

/// The bounds of the waits after passes that left something held: the steps of the default backoff, and more.
const BACKOFF_BOUNDS: [f64; 7] = [20.0, 40.0, 80.0, 120.0, 300.0, 600.0, 3_600.0];

fn collect_metrics() -> Result<PrometheusHandle, Failure> {
    let backoff = Matcher::Full("purgatory_sync_backoff_seconds".to_owned());
    PrometheusBuilder::new()
        .set_buckets_for_metric(backoff, &BACKOFF_BOUNDS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(Failure::because("metrics cannot be collected"))
}

/// Has the exporter sort what came in, so that nobody who never asks for it lets it grow.
fn keep_up(metrics: PrometheusHandle) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_secs(5));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            metrics.run_upkeep();
        }
    }))
}

fn greeting(config: &RelayConfig, bound: std::net::SocketAddr) -> String {
    format!(
        "listening on http://{bound}\n  relay     ws://{bound}, known as {}\n  git       http://{bound}/<npub>/<identifier>.git, in {}\n  status    http://{bound}/\n",
        config.domain,
        config.git_data.display(),
    )
}

/// On standard output, for a person and for whoever has to know the port. Nobody may be there to read it.
fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
