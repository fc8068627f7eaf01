use std::collections::{HashMap, HashSet};

use domain_throttle::Domain;

use crate::CloneUrl;

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
