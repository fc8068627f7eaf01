//! Whose events stay when there is no room for all.

use std::collections::{HashMap, HashSet};

use nostr::{event::EventId, key::PublicKey};

use super::{
    held::{Body, Held},
    look::Look,
    version::Version,
};

/// How much an event matters to the owners of its repository, the least first.
///
/// What is served was paid for with data. An announcement that is held costs nothing: anyone can make
/// any number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Nobody with a say is known.
    Nobody,
    /// It is about a repository whose announcement is held.
    Announced,
    /// It is a proposal to a repository that is served.
    Visitor,
    /// Its author has a say over a repository that is served.
    Trusted,
}

/// The standing of the events of one identifier.
pub(super) struct Standings<'a> {
    look: &'a Look,
    served: HashSet<PublicKey>,
    say: HashMap<PublicKey, Say>,
}

/// Over whose repositories an author has a say.
#[derive(Clone, Copy)]
struct Say {
    served: bool,
    any: bool,
}

impl<'a> Standings<'a> {
    pub(super) fn new(look: &'a Look) -> Self {
        Self { look, served: look.served_owners().into_iter().collect(), say: HashMap::new() }
    }

    pub(super) fn of(&mut self, held: &Held) -> Standing {
        let say = self.say(&held.author);
        match &held.body {
            _ if say.served => Standing::Trusted,
            // It says so itself.
            Body::Announcement(_) => Standing::Nobody,
            Body::State(_) if say.any => Standing::Announced,
            Body::State(_) => Standing::Nobody,
            Body::Proposal(proposal) => {
                let mut owners = proposal.repositories.iter().map(|it| &it.owner);
                if owners.clone().any(|owner| self.served.contains(owner)) {
                    Standing::Visitor
                } else if owners.any(|owner| self.look.authority().knows(owner)) {
                    Standing::Announced
                } else {
                    Standing::Nobody
                }
            }
        }
    }

    /// Which of `rivals` has to go for `newcomer`, if any does.
    ///
    /// One of the least standing, of the author who has the most of those, the newest. It goes for what has a higher
    /// standing; among equals it goes if its author has at least two more than that of the newcomer.
    pub(super) fn loser<'b>(
        &mut self,
        newcomer: &Held,
        rivals: impl Iterator<Item = &'b Held> + Clone,
    ) -> Option<EventId> {
        let least = rivals.clone().map(|held| self.of(held)).min()?;
        let standing = self.of(newcomer);
        if least > standing {
            return None;
        }
        let low: Vec<&Held> = rivals.filter(|held| self.of(held) == least).collect();
        let mut counts = HashMap::<PublicKey, usize>::new();
        for held in &low {
            *counts.entry(held.author).or_default() += 1;
        }
        let last = |held: &&&Held| -> (usize, Version) { (counts[&held.author], held.version()) };
        let loser = low.iter().max_by_key(last)?;
        let ours = counts.get(&newcomer.author).copied().unwrap_or_default();
        (least < standing || counts[&loser.author] > ours + 1).then_some(loser.id)
    }

    fn say(&mut self, author: &PublicKey) -> Say {
        let (look, served) = (self.look, &self.served);
        *self.say.entry(*author).or_insert_with(|| {
            let owners = look.authority().owners_for(author);
            Say { served: owners.iter().any(|it| served.contains(it)), any: !owners.is_empty() }
        })
    }
}
