use purgatory_sync::domain_throttle::Limits;

use super::{
    books::Counts,
    hosts::Host,
    servers::Servers,
    words::{count, of},
};

/// What the servers counted, not what we say of ourselves.
pub(super) struct Table {
    rows: Vec<(Host, Counts)>,
    /// The tries that no server can have counted.
    refused: usize,
    limits: Limits,
}

impl Table {
    pub(super) fn new(servers: &Servers, refused: usize, limits: Limits) -> Self {
        let rows = servers.all().iter().map(|server| (server.host, server.books.read()));
        Self { rows: rows.collect(), refused, limits }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let row = |cells: [&str; 6]| {
            let [server, fetches, requests, at_once, in_window, sent_away] = cells;
            format!(
                "{server:<23}{fetches:>8}{requests:>10}{at_once:>10}{in_window:>12}{sent_away:>11}"
            )
        };
        let window = format!("in any {} s", self.limits.window.as_secs());
        let mut lines = vec![row([
            "counted by the servers",
            "fetches",
            "requests",
            "at once",
            &window,
            "sent away",
        ])];
        for (host, counts) in &self.rows {
            if *host == Host::Closed {
                let tries = count(self.refused, "try").replace("trys", "tries");
                lines.push(format!(
                    "{:<23}       -  {tries}, each refused: nobody there to count",
                    host.name()
                ));
                continue;
            }
            lines.push(row([
                host.name(),
                &counts.fetches().to_string(),
                &counts.requests.to_string(),
                &of(counts.most_at_once, self.limits.max_concurrent.get()),
                &of(counts.most_within(self.limits.window), self.limits.max_per_window.get()),
                &counts.sent_away.to_string(),
            ]));
        }
        let requests: u64 = self.rows.iter().map(|(_, counts)| counts.requests).sum();
        let sent_away: u64 = self.rows.iter().map(|(_, counts)| counts.sent_away).sum();
        let cells = [self.fetches().to_string(), requests.to_string(), sent_away.to_string()];
        lines.push(row(["together", &cells[0], &cells[1], "", "", &cells[2]]));
        lines
    }

    /// How many fetches reached a server.
    pub(super) fn fetches(&self) -> usize {
        self.rows.iter().map(|(_, counts)| counts.fetches()).sum()
    }

    /// What it took against one fetch for each event that waits, and the peaks against the limits.
    pub(super) fn compared_with(&self, events: usize) -> [String; 2] {
        let most = |of: fn(&Counts, Limits) -> usize| {
            self.rows.iter().map(|(_, counts)| of(counts, self.limits)).max().unwrap_or(0)
        };
        let at_once = most(|counts, _| counts.most_at_once);
        let in_window = most(|counts, limits| counts.most_within(limits.window));
        [
            format!(
                "One fetch for each waiting event: {events}. Made: {} ({} reached a server, {} refused).",
                self.fetches() + self.refused,
                self.fetches(),
                self.refused
            ),
            format!(
                "The busiest server: {at_once} at once (limit {}), {in_window} in any {} s (limit {}).",
                self.limits.max_concurrent,
                self.limits.window.as_secs(),
                self.limits.max_per_window
            ),
        ]
    }
}
