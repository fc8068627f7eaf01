use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use nostr::key::PublicKey;
use purgatory_sync::{CloneUrl, Needs, Oid, Origin, Want};

use super::{
    authority::Authority,
    held::{Body, Held},
    look::Look,
};
use crate::{RepositoryId, nip34::Proposal};

/// What the held events of one identifier wait for, and where it may be.
///
/// Each owner's states make one want, each pull request one. An event without authority, or for a
/// repository that nobody announced, wants nothing (R4); nor does a state without refs.
pub(super) fn needs(look: &Look) -> Needs {
    let authority = look.authority();
    let held = look.held().iter().filter(|entry| entry.held.counts()).count();
    if authority.is_empty() {
        return Needs { held, wants: Vec::new() };
    }
    let mut events: Vec<_> = look.held().iter().map(|entry| &entry.held).collect();
    events.sort_by_key(|held| (held.created_at, held.id));
    let mut sources = Sources { authority, by_owner: HashMap::new() };
    let mut wants = owners_wants(look, &mut sources, &events);
    let proposals = events.iter().filter_map(|held| match &held.body {
        Body::Proposal(proposal) => proposal_want(&mut sources, proposal),
        _ => None,
    });
    wants.extend(proposals);
    Needs { held, wants }
}

/// Where the data of each owner's repository may be. Many wants share it.
struct Sources<'a> {
    authority: &'a Authority,
    by_owner: HashMap<PublicKey, Vec<CloneUrl>>,
}

/// How many clone URLs of announcements one want has. The engine takes fewer (P13).
const MAX_URLS: usize = 100;

impl Sources<'_> {
    /// The clone URLs of the owners' announcements and of those of their maintainers, each once.
    fn urls(&mut self, owners: impl IntoIterator<Item = PublicKey>) -> Vec<CloneUrl> {
        let mut seen = HashSet::new();
        let mut urls = Vec::new();
        for owner in owners {
            let of_owner = self.by_owner.entry(owner).or_insert_with(|| {
                let all = self.authority.team(&owner).flat_map(|it| &it.clone_urls);
                let mut seen = HashSet::new();
                all.filter(|url| seen.insert(*url)).take(MAX_URLS).cloned().collect()
            });
            let fresh = of_owner.iter().filter(|url| seen.insert((*url).clone()));
            urls.extend(fresh.take(MAX_URLS - urls.len()).cloned());
        }
        urls
    }
}

/// How many objects are wanted for further owners, once each state is wanted for one. A state can be about the
/// repositories of any number of strangers, who only have to name its author.
const MAX_FURTHER_OIDS: usize = 100_000;

/// One want per owner whose repository held states are about, the owner of the oldest state first.
///
/// A state is wanted for the likeliest of its owners in any case. That is enough for it to be found and released; the
/// others are further places to look.
fn owners_wants(look: &Look, sources: &mut Sources<'_>, events: &[&Arc<Held>]) -> Vec<Want> {
    let mut oids = BTreeMap::<PublicKey, BTreeSet<Oid>>::new();
    let mut order = Vec::new();
    let served: HashSet<PublicKey> = look.served_owners().into_iter().collect();
    let mut room = MAX_FURTHER_OIDS;
    for held in events {
        let Body::State(state) = &held.body else { continue };
        if state.is_empty() {
            continue;
        }
        let mut owners = sources.authority.owners_for(&held.author);
        // Anyone can announce the name and trust the author. The author's own repository comes first, then
        // those that had data before.
        owners.sort_by_key(|owner| (*owner != held.author, !served.contains(owner)));
        for (index, owner) in owners.into_iter().enumerate() {
            if index > 0 {
                let Some(left) = room.checked_sub(state.len()) else { break };
                room = left;
            }
            let wanted = oids.entry(owner).or_insert_with(|| {
                order.push(owner);
                BTreeSet::new()
            });
            wanted.extend(state.iter().copied());
        }
    }
    let mut want = |owner: PublicKey| Want {
        oids: oids[&owner].iter().copied().collect(),
        urls: sources.urls([owner]),
        own_urls: Vec::new(),
        origin: Origin::Owner,
        target: RepositoryId::new(owner, look.identifier.clone()).to_target(),
    };
    order.into_iter().map(&mut want).collect()
}

fn proposal_want(sources: &mut Sources<'_>, proposal: &Proposal) -> Option<Want> {
    let known: Vec<_> =
        proposal.repositories.iter().filter(|it| sources.authority.knows(&it.owner)).collect();
    Some(Want {
        oids: vec![proposal.tip],
        urls: sources.urls(known.iter().map(|it| it.owner)),
        own_urls: proposal.clone_urls.clone(),
        origin: Origin::Contributor,
        target: known.first()?.to_target(),
    })
}
