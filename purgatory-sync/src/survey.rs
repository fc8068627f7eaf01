use std::{
    collections::{HashSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use crate::{CloneUrl, Needs, Oid, Origin, OurDomain, SyncConfig, Target, Want};

/// What is looked at in one call of the fetcher's `missing`, at most.
const BATCH: usize = 50_000;

/// One look: what is wanted, within the bounds of the settings, and what of it is here.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// How many events are held.
    pub(crate) held: usize,
    /// The wants that are worked on in this turn.
    pub(crate) wants: Vec<Wanted>,
    /// How many turns it takes to work on all wants.
    pub(crate) turns: usize,
    all_oids: Vec<Oid>,
    needs_hash: u64,
    missing: HashSet<Oid>,
    /// How many objects of one want one request may be for.
    pub(crate) oids_per_want: usize,
}

/// A want within its bounds.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) oids: Vec<Oid>,
    pub(crate) sources: Vec<Source>,
    pub(crate) target: Target,
}

/// A URL that may be asked for a want.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) url: CloneUrl,
    /// Whether it is a pull request's own.
    pub(crate) own: bool,
}

impl Survey {
    /// Takes what the store said. Of more wants than the settings allow at once, those whose turn it is:
    /// the owner's are in the first ones.
    pub(crate) fn new(needs: Needs, turn: usize, config: &SyncConfig, ours: &[OurDomain]) -> Self {
        let Needs { held, mut wants } = needs;
        wants.sort_by_key(|want| want.origin);
        let needs_hash = hash_of(held, &wants);
        let mut seen = HashSet::new();
        let all_oids = wants.iter().flat_map(|want| &want.oids).copied();
        let all_oids = all_oids.filter(|&oid| seen.insert(oid)).collect();
        let at_once = config.wants_per_look();
        let turns = wants.len().div_ceil(at_once).max(1);
        let first = (turn % turns) * at_once;
        let wants = wants.into_iter().skip(first).take(at_once);
        Self {
            held,
            wants: wants.map(|want| Wanted::new(want, config, ours)).collect(),
            turns,
            all_oids,
            needs_hash,
            missing: HashSet::new(),
            oids_per_want: config.oids_per_want(),
        }
    }

    /// The next objects that the fetcher has to be asked about, or nothing when all is known. Every object
    /// of each want: what is here must be found, whatever number of others is missing.
    pub(crate) fn next_batch(&self, here: &HashSet<Oid>) -> Vec<Oid> {
        let mut batch = Vec::new();
        let mut chosen = HashSet::new();
        for want in &self.wants {
            let unknown = |oid: &&Oid| !here.contains(oid) && !self.missing.contains(oid);
            for oid in want.oids.iter().filter(unknown) {
                if batch.len() == BATCH {
                    return batch;
                }
                if chosen.insert(*oid) {
                    batch.push(*oid);
                }
            }
        }
        batch
    }

    /// What the fetcher said about a batch. Names that it was not asked about are passed over.
    pub(crate) fn answer(&mut self, batch: &[Oid], missing: &[Oid], here: &mut HashSet<Oid>) {
        let missing: HashSet<&Oid> = missing.iter().collect();
        for oid in batch {
            if missing.contains(oid) {
                self.missing.insert(*oid);
            } else {
                here.insert(*oid);
            }
        }
    }

    pub(crate) fn is_missing(&self, oid: &Oid) -> bool {
        self.missing.contains(oid)
    }

    /// How many objects are known to be missing.
    pub(crate) fn missing_len(&self) -> usize {
        self.missing.len()
    }

    /// Every wanted object that is here, each once.
    pub(crate) fn here(&self, here: &HashSet<Oid>) -> Vec<Oid> {
        self.all_oids.iter().filter(|oid| here.contains(oid)).copied().collect()
    }

    /// A number that is another when what is held, wanted or here is.
    pub(crate) fn fingerprint(&self, here: &[Oid]) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.needs_hash.hash(&mut hasher);
        here.hash(&mut hasher);
        hasher.finish()
    }

    /// Every URL that may be asked in this turn, each once.
    pub(crate) fn urls(&self) -> HashSet<CloneUrl> {
        let sources = self.wants.iter().flat_map(|want| &want.sources);
        sources.map(|source| source.url.clone()).collect()
    }
}

impl Wanted {
    fn new(want: Want, config: &SyncConfig, ours: &[OurDomain]) -> Self {
        let mut seen = HashSet::new();
        let oids = want.oids.into_iter().filter(|&oid| seen.insert(oid)).collect();
        let mut sources: Vec<Source> = Vec::new();
        let mut known = HashSet::new();
        let announced = (want.urls, false, config.urls_per_want());
        let own = (want.own_urls, true, config.own_urls_per_want());
        for (urls, own, limit) in [announced, own] {
            let strangers = urls.into_iter().filter(|url| !ours.iter().any(|our| our.serves(url)));
            let fresh = strangers.filter(|url| known.insert(url.clone()));
            sources.extend(fresh.take(limit).map(|url| Source { url, own }));
        }
        Self { oids, sources, target: want.target }
    }
}

fn hash_of(held: usize, wants: &[Want]) -> u64 {
    let mut hasher = DefaultHasher::new();
    held.hash(&mut hasher);
    for Want { oids, origin, target, .. } in wants {
        (oids, matches!(origin, Origin::Owner), target).hash(&mut hasher);
    }
    hasher.finish()
}
