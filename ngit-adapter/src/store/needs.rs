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
pub(super) fn needs(look: &Look, max_followers: usize) -> Needs {
    let authority = look.authority();
    let held = look.held().iter().filter(|entry| entry.held.counts()).count();
    if authority.is_empty() {
        return Needs { held, wants: Vec::new() };
    }
    let mut events: Vec<_> = look.held().iter().map(|entry| &entry.held).collect();
    events.sort_by_key(|held| (held.created_at, held.id));
    let mut sources = Sources { authority, by_owner: HashMap::new() };
    let served: HashSet<PublicKey> = look.served_owners().into_iter().collect();
    let mut wants = owners_wants(look, &served, max_followers, &mut sources, &events);
    let proposals = events.iter().filter_map(|held| match &held.body {
        Body::Proposal(proposal) => proposal_want(&served, &mut sources, proposal),
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
    ///
    /// The first one of each in turn, then the second one: nobody's many push another's only one down the list.
    fn urls(&mut self, owners: impl IntoIterator<Item = PublicKey>) -> Vec<CloneUrl> {
        let lists = owners.into_iter().map(|owner| {
            let of_owner = self.by_owner.entry(owner).or_insert_with(|| {
                let team: Vec<_> = self.authority.team(&owner).map(|it| &*it.clone_urls).collect();
                in_turn(&team)
            });
            of_owner.clone()
        });
        let lists: Vec<Vec<CloneUrl>> = lists.collect();
        match &*lists {
            [one] => one.clone(),
            many => in_turn(&many.iter().map(Vec::as_slice).collect::<Vec<_>>()),
        }
    }
}

/// The first URL of each list, then the second one of each, each once.
fn in_turn(lists: &[&[CloneUrl]]) -> Vec<CloneUrl> {
    let longest = lists.iter().map(|list| list.len()).max().unwrap_or_default();
    let turns = (0..longest).flat_map(|turn| lists.iter().filter_map(move |list| list.get(turn)));
    let mut seen = HashSet::new();
    turns.filter(|url| seen.insert(*url)).take(MAX_URLS).cloned().collect()
}

/// How many objects are wanted for further owners, once each state is wanted for one. A state can be about the
/// repositories of any number of strangers, who only have to name its author.
const MAX_FURTHER_OIDS: usize = 100_000;

/// One want per owner whose repository held states are about: those first that had data before, of the others the
/// owner of the oldest state.
///
/// A state is wanted for the likeliest of its owners in any case. That is enough for it to be found and released; the
/// others are further places to look, as many as may follow its author.
fn owners_wants(
    look: &Look,
    served: &HashSet<PublicKey>,
    max_followers: usize,
    sources: &mut Sources<'_>,
    events: &[&Arc<Held>],
) -> Vec<Want> {
    let mut oids = BTreeMap::<PublicKey, BTreeSet<Oid>>::new();
    let mut order = Vec::new();
    let mut room = MAX_FURTHER_OIDS;
    let states = events.iter().filter_map(|held| match &held.body {
        Body::State(state) if !state.is_empty() => Some((state, likeliest(sources, served, held))),
        _ => None,
    });
    let mut states: Vec<_> = states.collect();
    states.sort_by_key(|(_, owners)| !owners.iter().any(|owner| served.contains(owner)));
    for (state, owners) in states {
        let all_served = owners.iter().filter(|owner| served.contains(owner)).count();
        for (index, owner) in owners.into_iter().take(1 + all_served + max_followers).enumerate() {
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
    // Each look works on so many wants: the first ones must not be those that cost nothing.
    order.sort_by_key(|owner| !served.contains(owner));
    let mut want = |owner: PublicKey| Want {
        oids: oids[&owner].iter().copied().collect(),
        urls: sources.urls([owner]),
        own_urls: Vec::new(),
        origin: Origin::Owner,
        target: RepositoryId::new(owner, look.identifier.clone()).to_target(),
    };
    order.into_iter().map(&mut want).collect()
}

/// The owners over whose repositories a state's author has authority.
///
/// Anyone can announce the name and trust the author. The author's own repository comes first, then those that had data
/// before.
fn likeliest(sources: &Sources<'_>, served: &HashSet<PublicKey>, held: &Held) -> Vec<PublicKey> {
    let mut owners = sources.authority.owners_for(&held.author);
    owners.sort_by_key(|owner| (*owner != held.author, !served.contains(owner)));
    owners
}

fn proposal_want(
    served: &HashSet<PublicKey>,
    sources: &mut Sources<'_>,
    proposal: &Proposal,
) -> Option<Want> {
    let mut known: Vec<_> =
        proposal.repositories.iter().filter(|it| sources.authority.knows(&it.owner)).collect();
    known.sort_by_key(|it| !served.contains(&it.owner));
    Some(Want {
        oids: vec![proposal.tip],
        urls: sources.urls(known.iter().map(|it| it.owner)),
        own_urls: proposal.clone_urls.clone(),
        origin: Origin::Contributor,
        target: known.first()?.to_target(),
    })
}
