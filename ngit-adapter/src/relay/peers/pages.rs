//! Paging through what a peer has: from the newest to the oldest, each page until where the one before ended.

use nostr::types::Timestamp;

/// Where a walk through pages is. It ends whatever the peer sends: each page begins earlier than the one before.
#[derive(Debug)]
pub(super) struct Pages {
    until: Option<u64>,
    oldest: Option<u64>,
    count: usize,
    pages: u32,
}

/// How many events one page has.
pub(super) const PAGE: usize = 500;
/// How many pages are read at most.
const MAX_PAGES: u32 = 1_000;

impl Pages {
    pub(super) fn new() -> Self {
        Self { until: None, oldest: None, count: 0, pages: 0 }
    }

    /// Up to when the page goes that is asked for now.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.until.map(Timestamp::from)
    }

    /// Notes an event of the page. Says whether the peer may send more for it.
    pub(super) fn note(&mut self, created_at: Timestamp) -> bool {
        let created_at = created_at.as_secs();
        self.oldest = Some(self.oldest.map_or(created_at, |oldest| oldest.min(created_at)));
        self.count += 1;
        self.count <= 2 * PAGE
    }

    /// Goes on to the next page. Says whether there is one: after a page without events there is none.
    pub(super) fn next(&mut self) -> bool {
        self.pages += 1;
        self.count = 0;
        let Some(oldest) = self.oldest.take() else { return false };
        // Others may have the second of the oldest one. If the page was of one second, there is no way to ask for the
        // rest of it.
        let next = match self.until {
            Some(until) if oldest >= until => until.checked_sub(1),
            _ => Some(oldest),
        };
        self.until = next;
        next.is_some() && self.pages < MAX_PAGES
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Asks a peer with events of these dates, which gives `most` at once, and says which it gave.
    fn walk(dates: &[u64], most: usize) -> BTreeSet<usize> {
        let mut newest_first: Vec<_> = dates.iter().copied().enumerate().collect();
        newest_first.sort_by_key(|(_, date)| std::cmp::Reverse(*date));
        let (mut pages, mut got) = (Pages::new(), BTreeSet::new());
        loop {
            let until = pages.until().map_or(u64::MAX, |it| it.as_secs());
            let page = newest_first.iter().filter(|(_, date)| *date <= until).take(most);
            for (index, date) in page {
                got.insert(*index);
                pages.note(Timestamp::from(*date));
            }
            if !pages.next() {
                return got;
            }
        }
    }

    proptest! {
        /// R9: every event comes, if the peer gives more at once than it has of one second.
        #[test]
        fn every_event_comes(
            dates in prop::collection::vec(0_u64..60, 0..150), most in 1_usize..20,
        ) {
            let crowd = |date| dates.iter().filter(|it| **it == date).count();
            let crowded = dates.iter().any(|date| crowd(*date) >= most);
            prop_assume!(!crowded);
            prop_assert_eq!(walk(&dates, most).len(), dates.len());
        }

        /// R9: whatever a peer sends, the pages end, and each begins earlier than the one before.
        #[test]
        fn pages_end(sent in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..4), 0..2_000)) {
            let mut pages = Pages::new();
            let mut before = u64::MAX;
            for (number, page) in sent.iter().enumerate() {
                prop_assert!(number < 1_000);
                for date in page {
                    pages.note(Timestamp::from(*date));
                }
                if !pages.next() {
                    break;
                }
                let until = pages.until().unwrap().as_secs();
                prop_assert!(until < before || number == 0);
                before = until;
            }
        }
    }

    /// R9: a page that does not end is left.
    #[test]
    fn a_page_without_end_is_left() {
        let mut pages = Pages::new();
        let taken = (0..10_000).take_while(|_| pages.note(Timestamp::from(5))).count();
        assert_eq!(taken, 2 * PAGE);
        assert!(pages.next());
    }
}
