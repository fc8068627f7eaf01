use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
};

use async_trait::async_trait;
use nostr::event::EventId;
use purgatory_sync::Oid;

use crate::{RefName, RepositoryId};

/// The branches and tags of one state, and what `HEAD` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateRefs {
    /// Each branch and tag with its object.
    pub refs: BTreeMap<RefName, Oid>,
    /// The branch that `HEAD` points to, if the state says so.
    pub head: Option<RefName>,
    /// Branches and tags that the state names with a value that is no object id. Nobody knows what
    /// was meant: if they are here they stay as they are. None of them is in `refs`.
    pub left_alone: BTreeSet<RefName>,
}

/// Where refs live: what the event store asks of the git side when it releases an event.
///
/// `git::Repositories` implements it with git. A relay that keeps its
/// repositories in another way implements it for those.
///
/// Every method is idempotent: after a crash it may be called again with the same values. All the
/// objects that are named are here, in some repository of the same identifier, when it is called.
#[async_trait]
pub trait RefKeeper: Send + Sync {
    /// Makes the branches and tags of `repository` those of `state`, in one transaction, and `HEAD` last.
    ///
    /// Branches and tags that the state does not name go, but for those that are
    /// [`left_alone`](StateRefs::left_alone). Other refs stay. A state without refs changes no ref. The repository is made if it is not there, and has all the data afterwards.
    ///
    /// # Errors
    ///
    /// [`RefError::Conflict`] if the refs cannot stand together or an object does not fit: nothing moved,
    /// and nothing will until the state changes. [`RefError::Failed`] if it may work later.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the refs have moved together or not at all, `HEAD` may not have moved
    /// yet, and the repository may have been made or have got data. It is called again.
    async fn apply_state(
        &self,
        repository: &RepositoryId,
        state: &StateRefs,
    ) -> Result<(), RefError>;

    /// Sees to it that `repository` has `objects` with all that they reach, though no ref of it moves: a state that has
    /// authority over it names them, and a newer one leads. The repository is made if it is not there.
    ///
    /// Does nothing by default: the objects are then in some repository of the same identifier.
    ///
    /// # Errors
    ///
    /// As for [`apply_state`](RefKeeper::apply_state).
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped the repository may have been made and may have some of the data. It is called again.
    async fn keep_objects(
        &self,
        repository: &RepositoryId,
        objects: &[Oid],
    ) -> Result<(), RefError> {
        let _ = (repository, objects);
        Ok(())
    }

    /// Sets `refs/nostr/<event>` of `repository` to the tip of a pull request.
    ///
    /// # Errors
    ///
    /// As for [`apply_state`](RefKeeper::apply_state).
    ///
    /// # Cancel safety
    ///
    /// As for [`apply_state`](RefKeeper::apply_state).
    async fn keep_pull_request(
        &self,
        repository: &RepositoryId,
        event: &EventId,
        tip: &Oid,
    ) -> Result<(), RefError>;
}

/// Why refs did not move.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefError {
    /// The refs cannot stand together, or an object is of the wrong kind. The reason is for people.
    #[error("the refs cannot be set: {0}")]
    Conflict(String),
    /// Something failed that may work later.
    #[error("setting the refs failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}
