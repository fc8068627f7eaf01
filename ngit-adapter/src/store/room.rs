//! What goes when there is no room for all: never what matters more than the newcomer.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use nostr::event::EventId;
use purgatory_sync::StoreError;

use super::{
    admission::Full,
    event_store::Inner,
    held::Held,
    purgatory::Entry,
    standing::{Standing, Standings},
    stored,
};
use crate::RepositoryId;

/// Who has more than one of so many parts of all that is held gives way to anybody.
const GREEDY_PART: usize = 10;

/// How many are looked at to find one that gives way. Each costs a look at the database.
///
/// They are drawn by chance: nobody can see to it that they are always the same. Where one in ten of all could give way
/// one is found 29 times of 30, and the event that it is not found for may come again.
const SAMPLES: usize = 32;

impl Inner {
    /// Lets an event go for `newcomer`, which there is no room for, and adds it to `gone`. Says whether there may be room
    /// now. The caller has the gate of the newcomer's identifier.
    pub(super) async fn make_room(
        &self,
        newcomer: &Held,
        what: Full,
        gone: &mut Vec<Entry>,
    ) -> Result<bool, StoreError> {
        let loser = match what {
            Full::Events => self.loser_of_all(newcomer).await?,
            Full::Announcements | Full::States | Full::PullRequests => {
                self.loser_of_identifier(newcomer).await?
            }
        };
        let Some(loser) = loser else { return Ok(false) };
        let entry = self.shelf().let_go(&loser);
        if let Some(entry) = &entry {
            let identifier = entry.held.identifier.as_str();
            tracing::debug!(identifier, event_id = %loser, "held event gave way to another");
        }
        gone.extend(entry);
        Ok(true)
    }

    /// Among the events of the newcomer's kind that are held of its identifier.
    async fn loser_of_identifier(&self, newcomer: &Held) -> Result<Option<EventId>, StoreError> {
        let look = self.look_at_announcements(&newcomer.identifier).await?;
        let rivals = look.held().iter().map(|entry| &*entry.held);
        let rivals = rivals.filter(|held| held.slot().is_like(&newcomer.slot()));
        Ok(Standings::new(&look).loser(newcomer, rivals))
    }

    /// Among all that is held: of the author with the most, or of some that are drawn.
    async fn loser_of_all(&self, newcomer: &Held) -> Result<Option<EventId>, StoreError> {
        let (greediest, drawn) = {
            let shelf = self.shelf();
            let purgatory = shelf.purgatory();
            let greediest = purgatory.shares().of_greediest(&newcomer.author);
            let greediest = greediest.and_then(|(id, many)| Some((purgatory.find(&id)?, many)));
            let greediest = greediest.map(|(entry, many)| (Arc::clone(&entry.held), many));
            // A hasher with keys of its own is as random as this has to be.
            let chance = RandomState::new();
            let drawn = (0..SAMPLES).filter_map(|number| purgatory.drawn(chance.hash_one(number)));
            (greediest, drawn.map(|entry| Arc::clone(&entry.held)).collect::<Vec<_>>())
        };
        if let Some((held, many)) = &greediest
            && *many > self.config.max_held / GREEDY_PART
        {
            return Ok(Some(held.id));
        }
        let standing = self.standing(newcomer).await?;
        if let Some((held, _)) = greediest
            && self.standing(&held).await? <= standing
        {
            return Ok(Some(held.id));
        }
        if standing < Standing::Visitor {
            // Nobody gives way to one who is not known.
            return Ok(None);
        }
        for held in drawn {
            if self.standing(&held).await? < standing {
                return Ok(Some(held.id));
            }
        }
        Ok(None)
    }

    async fn standing(&self, held: &Held) -> Result<Standing, StoreError> {
        let look = self.look_at_announcements(&held.identifier).await?;
        Ok(Standings::new(&look).of(held))
    }

    /// The placeholder that goes for another one, of this repository, if one does.
    pub(super) async fn placeholder_to_lose(
        &self,
        newcomer: &RepositoryId,
    ) -> Result<Option<EventId>, StoreError> {
        let mut all = self.shelf().placeholders().by_repository();
        let ours = all.iter().find(|it| it.repository == *newcomer).map_or(0, |it| it.count);
        all.truncate(SAMPLES);
        let is_served = self.is_served(newcomer).await?;
        for other in all {
            let is_greedy = other.count > ours + 1;
            if is_greedy && other.count > self.config.max_placeholders / GREEDY_PART {
                return Ok(Some(other.newest));
            }
            let matters = self.is_served(&other.repository).await?;
            if !matters && is_served || matters == is_served && is_greedy {
                return Ok(Some(other.newest));
            }
        }
        Ok(None)
    }

    async fn is_served(&self, repository: &RepositoryId) -> Result<bool, StoreError> {
        let RepositoryId { owner, identifier } = repository;
        let kind = nostr::event::Kind::GitRepoAnnouncement;
        Ok(stored::newest_of(&*self.database, *owner, kind, identifier).await?.is_some())
    }
}
