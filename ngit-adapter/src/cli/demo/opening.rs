use purgatory_sync::domain_throttle::Limits;

use super::{hosts::Host, paint::Paint, world::World};
use crate::cli::line_writer::LineSink;

/// Says what there is before anything happens.
pub(super) async fn introduce(out: &LineSink, paint: Paint, world: &World, limits: Limits) {
    let say = async |line: String| out.line(format!("  {line}")).await;
    let events = world.burst.len();
    let repositories = world.repositories.len();
    out.line(String::new()).await;
    say(paint.bold(&format!(
        "{events} signed events about {repositories} git repositories. Most name commits that are not here"
    )))
    .await;
    say(paint.bold("yet: they are held until those came from where they are. All on this machine.")).await;
    out.line(String::new()).await;
    for host in Host::ALL {
        let names = world.announced_on(host).join(" ");
        say(format!("{:<12} {:<29} {}", host.name(), host.manner(), paint.dim(&names))).await;
    }
    out.line(String::new()).await;
    say(paint.dim(&format!(
        "No server is asked by more than {} at once, or more than {} times in any {} s.",
        limits.max_concurrent,
        limits.max_per_window,
        limits.window.as_secs()
    )))
    .await;
    out.line(String::new()).await;
}
