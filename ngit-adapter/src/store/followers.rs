//! How many repositories are made for owners who only trust somebody else (G10, with a bound).

use std::collections::HashSet;

use nostr::key::PublicKey;

use super::{
    event_store::Inner,
    held::{Body, Held},
    look::Look,
};

/// Why an event waits although all of its objects are here.
pub(super) const NO_MORE_COPIES: &str =
    "too many announcements of this name only follow its author";

impl Look {
    /// Whether the repository of `owner` would be one that only follows the states of `author`: by the word of its
    /// owner alone.
    fn follows(&self, owner: &PublicKey, author: &PublicKey) -> bool {
        owner != author && !self.authority().owners_for(owner).contains(author)
    }

    /// Those of `owners` whose repositories are there already, or are none of those that are counted.
    pub(super) fn with_place(&self, owners: Vec<PublicKey>) -> Vec<PublicKey> {
        let newest = self.newest_states();
        let served: HashSet<PublicKey> = self.served_owners().into_iter().collect();
        let has_place = |owner: &PublicKey| {
            let leader = newest.get(owner).map(|state| state.author);
            served.contains(owner) || leader.is_some_and(|author| !self.follows(owner, &author))
        };
        owners.into_iter().filter(has_place).collect()
    }

    /// How many of the repositories that are served follow somebody, or nobody.
    fn followers(&self) -> usize {
        let newest = self.newest_states();
        let follows = |owner: &PublicKey| {
            newest.get(owner).is_none_or(|state| self.follows(owner, &state.author))
        };
        self.served_owners().iter().filter(|owner| follows(owner)).count()
    }
}

impl Inner {
    /// Those of `owners` whose repositories get what an event brings: all that are served, those that do not only
    /// follow its author, and as many of the others as there is room for.
    pub(super) fn within_bounds(
        &self,
        look: &Look,
        held: &Held,
        mut owners: Vec<PublicKey>,
    ) -> Vec<PublicKey> {
        let is_new_follower = |owner: &PublicKey| {
            // Whoever opens a pull request may name anybody.
            let own = matches!(held.body, Body::State(_)) && !look.follows(owner, &held.author);
            !own && !look.is_served(owner)
        };
        if owners.iter().any(is_new_follower) {
            let mut room = self.config.max_followers.saturating_sub(look.followers());
            owners.retain(|owner| {
                if !is_new_follower(owner) {
                    return true;
                }
                let fits = room > 0;
                room = room.saturating_sub(1);
                fits
            });
        }
        owners
    }

    /// Those of `owners` whose repositories may be served for the sake of what is served of others.
    pub(super) fn may_serve(&self, look: &Look, owners: Vec<PublicKey>) -> Vec<PublicKey> {
        let placed: HashSet<PublicKey> = look.with_place(owners.clone()).into_iter().collect();
        let mut room = match placed.len() == owners.len() {
            true => 0,
            false => self.config.max_followers.saturating_sub(look.followers()),
        };
        let mut fits = |owner: &PublicKey| {
            let fits = placed.contains(owner) || room > 0;
            room -= usize::from(fits && !placed.contains(owner));
            fits
        };
        owners.into_iter().filter(|owner| fits(owner)).collect()
    }
}
