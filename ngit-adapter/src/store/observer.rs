use nostr::event::Event;
use purgatory_sync::Identifier;

/// Is told what may be served from now on, after it was saved.
///
/// Methods are called on a task of the store's caller, in the order of the releases of one
/// identifier. They must not block: hand over to a queue of your own. An event may be told twice, if
/// a crash came between its release and the note of it.
pub trait StoreObserver: Send + Sync {
    /// An announcement is served now.
    fn announced(&self, identifier: &Identifier, event: &Event) {
        let _ = (identifier, event);
    }

    /// A state, a pull request or an update is served now. Its announcements were told before.
    fn released(&self, identifier: &Identifier, event: &Event) {
        let _ = (identifier, event);
    }
}

/// Nobody listens.
pub(super) struct Silent;

impl StoreObserver for Silent {}
