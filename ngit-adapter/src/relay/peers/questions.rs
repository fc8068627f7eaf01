//! What peers are asked for.

use nostr::{
    event::Kind,
    filter::{Filter, SingleLetterTag},
};
use purgatory_sync::Identifier;

use crate::RepositoryId;

/// Something to ask a peer for, and what of it is known besides what is served.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) filter: Filter,
    pub(super) about: About,
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// All announcements: which of them are for this relay is not in a tag that can be asked for.
    Announcements,
    /// Deletions of git events.
    Deletions,
    /// Events about repositories of these names.
    Repositories(Vec<Identifier>),
}

/// Git events that a relay keeps and that are not about another event alone: announcements, states, patches, pull
/// requests, their updates, issues, and what became of them.
const GIT_KINDS: [u16; 10] =
    [30_617, 30_618, 1_617, 1_618, 1_619, 1_621, 1_630, 1_631, 1_632, 1_633];
/// Of what a deletion has to be.
const DELETABLE: [&str; 6] = ["30617", "30618", "1617", "1618", "1619", "1621"];

/// How many repositories one question is about.
const MAX_REPOSITORIES: usize = 100;
/// The most bytes of their names in one question.
const MAX_NAME_BYTES: usize = 16 << 10;

/// What is heard live. Which repositories it is about is looked at when it comes: a filter by name would have to change with
/// every announcement. One stored event each is asked for, since not every relay understands none.
pub(super) fn live() -> [Filter; 3] {
    let comments = Filter::new().kind(Kind::from(1_111));
    [
        Filter::new().kinds(GIT_KINDS.map(Kind::from)).limit(1),
        deletions().limit(1),
        comments.custom_tags(SingleLetterTag::UPPERCASE_K, DELETABLE).limit(1),
    ]
}

/// What comes first: only what is announced here is asked for afterwards.
pub(super) fn first() -> [Question; 2] {
    let announcements = Filter::new().kind(Kind::GitRepoAnnouncement);
    [
        Question { filter: announcements, about: About::Announcements },
        Question { filter: deletions(), about: About::Deletions },
    ]
}

fn deletions() -> Filter {
    let filter = Filter::new().kind(Kind::EventDeletion);
    filter.custom_tags(SingleLetterTag::LOWERCASE_K, DELETABLE)
}

/// Everything about these repositories.
pub(super) fn about(repositories: &[RepositoryId]) -> impl Iterator<Item = Question> + use<'_> {
    chunks(repositories).flat_map(|chunk| {
        let mut names: Vec<_> = chunk.iter().map(|it| it.identifier.clone()).collect();
        names.sort();
        names.dedup();
        let states = Filter::new().kind(Kind::RepoState);
        let states = states.identifiers(names.iter().map(Identifier::as_str));
        let own = chunk.iter().flat_map(|it| [30_617, 30_618].map(|kind| address(kind, it)));
        let about = Filter::new().custom_tags(SingleLetterTag::LOWERCASE_A, own);
        let roots = chunk.iter().map(|it| address(30_617, it));
        let comments = Filter::new().custom_tags(SingleLetterTag::UPPERCASE_A, roots);
        [states, about, comments]
            .map(|filter| Question { filter, about: About::Repositories(names.clone()) })
    })
}

fn address(kind: u16, repository: &RepositoryId) -> String {
    format!("{kind}:{}:{}", repository.owner.to_hex(), repository.identifier)
}

/// Parts that a peer takes in one filter.
fn chunks(repositories: &[RepositoryId]) -> impl Iterator<Item = &[RepositoryId]> {
    let mut rest = repositories;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take(MAX_REPOSITORIES).take_while(|it| {
            bytes += it.identifier.as_str().len();
            bytes <= MAX_NAME_BYTES
        });
        // A name that is too long for that is asked for alone.
        let count = fits.count().max(1).min(rest.len());
        let (chunk, left) = rest.split_at(count);
        rest = left;
        (!chunk.is_empty()).then_some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use nostr::key::{Keys, SecretKey};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// R9: every repository is in exactly one part, and no part is larger than a peer takes, unless one name alone is.
        #[test]
        fn parts_are_bounded_and_whole(lengths in prop::collection::vec(0_usize..9_000, 0..300)) {
            let owner = Keys::new(SecretKey::from_slice(&[9; 32]).unwrap()).public_key();
            let all: Vec<_> = lengths
                .iter()
                .map(|length| RepositoryId::new(owner, Identifier::from("x".repeat(*length).as_str())))
                .collect();
            let parts: Vec<_> = chunks(&all).collect();
            prop_assert_eq!(parts.concat(), all.clone());
            for part in parts {
                let bytes: usize = part.iter().map(|it| it.identifier.as_str().len()).sum();
                prop_assert!(part.len() == 1 || part.len() <= MAX_REPOSITORIES && bytes <= MAX_NAME_BYTES);
            }
        }
    }
}
