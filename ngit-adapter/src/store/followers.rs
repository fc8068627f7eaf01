//! How many repositories are made for owners who only trust somebody else (G10, with a bound).

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

    /// Whether the repository of `owner` is one of those that are not counted, or is there already.
    pub(super) fn has_place(&self, owner: &PublicKey) -> bool {
        let leads = |author: &PublicKey| !self.follows(owner, author);
        self.is_served(owner)
            || self.newest_states().get(owner).is_some_and(|state| leads(&state.author))
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

    /// Whether the repository of `owner` may be served for the sake of what is served of others.
    pub(super) fn may_serve(&self, look: &Look, owner: &PublicKey) -> bool {
        look.has_place(owner) || look.followers() < self.config.max_followers
    }
}
