//! The relay under load: 200 clients, 10,000 events of 1,000 repositories, on 50 git servers, beside an idle relay in the
//! same run.
//!
//! Run with: `cargo bench -p ngit-adapter --bench load`, or, for ten percent of it, `... --bench load -- 10`
//!
//! It ends with an error if an event was lost or refused, if a git server got more than it should, or if the memory grew
//! while the load was even.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(dead_code, unused_imports, reason = "the tests use more of what it shares with them")]

#[path = "../tests/it/e2e_support.rs"]
mod e2e_support;
#[path = "../tests/it/load_support.rs"]
mod load_support;
#[path = "../tests/it/serve_support.rs"]
mod serve_support;
#[path = "../tests/it/support.rs"]
mod support;
#[path = "../tests/it/support_events.rs"]
mod support_events;
#[path = "../tests/it/support_program.rs"]
mod support_program;
#[path = "../tests/it/support_server.rs"]
mod support_server;

use std::{process::ExitCode, time::Duration};

use load_support::{EVENTS_EACH, Plan, Report, run};

/// One client at a relay that does nothing else.
const IDLE: Plan = Plan {
    clients: 1,
    repositories: 40,
    domains: 1,
    over: Some(Duration::from_secs(8)),
    delay_secs: 3_600,
    drain: Duration::ZERO,
};

/// Evenly over two minutes: all the while repositories come, are fetched and go.
const LOAD: Plan = Plan {
    clients: 200,
    repositories: 1_000,
    domains: 50,
    over: Some(Duration::from_secs(120)),
    delay_secs: 30,
    drain: Duration::from_secs(600),
};

/// As fast as they are taken. Nothing is fetched meanwhile.
const RUSH: Plan = Plan { over: None, delay_secs: 3_600, drain: Duration::ZERO, ..LOAD };

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let percent = std::env::args().find_map(|it| it.parse().ok()).unwrap_or(100);
    let [even, fast] = [LOAD, RUSH].map(|plan| scaled(plan, percent));
    let [idle, load, rush] = [IDLE, even, fast].map(|plan| runtime.block_on(run(plan)));
    println!("| | events | in | p50 of OK | p99 of OK | p50 to idle | p99 to idle | fetches |");
    println!("|---|---|---|---|---|---|---|---|");
    row("idle, 1 client", &idle, &idle);
    row(&format!("even, {} clients", even.clients), &load, &idle);
    row(&format!("as fast as it goes, {} clients", fast.clients), &rush, &idle);
    println!();
    let mut faults = Vec::new();
    for (name, plan, report) in
        [("idle", IDLE, &idle), ("even", even, &load), ("fast", fast, &rush)]
    {
        faults.extend(wrong(name, plan, report));
    }
    let drained = load.drained_in.map_or("not at all".to_owned(), |it| format!("{it:.0?} later"));
    println!("even: all data came {drained}; {} served, {} held", load.served, load.held);
    if load.drained_in.is_none() {
        faults.push(format!("even: {} events are still held", load.held));
    }
    if let Some((third, last)) = load.second_half() {
        let mib = |bytes: u64| bytes / (1 << 20);
        println!("even: {} MiB in the third quarter, {} MiB in the last", mib(third), mib(last));
        if last > third + third / 10 + (4 << 20) {
            faults.push("even: the memory grew in the second half".to_owned());
        }
    }
    for fault in &faults {
        eprintln!("FAULT {fault}");
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn scaled(plan: Plan, percent: usize) -> Plan {
    let some = |of: usize| (of * percent / 100).max(1);
    let (clients, repositories) = (some(plan.clients), some(plan.repositories));
    Plan { clients, repositories, domains: some(plan.domains), ..plan }
}

fn row(name: &str, report: &Report, idle: &Report) {
    let of = |percent| (report.percentile(percent), idle.percentile(percent));
    let ratio = |(ours, idle): (Duration, Duration)| ours.as_secs_f64() / idle.as_secs_f64();
    println!(
        "| {name} | {} | {:.0?} | {:.1?} | {:.1?} | {:.1} | {:.1} | {} |",
        report.acknowledged,
        report.sent_in,
        of(50).0,
        of(99).0,
        ratio(of(50)),
        ratio(of(99)),
        report.fetches(),
    );
}

/// What must not be, however busy the machine is.
fn wrong(name: &str, plan: Plan, report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    if report.acknowledged != plan.repositories * EVENTS_EACH {
        faults.push(format!("{name}: refused: {:?}", report.refused));
    }
    if !report.lost.is_empty() {
        faults.push(format!("{name}: {} events are lost: {:?}", report.lost.len(), report.lost));
    }
    if report.most_at_once > 5 {
        faults.push(format!("{name}: a server had {} requests on at once", report.most_at_once));
    }
    // The server's stamps are later than ours, the one more than the other.
    let window = Duration::from_secs(60 - 5);
    if let Some(span) = report.shortest_span_of(31).filter(|span| *span < window) {
        faults.push(format!("{name}: a server got 31 requests within {span:?}"));
    }
    faults
}
