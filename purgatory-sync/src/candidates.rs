use std::collections::{HashMap, HashSet};

use crate::{
    CloneUrl, Oid, Target,
    rounds::Rounds,
    survey::{Source, Survey},
    tried::Tried,
};

/// One request that may be made: all that this URL may be asked for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) url: CloneUrl,
    pub(crate) oids: Vec<Oid>,
    pub(crate) targets: Vec<Target>,
}

/// The URLs that something is left to ask of, in the order in which they are asked:
///
/// 1. where the fetcher wants to be asked again: that belongs to a try that has begun;
/// 2. announced URLs before a pull request's own, because anyone may open a pull request. But the
///    last quarter of a pass's requests goes to the pull requests first (`own_first`), so that many
///    announcements cannot starve them;
/// 3. URLs that the last passes did not reach, the longest ago first;
/// 4. the domain that last gave this identifier something;
/// 5. the order of the announcement.
pub(crate) fn ordered(
    survey: &Survey,
    tried: &Tried,
    rounds: &Rounds,
    own_first: bool,
) -> Vec<CloneUrl> {
    let mut found: HashMap<&CloneUrl, (bool, usize)> = HashMap::new();
    for want in &survey.wants {
        for source in &want.sources {
            if want.oids.iter().any(|oid| is_open(survey, tried, &source.url, oid)) {
                let position = found.len();
                let (own, _) = found.entry(&source.url).or_insert((source.own, position));
                *own &= source.own;
            }
        }
    }
    let mut order: Vec<_> = found.into_iter().collect();
    order.sort_by_key(|&(url, (own, position))| {
        let begun = tried.has_again(url);
        (!begun, own != own_first, rounds.reached_in(url), !rounds.is_giver(url), position)
    });
    order.into_iter().map(|(url, _)| url.clone()).collect()
}

/// What this URL may be asked for now, or nothing if nothing is left. What the fetcher wants to be
/// asked for again goes alone: it has to get less from try to try.
pub(crate) fn ask(survey: &Survey, tried: &Tried, url: &CloneUrl) -> Option<Ask> {
    let open = |oid: &Oid| is_open(survey, tried, url, oid);
    let begun = |oid: &Oid| tried.is_again(url, oid) && open(oid);
    collect(survey, url, begun).or_else(|| collect(survey, url, open))
}

fn collect(survey: &Survey, url: &CloneUrl, chosen: impl Fn(&Oid) -> bool) -> Option<Ask> {
    let mut ask = Ask { url: url.clone(), oids: Vec::new(), targets: Vec::new() };
    let mut seen = HashSet::new();
    for want in &survey.wants {
        if !want.sources.iter().any(|source| source.url == *url) {
            continue;
        }
        let mut wanted = false;
        for oid in want.oids.iter().filter(|oid| chosen(oid)).take(survey.oids_per_want) {
            wanted = true;
            if seen.insert(*oid) {
                ask.oids.push(*oid);
            }
        }
        if wanted && !ask.targets.contains(&want.target) {
            ask.targets.push(want.target.clone());
        }
    }
    (!ask.oids.is_empty()).then_some(ask)
}

/// Whether nothing can be hoped for from any URL that may be asked for what is missing.
pub(crate) fn no_source_left(survey: &Survey, tried: &Tried) -> bool {
    survey.wants.iter().all(|want| {
        let missing = || want.oids.iter().filter(|oid| survey.is_missing(oid));
        want.sources.iter().all(|Source { url, .. }| missing().all(|oid| tried.is_final(url, oid)))
    })
}

fn is_open(survey: &Survey, tried: &Tried, url: &CloneUrl, oid: &Oid) -> bool {
    survey.is_missing(oid) && (!tried.was_asked(url, oid) || tried.is_again(url, oid))
}
