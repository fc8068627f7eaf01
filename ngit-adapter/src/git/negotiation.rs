//! What a server is told that we have, so that it sends no more than is needed.

use std::path::Path;

use gix::{revision::walk::Sorting, traverse::commit::simple::CommitTimeOrder};
use purgatory_sync::Oid;

use super::objects::{Objects, oid, sha1};

/// The most commits that are named to a server.
const MAX_HAVES: usize = 384;

/// How far back history is looked at.
const MAX_WALK: usize = 4_096;

/// The newest commits are all named, older ones with growing gaps.
const DENSE: usize = 32;

/// The tips, and commits behind them: a server that is behind us knows some of those and not the tips.
///
/// There are no rounds: all is said in the one request. What is not known in common is sent again, which
/// costs bytes and no correctness. It blocks on the disk.
pub(super) fn haves(repository: &Path, tips: &[Oid]) -> Vec<Oid> {
    let mut haves = tips.to_vec();
    for oid in behind(repository, tips) {
        if haves.len() >= MAX_HAVES {
            break;
        }
        if !haves.contains(&oid) {
            haves.push(oid);
        }
    }
    haves
}

/// Commits behind the tips, newest first. Without any if they cannot be read: it is only a hint.
fn behind(path: &Path, tips: &[Oid]) -> Vec<Oid> {
    let Ok(objects) = Objects::open(path) else { return Vec::new() };
    let repository = objects.repository();
    let commits = tips
        .iter()
        .filter_map(sha1)
        .filter_map(|id| Some(repository.find_object(id).ok()?.peel_to_commit().ok()?.id));
    let newest_first = Sorting::ByCommitTime(CommitTimeOrder::NewestFirst);
    let Ok(walk) = repository.rev_walk(commits).sorting(newest_first).all() else {
        return Vec::new();
    };
    let mut next = 0;
    walk.take(MAX_WALK)
        .map_while(Result::ok)
        .enumerate()
        .filter(|(index, _)| {
            let named = *index == next;
            if named {
                next += (index / DENSE).max(1);
            }
            named
        })
        .filter_map(|(_, info)| oid(&info.id))
        .collect()
}
