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
                "{server:<23}{fetches:>8}{requests:>10}{at_once:>9}{in_window:>14}{sent_away:>11}"
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
                let refused = count(self.refused, "connection");
                lines.push(format!(
                    "{:<23}       -  refused {refused}: no server to count",
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
        let (made, refused) = (self.fetches() + self.refused, self.refused);
        let Limits { max_concurrent, max_per_window, window } = self.limits;
        let window = window.as_secs();
        [
            format!(
                "One fetch for each of them: {events}. Made: {made}, of which {refused} were refused."
            ),
            format!(
                "The busiest server saw {at_once} at once (limit {max_concurrent}) and {in_window} in any {window} s (limit {max_per_window})."
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_counts_and_all_have_their_sums() {
        let counts = |requests, sent_away, most_at_once| Counts {
            requests,
            sent_away,
            most_at_once,
            starts: vec![crate::cli::demo::now(); 3],
            ..Counts::default()
        };
        let table = Table {
            rows: vec![
                (Host::Quick, counts(8, 0, 2)),
                (Host::Slow, counts(14, 1, 5)),
                (Host::Closed, Counts::default()),
            ],
            refused: 4,
            limits: Limits::default(),
        };
        let lines = table.lines();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            words(&lines[2]),
            "slow.test 3 14 5 of 5 3 of 30 1".split(' ').collect::<Vec<_>>()
        );
        assert!(lines[3].contains("refused 4 connections"), "{lines:?}");
        assert_eq!(words(&lines[4]), ["together", "6", "22", "1"]);
        let [made, peaks] = table.compared_with(40);
        assert!(made.contains("40.") && made.contains("Made: 10, of which 4"), "{made}");
        assert!(peaks.contains("5 at once (limit 5) and 3 in any 60 s (limit 30)"), "{peaks}");
        let all = lines.iter().chain([&made, &peaks]);
        assert!(all.clone().all(|line| line.chars().count() <= 77), "a small terminal is 80 wide");
    }
}
