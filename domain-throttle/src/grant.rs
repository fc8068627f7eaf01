use crate::{keys::KeyId, moment::Moment};

/// A start that was granted. Give it back with [`DomainState::settle`](crate::DomainState::settle), once.
#[derive(Debug)]
#[must_use = "a grant holds a slot until it is settled"]
pub struct Grant {
    pub(crate) key: KeyId,
    /// Counts the grants of a domain, from one.
    pub(crate) number: u64,
    /// The stamp that the window keeps.
    pub(crate) start: Moment,
    pub(crate) probe: bool,
}

/// Why [`DomainState`](crate::DomainState) granted nothing: [`Denied`](crate::Denied) with moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The key has a permit already.
    KeyBusy,
    /// As many permits are alive as may be.
    Concurrency,
    /// The window is full until then.
    Window {
        /// When a start leaves it.
        until: Moment,
    },
    /// The endpoint, the domain or the key is paused until then.
    Paused {
        /// When that is over; a guess while a probe is out.
        until: Moment,
    },
    /// What there is belongs to those in line.
    Queued,
}

/// What a feedback brought about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// The domain is paused until then, longer than before.
    pub domain_paused: Option<Moment>,
    /// A pause of the endpoint began, until then.
    pub endpoint_paused: Option<Moment>,
}
