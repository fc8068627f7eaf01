use std::collections::{HashMap, HashSet};

use domain_throttle::Domain;

use crate::CloneUrl;

/// How many URLs of one identifier are remembered from pass to pass. Where all that are known are seen in one look
/// ([`Rounds::keep_only`]) there are fewer; where they are not, strangers could name new ones for ever.
const MAX_REACHED: usize = 20_000;

/// Which URLs of one identifier were reached, and when: kept from pass to pass, so that what one pass
/// did not get to is the next one's first.
///
/// Each URL carries the number of the pass that reached it last, and the lowest number goes first.
/// So a round over all URLs ends by itself, whatever its length and whatever the limit on one pass,
/// and no URL waits for ever because another one is paused.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    pass: u64,
    reached: HashMap<Domain, HashMap<CloneUrl, u64>>,
    giver: Option<Domain>,
}

impl Rounds {
    /// A new pass begins.
    pub(crate) fn begin_pass(&mut self) {
        self.pass += 1;
        self.forget_oldest();
    }

    /// Of too many URLs, forgets those that were reached the longest ago. They were the next ones anyway.
    fn forget_oldest(&mut self) {
        let mut passes: Vec<u64> =
            self.reached.values().flat_map(HashMap::values).copied().collect();
        if passes.len() <= MAX_REACHED {
            return;
        }
        passes.sort_unstable();
        let forgotten = passes[passes.len() - MAX_REACHED / 2];
        self.reached.retain(|_, urls| {
            urls.retain(|_, pass| *pass > forgotten);
            !urls.is_empty()
        });
    }

    /// The URL is about to be asked. Noted before, so that a crash does not make it the first for ever.
    pub(crate) fn reach(&mut self, url: &CloneUrl) {
        self.reached.entry(url.domain().clone()).or_default().insert(url.clone(), self.pass);
    }

    /// The URL brought something.
    pub(crate) fn gave(&mut self, url: &CloneUrl) {
        self.giver = Some(url.domain().clone());
    }

    /// The pass that reached the URL last; 0 for a new one.
    pub(crate) fn reached_in(&self, url: &CloneUrl) -> u64 {
        let domain = self.reached.get(url.domain());
        domain.and_then(|urls| urls.get(url)).copied().unwrap_or(0)
    }

    /// Whether the URL is on the domain that last gave something.
    pub(crate) fn is_giver(&self, url: &CloneUrl) -> bool {
        self.giver.as_ref() == Some(url.domain())
    }

    /// Forgets every URL that is not known any more.
    pub(crate) fn keep_only(&mut self, known: &HashSet<CloneUrl>) {
        self.reached.retain(|_, urls| {
            urls.retain(|url, _| known.contains(url));
            !urls.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(number: usize) -> CloneUrl {
        format!("https://h{}.example/{number}.git", number % 100).parse().unwrap()
    }

    /// P13: URLs that change for ever do not grow the memory of an identifier; those reached last stay.
    #[test]
    fn what_is_remembered_of_urls_is_bounded() {
        let mut rounds = Rounds::default();
        for pass in 0..30 {
            rounds.begin_pass();
            for number in 0..1_000 {
                rounds.reach(&url(pass * 1_000 + number));
            }
            let remembered: usize = rounds.reached.values().map(HashMap::len).sum();
            assert!(remembered <= MAX_REACHED + 1_000, "{remembered}");
        }
        assert_eq!(rounds.reached_in(&url(29_999)), 30);
        assert_eq!(rounds.reached_in(&url(0)), 0);
    }
}
