use std::collections::HashMap;

use crate::ledger::Answer;

/// L10 as a host could reckon it: until when, at the most, may its own answers keep somebody away.
/// Never less than what the rule allows, and not much more.
#[derive(Default)]
pub(crate) struct Pauses {
    /// Who was told to come back, and until when that may hold: for that repository, and for all.
    told: Vec<(usize, u64, u64)>,
    /// By place: reports in a row of a name that is gone, and since when there were four.
    nameless: HashMap<usize, (u32, u64)>,
    /// By place: how long after the last such report there may still be a pause.
    over: HashMap<usize, u64>,
}

/// Reports in a row that pause an endpoint.
const REPORTS: u32 = 4;

impl Pauses {
    pub(crate) fn answered(
        &mut self,
        now: u64,
        window: u64,
        repo: usize,
        copy: usize,
        began: u64,
        answer: Answer,
    ) {
        match answer {
            Answer::ComeBack(wait) => {
                let several = self.told.iter().any(|(other, ..)| *other != repo);
                let all = if several { wait } else { wait.min(window) };
                self.told.push((repo, now + wait, now + all));
            }
            Answer::Nameless => {
                let (reports, since) = self.nameless.entry(copy).or_default();
                *reports += 1;
                if *reports == REPORTS {
                    *since = now;
                }
            }
            Answer::Well => {
                let seen = self.nameless.get(&copy).copied();
                if let Some((reports, since)) = seen
                    && (reports < REPORTS || began >= since)
                {
                    self.nameless.remove(&copy);
                    if reports >= REPORTS {
                        self.over.insert(copy, now);
                    }
                }
            }
            Answer::NothingSent => {}
        }
    }

    /// Whether this may have been paused for this repository at `since` or later.
    pub(crate) fn may_pause(&self, repo: usize, copy: usize, since: u64) -> bool {
        let told = self
            .told
            .iter()
            .any(|(other, own, all)| since < *all || (*other == repo && since < *own));
        let nameless = self.nameless.get(&copy).is_some_and(|(reports, _)| *reports >= REPORTS);
        told || nameless || self.over.get(&copy).is_some_and(|over| since <= *over)
    }
}
