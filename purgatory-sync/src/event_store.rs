use async_trait::async_trait;

use crate::{Identifier, Needs, Oid, StoreError};

/// The port to whatever holds the events back.
///
/// The engine is the only caller. It calls [`needs`](EventStore::needs) and
/// [`release`](EventStore::release) of one identifier one after the other, never at the same time;
/// those of different identifiers at the same time.
///
/// # What an implementation owes
///
/// - An event is visible in `needs` before
///   [`PurgatorySync::event_held`](crate::PurgatorySync::event_held) is called for it.
/// - An event leaves the store only after it was saved. A crash at any point leaves it held or
///   saved, and a second release of it is no harm.
/// - It calls [`PurgatorySync::changed`](crate::PurgatorySync::changed) when something that `needs` shows changed
///   by another way than the engine: data arrived by a push, an announcement brought new URLs,
///   events expired.
/// - No method blocks the thread. None is called while the engine holds a lock.
///
/// A method that panics ends the pass as a failure; the engine goes on and backs off.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// What the held events of `id` wait for, in one consistent look. Unknown identifiers hold nothing.
    ///
    /// An event that has no usable source is still counted in `held`, and its objects are still in
    /// `wants`, with no URL. An event that may not be released yet for another reason (nobody with
    /// authority has announced it) is counted and wants nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot answer now. The pass ends and is retried after a backoff.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe: it only reads.
    async fn needs(&self, id: &Identifier) -> Result<Needs, StoreError>;

    /// Lets go every event of `id` for which all objects are here: saves it, tells subscribers,
    /// forgets it, oldest first.
    ///
    /// `here` is every wanted object that is here now, in the sense of
    /// [`GitFetcher::missing`](crate::GitFetcher::missing), as of the last `needs`. Events that came since may
    /// wait for objects that are not in it: they stay. It is called with an empty `here` too, when
    /// events are held that want nothing. It must be idempotent.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if any event could not be saved. What was saved before stays released; what
    /// was not stays held. The pass ends and is retried after a backoff.
    ///
    /// # Cancel safety
    ///
    /// The engine drops this future only at a shutdown whose deadline has passed. Each event must
    /// then be held or saved, never lost.
    async fn release(&self, id: &Identifier, here: &[Oid]) -> Result<Released, StoreError>;

    /// Every identifier that has a held event. Asked at the start, and again after the queue was full.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot answer now. The engine tries again after a backoff.
    ///
    /// # Cancel safety
    ///
    /// Must be cancel safe: it only reads.
    async fn held_identifiers(&self) -> Result<Vec<Identifier>, StoreError>;
}

/// What a release did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// How many events went.
    pub released: usize,
    /// How many events of the identifier are still held.
    pub held: usize,
}
