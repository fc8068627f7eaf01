use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
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
    let held = look.held.iter().filter(|entry| entry.held.counts()).count();
    if authority.is_empty() {
        return Needs { held, wants: Vec::new() };
    }
    let mut events: Vec<_> = look.held.iter().map(|entry| &entry.held).collect();
    events.sort_by_key(|held| (held.created_at, held.id));
    let mut wants = owners_wants(look, &authority, &events);
    let proposals = events.iter().filter_map(|held| match &held.body {
        Body::Proposal(proposal) => proposal_want(&authority, proposal),
        _ => None,
    });
    wants.extend(proposals);
    Needs { held, wants }
}

/// One want per owner whose repository held states are about, the owner of the oldest state first.
fn owners_wants(look: &Look, authority: &Authority<'_>, events: &[&Arc<Held>]) -> Vec<Want> {
    let mut oids = BTreeMap::<PublicKey, BTreeSet<Oid>>::new();
    let mut order = Vec::new();
    for held in events {
        let Body::State(state) = &held.body else { continue };
        if state.is_empty() {
            continue;
        }
        for owner in authority.owners_for(&held.author) {
            let wanted = oids.entry(owner).or_insert_with(|| {
                order.push(owner);
                BTreeSet::new()
            });
            wanted.extend(state.iter().copied());
        }
    }
    let want = |owner: PublicKey| Want {
        oids: oids[&owner].iter().copied().collect(),
        urls: urls(authority, [owner]),
        own_urls: Vec::new(),
        origin: Origin::Owner,
        target: RepositoryId::new(owner, look.identifier.clone()).to_target(),
    };
    order.into_iter().map(want).collect()
}

fn proposal_want(authority: &Authority<'_>, proposal: &Proposal) -> Option<Want> {
    let known: Vec<_> =
        proposal.repositories.iter().filter(|it| authority.knows(&it.owner)).collect();
    Some(Want {
        oids: vec![proposal.tip],
        urls: urls(authority, known.iter().map(|it| it.owner)),
        own_urls: proposal.clone_urls.clone(),
        origin: Origin::Contributor,
        target: known.first()?.to_target(),
    })
}

/// The clone URLs of the owners' announcements and of those of their maintainers, each once.
fn urls(authority: &Authority<'_>, owners: impl IntoIterator<Item = PublicKey>) -> Vec<CloneUrl> {
    let mut seen = HashSet::new();
    let announcements = owners.into_iter().flat_map(|owner| authority.team(&owner));
    let all = announcements.flat_map(|announcement| &announcement.clone_urls);
    all.filter(|url| seen.insert((*url).clone())).cloned().collect()
}
