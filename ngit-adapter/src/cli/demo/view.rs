use std::time::Duration;

use purgatory_sync::{Activity, Snapshot, State, domain_throttle::Limits};
use tokio::time::Instant;

use super::{
    hosts::Host,
    paint::Paint,
    servers::Servers,
    story::Heard,
    words::{count, of},
};

/// What a person sees at one moment: a line for each server, and one for all.
pub(super) struct View {
    rows: Vec<Row>,
    elapsed: Duration,
    held: usize,
    released: usize,
    fetching: usize,
    waiting: usize,
}

/// One server. What is on and what began is what the server itself counted.
struct Row {
    host: Host,
    on_now: usize,
    lately: usize,
    in_line: usize,
    last: String,
}

/// The widest line, so that it fits a small terminal.
const WIDTH: usize = 79;

impl View {
    pub(super) fn new(
        servers: &Servers,
        snapshot: &Snapshot,
        mut heard: Heard,
        limits: Limits,
        elapsed: Duration,
        now: Instant,
    ) -> Self {
        let rows = servers.all().iter().map(|server| {
            let counts = server.books.read();
            Row {
                host: server.host,
                on_now: counts.on_now,
                lately: counts.lately(now, limits.window),
                in_line: in_line(snapshot, server.host),
                last: heard.last.remove(&server.host).unwrap_or_default(),
            }
        });
        let rows = rows.collect();
        Self {
            rows,
            elapsed,
            held: heard.wait.saturating_sub(heard.released_waiting),
            released: heard.released_waiting,
            fetching: snapshot.fetching(),
            waiting: snapshot.identifiers.iter().filter(|each| waits(&each.state)).count(),
        }
    }

    pub(super) fn lines(&self, limits: Limits, paint: Paint) -> Vec<String> {
        let row = |cells: [&str; 5]| {
            let [host, on_now, lately, in_line, last] = cells;
            let line = format!("  {host:<12}{on_now:>8}{lately:>13}{in_line:>9}  {last}");
            line.trim_end().chars().take(WIDTH).collect::<String>()
        };
        let window = format!("in {} s", limits.window.as_secs());
        let mut lines = vec![
            String::new(),
            paint.dim(&row(["server", "on now", &window, "in line", "last answer"])),
        ];
        for each in &self.rows {
            let (on_now, lately) = match each.host {
                // Nobody is there to count.
                Host::Closed => ("-".to_owned(), "-".to_owned()),
                _ => (
                    of(each.on_now, limits.max_concurrent.get()),
                    of(each.lately, limits.max_per_window.get()),
                ),
            };
            let in_line = each.in_line.to_string();
            let line = row([each.host.name(), &on_now, &lately, &in_line, &each.last]);
            lines.push(if each.in_line > 0 { paint.yellow(&line) } else { line });
        }
        let tenths = self.elapsed.as_millis() / 100;
        let total = format!(
            "  {:>2}.{} s   {} held, {} released   repositories: {} fetching, {} waiting",
            tenths / 10,
            tenths % 10,
            count(self.held, "event"),
            self.released,
            self.fetching,
            self.waiting,
        );
        lines.extend([String::new(), paint.bold(&total)]);
        lines
    }
}

/// How many repositories wait in the line of this server.
fn in_line(snapshot: &Snapshot, host: Host) -> usize {
    let waits = |state: &State| match state {
        State::Running(Activity::InLine { domains }) => {
            domains.iter().any(|domain| domain.as_str() == host.name())
        }
        _ => false,
    };
    snapshot.identifiers.iter().filter(|each| waits(&each.state)).count()
}

/// Whether a repository waits: for quiet, in a line, for its next try.
fn waits(state: &State) -> bool {
    !matches!(
        state,
        State::Running(Activity::Looking | Activity::Releasing | Activity::Fetching { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(on_now: usize, last: &str) -> View {
        let row = |host| Row { host, on_now, lately: 7, in_line: 2, last: last.to_owned() };
        View {
            rows: Host::ALL.into_iter().map(row).collect(),
            elapsed: Duration::from_millis(12_345),
            held: 31,
            released: 12,
            fetching: 5,
            waiting: 6,
        }
    }

    #[test]
    fn each_server_has_a_line_and_all_have_one_together() {
        let lines = view(5, "kettle: 4 of 4 objects").lines(Limits::default(), Paint::new(false));
        let slow = lines.iter().find(|line| line.contains("slow.test")).expect("it has a line");
        let words: Vec<_> = slow.split_whitespace().collect();
        assert_eq!(words[..8], ["slow.test", "5", "of", "5", "7", "of", "30", "2"]);
        assert!(slow.ends_with("kettle: 4 of 4 objects"), "{slow}");
        let last = lines.last().expect("there are lines");
        assert_eq!(
            last.trim(),
            "12.3 s   31 events held, 12 released   repositories: 5 fetching, 6 waiting"
        );
        // Two blank lines, the heads, the servers, the total.
        assert_eq!(lines.len(), Host::ALL.len() + 4);
    }

    #[test]
    fn whatever_is_answered_a_line_fits_a_small_terminal() {
        let lines = view(1_000_000, &"x".repeat(500)).lines(Limits::default(), Paint::new(false));
        assert!(lines.iter().all(|line| line.chars().count() < 80), "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "{lines:?}");
    }
}
