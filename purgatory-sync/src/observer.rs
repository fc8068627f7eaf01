use std::time::{Duration, Instant};

use keyed_debounce::Outcome;

use crate::{CloneUrl, FetchErrorKind, Identifier};

/// Is told what the engine does, as it happens.
///
/// It is called from the engine's tasks, with no lock held, so it may call the handle, also
/// [`snapshot`](crate::PurgatorySync::snapshot). It must be quick: hand slow work to a task of your
/// own. One that panics is logged and called again for the next event.
///
/// Events of one identifier come in order. Any `Fn(&SyncEvent)` is an observer.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn observe(&self, event: &SyncEvent);
}

impl<F: Fn(&SyncEvent) + Send + Sync> Observer for F {
    fn observe(&self, event: &SyncEvent) {
        self(event);
    }
}

/// What the engine did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SyncEvent {
    /// A pass of an identifier began.
    PassStarted(PassStarted),
    /// A pass ended. The snapshot shows it already.
    PassEnded(PassEnded),
    /// A request goes out.
    FetchStarted(FetchStarted),
    /// A request ended, and what it brought was looked at.
    FetchEnded(FetchEnded),
    /// Events were let go.
    Released(EventsReleased),
    /// The queue was full and an identifier was turned away. The engine asks the store for it later.
    QueueFull(Identifier),
    /// Nothing is queued or running any more.
    QueueIdle,
}

/// A pass of an identifier began.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PassStarted {
    /// The identifier.
    pub identifier: Identifier,
    /// 1, and one more for each failed pass in a row before it.
    pub attempt: u32,
}

/// A pass of an identifier ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PassEnded {
    /// The identifier.
    pub identifier: Identifier,
    /// Which attempt it was.
    pub attempt: u32,
    /// What the scheduler was told.
    pub outcome: Outcome,
    /// What the pass found, and why it ended.
    pub summary: PassSummary,
}

/// What a pass found and why it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassSummary {
    /// Why it ended.
    pub why: PassEnd,
    /// How many requests it made.
    pub fetches: usize,
    /// How many events it let go.
    pub released: usize,
    /// How many events were held at its last look.
    pub held: usize,
    /// How many objects were missing at its last look.
    pub missing: usize,
    /// Whether asking again soon is without hope: each URL that may be asked for a missing object
    /// was asked in this pass and answered that the object or the repository is not there, that it
    /// wants a login, or that it cannot be asked (unsupported, refused by policy). No URL counts as that.
    pub no_source_left: bool,
    /// How long it took, waits included.
    pub elapsed: Duration,
}

/// Why a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassEnd {
    /// Nothing is held any more.
    NothingHeld,
    /// Every URL was asked for all that it may have, and something is still held.
    AllAsked,
    /// The pass made as many requests as it may.
    FetchLimit,
    /// What is left to ask is paused, at least until then.
    Paused {
        /// The end of the pause that ends first.
        until: Instant,
    },
    /// There was no place in any line: the throttle is full or failed.
    NoPlaceInLine,
    /// The store failed.
    StoreFailed,
    /// The objects could not be looked at, or the look took too long.
    LookFailed,
    /// The store, the fetcher's look or the throttle panicked.
    Panicked,
    /// The engine stops.
    Stopped,
    /// The scheduler lost the hold on the identifier.
    Lost,
}

impl PassEnd {
    /// A short name for logs, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NothingHeld => "nothing_held",
            Self::AllAsked => "all_asked",
            Self::FetchLimit => "fetch_limit",
            Self::Paused { .. } => "paused",
            Self::NoPlaceInLine => "no_place_in_line",
            Self::StoreFailed => "store_failed",
            Self::LookFailed => "look_failed",
            Self::Panicked => "panicked",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }
}

/// A request goes out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchStarted {
    /// For whom.
    pub identifier: Identifier,
    /// Where.
    pub url: CloneUrl,
    /// How many objects are asked for.
    pub wanted: usize,
}

/// A request ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchEnded {
    /// For whom.
    pub identifier: Identifier,
    /// Where. Its domain is [`CloneUrl::domain`].
    pub url: CloneUrl,
    /// How many objects were asked for.
    pub wanted: usize,
    /// How many of them are here now. A fetcher's claim is checked before it counts.
    pub received: usize,
    /// How it ended.
    pub outcome: FetchOutcome,
    /// How many requests went over the wire, as the fetcher counts.
    pub requests: u32,
    /// How many bytes came, as the fetcher counts.
    pub bytes: u64,
    /// How long the request took.
    pub elapsed: Duration,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FetchOutcome {
    /// All that was asked for is here.
    Fetched,
    /// Some of it is here.
    Partial,
    /// The server has none of it.
    NotThere,
    /// The request failed as a whole.
    Failed(FetchErrorKind),
    /// The engine stopped before it ended.
    Cancelled,
}

impl FetchOutcome {
    /// A short name for logs and metrics, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fetched => "fetched",
            Self::Partial => "partial",
            Self::NotThere => "not_there",
            Self::Failed(kind) => kind.as_str(),
            Self::Cancelled => "cancelled",
        }
    }
}

/// Events were let go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventsReleased {
    /// Whose.
    pub identifier: Identifier,
    /// How many went.
    pub released: usize,
    /// How many are still held.
    pub held: usize,
}
