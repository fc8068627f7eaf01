use nostr::event::EventId;
use purgatory_sync::Oid;

use super::{paint::Paint, servers::Servers, story::Story, world::World};
use crate::{cli::line_writer::LineSink, store::HeldEvent};

/// Says what is held and why, and what all of it took.
pub(super) async fn tell(
    out: &LineSink,
    paint: Paint,
    servers: &Servers,
    world: &World,
    story: &Story,
    held: &[(HeldEvent, Vec<Oid>)],
) {
    let blank = || out.line(String::new());
    blank().await;
    for (event, missing) in held {
        let Some(told) = world.told(&event.id) else { continue };
        let what = format!("Still held: {} in {}.", told.what, told.repository);
        out.line(format!("  {}", paint.yellow(&what))).await;
        for oid in missing {
            out.line(format!("  Its commit {oid} is on none of the servers.")).await;
        }
    }
    blank().await;
    for line in events_table(world, &story.released(), held) {
        out.line(format!("  {line}")).await;
    }
    blank().await;
    for line in servers_table(servers) {
        out.line(format!("  {line}")).await;
    }
    blank().await;
    let next = "Now with events of your own: ngit-purgatory sync --help";
    out.line(format!("  {}", paint.dim(next))).await;
    blank().await;
}

fn events_table(
    world: &World,
    released: &[EventId],
    held: &[(HeldEvent, Vec<Oid>)],
) -> Vec<String> {
    let row = |name: &str, counts: [usize; 3]| {
        format!("{name:<24}{:>8}{:>12}{:>8}", counts[0], counts[1], counts[2])
    };
    let mut lines = vec![format!("{:<24}{:>8}{:>12}{:>8}", "", "events", "released", "held")];
    let mut together = [0; 3];
    for repository in &world.repositories {
        let here =
            |id: &EventId| world.told(id).is_some_and(|told| told.repository == repository.name);
        let counts = [
            world.events.iter().filter(|told| here(&told.event.id)).count(),
            released.iter().filter(|id| here(id)).count(),
            held.iter().filter(|(event, _)| here(&event.id)).count(),
        ];
        lines.push(row(repository.name, counts));
        for (sum, count) in together.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    lines.push(row("together", together));
    lines
}

/// What the servers counted, not what we say of ourselves.
fn servers_table(servers: &Servers) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<24}{:>8}{:>12}{:>14}",
        "counted by the servers", "fetches", "requests", "most at once"
    )];
    let mut fetches = 0;
    let mut requests = 0;
    let mut most = 0;
    for server in &servers.all {
        let log = &server.log;
        lines.push(format!(
            "{:<24}{:>8}{:>12}{:>14}",
            server.address.to_string(),
            log.advertisements(),
            log.requests(),
            log.most_at_once()
        ));
        fetches += log.advertisements();
        requests += log.requests();
        most = most.max(log.most_at_once());
    }
    lines.push(format!("{:<24}{fetches:>8}{requests:>12}{most:>14}", "all servers"));
    lines
}
