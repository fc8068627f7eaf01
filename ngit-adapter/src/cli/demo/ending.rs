use purgatory_sync::{Oid, Snapshot};

use super::{hosts::Host, now, reasons::still_held, servers::Servers, story::Story, table::Table};
use crate::store::HeldEvent;

/// Says what is held and why, and what all of it took.
pub(super) async fn tell(
    story: &Story,
    servers: &Servers,
    snapshot: &Snapshot,
    held: &[(HeldEvent, Vec<Oid>)],
) {
    let heard = story.heard();
    let paint = story.paint;
    let blank = || story.out.line(String::new());
    let say = async |line: String| story.out.line(format!("  {line}")).await;

    blank().await;
    for each in still_held(&story.world, &heard, snapshot, held, now()) {
        say(paint.yellow(&each.what)).await;
        say(format!("  {}", each.why)).await;
    }
    blank().await;
    let refused = heard.tries.get(&Host::Closed).copied().unwrap_or(0);
    let table = Table::new(servers, refused, story.limits);
    for line in table.lines() {
        say(line).await;
    }
    blank().await;
    say(paint.bold(&format!(
        "{} events waited for git data: {} released as it came, {} still held.",
        heard.wait,
        heard.released_waiting,
        held.len()
    )))
    .await;
    for line in table.compared_with(heard.wait) {
        say(line).await;
    }
    blank().await;
    say(paint.dim("Now with events of your own: ngit-purgatory sync --help")).await;
    blank().await;
}
