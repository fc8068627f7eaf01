use purgatory_sync::domain_throttle::Limits;

use super::{hosts::Host, paint::Paint, world::World};
use crate::cli::line_writer::LineSink;

/// How many names are said of a server that has many.
const NAMES: usize = 3;

/// Says what this is, before anything is there.
pub(super) async fn title(out: &LineSink, paint: Paint) {
    out.line(String::new()).await;
    let title = "Events that wait for their git data: a demo on this machine alone";
    out.line(format!("  {}", paint.bold(title))).await;
    out.line(String::new()).await;
}

/// Says what there is, before anything happens.
pub(super) async fn introduce(out: &LineSink, paint: Paint, world: &World, limits: Limits) {
    let say = async |line: String| out.line(format!("  {line}").trim_end().to_owned()).await;
    let events = world.burst.len();
    let repositories = world.repositories.len();
    say(format!(
        "{events} signed events about {repositories} git repositories come in one burst. Those that"
    ))
    .await;
    say("name commits are held until the commits were fetched from where they are:".to_owned())
        .await;
    out.line(String::new()).await;
    for host in Host::ALL {
        let names = some_of(&world.announced_on(host));
        say(format!("{:<12} {:<25} {}", host.name(), host.manner(), paint.dim(&names))).await;
    }
    out.line(String::new()).await;
    say(format!(
        "No server is asked by more than {} at once, or more than {} times in any {} s.",
        limits.max_concurrent,
        limits.max_per_window,
        limits.window.as_secs()
    ))
    .await;
    out.line(String::new()).await;
}

fn some_of(names: &[&str]) -> String {
    let said = names[..names.len().min(NAMES)].join(" ");
    match names.len().saturating_sub(NAMES) {
        0 => said,
        more => format!("{said} and {more} more"),
    }
}
