use std::{sync::Arc, task::Waker};

use crate::{DomainState, Limits, Moment, window::Window};

/// Where a domain is kept. It does not change while the domain has a permit or a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotId {
    pub(crate) shard: u16,
    pub(crate) at: u32,
}

/// One domain, or room for one. Two variants are told apart without a byte for it, three are not.
#[derive(Debug)]
pub(crate) enum Slot {
    Parked(Parked),
    /// `None` is room for one.
    Active(Option<Box<Active>>),
}

/// A domain in which nothing goes on: what most domains are most of the time, so it is small.
///
/// What a window is made of lies here side by side, which saves what padding would take.
#[derive(Debug)]
pub(crate) struct Parked {
    name: Box<str>,
    limits: Arc<Limits>,
    stamps: Box<[u32]>,
    high: u32,
    shift: u8,
    tally: u8,
}

/// A domain that can be worked with.
#[derive(Debug)]
pub(crate) struct Active {
    name: Arc<str>,
    pub(crate) core: DomainState<Waker>,
    /// When the driver looks at this domain; `None` if it does not.
    pub(crate) armed: Option<Moment>,
    /// Where its requests are counted.
    pub(crate) tally: u8,
}

impl Slot {
    pub(crate) fn new(name: Arc<str>, limits: Arc<Limits>, tally: u8) -> Self {
        Self::active_with(name, DomainState::new(limits), tally)
    }

    pub(crate) fn vacant() -> Self {
        Self::Active(None)
    }

    #[inline]
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Parked(parked) => Some(&parked.name),
            Self::Active(domain) => domain.as_ref().map(|domain| &*domain.name),
        }
    }

    /// Whether it is the domain of this name.
    #[inline]
    pub(crate) fn is(&self, name: &Arc<str>) -> bool {
        match self {
            Self::Parked(parked) => *parked.name == **name,
            // Mostly it is the same text, not only an equal one.
            Self::Active(Some(domain)) => Arc::ptr_eq(&domain.name, name) || domain.name == *name,
            Self::Active(None) => false,
        }
    }

    pub(crate) fn limits(&self) -> Option<&Limits> {
        match self {
            Self::Parked(parked) => Some(&parked.limits),
            Self::Active(domain) => domain.as_ref().map(|domain| domain.core.limits()),
        }
    }

    pub(crate) fn is_vacant(&self) -> bool {
        matches!(self, Self::Active(None))
    }

    pub(crate) fn is_parked(&self) -> bool {
        matches!(self, Self::Parked(_))
    }

    /// The domain, to work with.
    #[inline]
    pub(crate) fn activate(&mut self) -> Option<&mut Active> {
        if self.is_parked() {
            self.unpark();
        }
        self.active()
    }

    /// The domain, if something may go on in it.
    #[inline]
    pub(crate) fn active(&mut self) -> Option<&mut Active> {
        match self {
            Self::Active(domain) => domain.as_deref_mut(),
            Self::Parked(_) => None,
        }
    }

    /// Gives back what is not needed any more. Says whether the domain may be forgotten.
    pub(crate) fn tidy(&mut self, now: Moment) -> bool {
        let domain = match self {
            Self::Parked(parked) => return parked.is_over(now),
            Self::Active(None) => return false,
            Self::Active(Some(domain)) => domain,
        };
        let is_armed = domain.armed.is_some_and(|armed| armed > now);
        if domain.core.idle_at().is_some_and(|at| at <= now) && !is_armed {
            return true;
        }
        domain.core.tidy(now);
        if !is_armed {
            self.park();
        }
        false
    }

    fn park(&mut self) {
        let Self::Active(Some(domain)) = self else { return };
        let Some((limits, window)) = domain.core.park() else { return };
        let (stamps, high, shift) = window.into_parts();
        let (name, tally) = (Box::from(&*domain.name), domain.tally);
        *self = Self::Parked(Parked { name, limits, stamps, high, shift, tally });
    }

    fn unpark(&mut self) {
        let Self::Parked(parked) = std::mem::replace(self, Self::vacant()) else { return };
        let Parked { name, limits, stamps, high, shift, tally } = parked;
        let core = DomainState::unpark(limits, Window::from_parts(stamps, high, shift));
        *self = Self::active_with(Arc::from(name), core, tally);
    }

    fn active_with(name: Arc<str>, core: DomainState<Waker>, tally: u8) -> Self {
        Self::Active(Some(Box::new(Active { name, core, armed: None, tally })))
    }
}

impl Parked {
    fn is_over(&self, now: Moment) -> bool {
        Window::parts_empty_at(&self.stamps, self.high, self.shift, self.limits.window) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L12: a slot of a domain in which nothing goes on: what 200 bytes for a full window rest on.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_slot_is_small() {
        assert_eq!(size_of::<Slot>(), 48);
    }
}
