use std::{sync::Arc, task::Waker};

use crate::{DomainState, Limits, Moment, window::Window};

/// Where a domain is kept. It does not change while the domain has a permit or a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotId {
    pub(crate) shard: u16,
    pub(crate) at: u32,
}

/// One domain, or room for one.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) form: Form,
    /// Which edition of the limits is in force here.
    pub(crate) edition: u32,
    /// Where its requests are counted.
    pub(crate) tally: u8,
}

#[derive(Debug)]
pub(crate) enum Form {
    Vacant,
    /// Nothing goes on: what most domains are most of the time, and small.
    Parked {
        name: Arc<str>,
        limits: Arc<Limits>,
        window: Window,
    },
    Active {
        name: Arc<str>,
        domain: Box<Active>,
    },
}

#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) core: DomainState<Waker>,
    /// When the driver looks at this domain; `None` if it does not.
    pub(crate) armed: Option<Moment>,
}

impl Slot {
    pub(crate) fn new(name: Arc<str>, limits: Arc<Limits>, edition: u32, tally: u8) -> Self {
        let domain = Active::boxed(DomainState::new(limits));
        Self { form: Form::Active { name, domain }, edition, tally }
    }

    #[inline]
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match &self.form {
            Form::Vacant => None,
            Form::Parked { name, .. } | Form::Active { name, .. } => Some(name),
        }
    }

    pub(crate) fn is_vacant(&self) -> bool {
        matches!(self.form, Form::Vacant)
    }

    /// The domain, to work with.
    #[inline]
    pub(crate) fn activate(&mut self) -> Option<&mut Active> {
        if let Form::Parked { .. } = self.form
            && let Form::Parked { name, limits, window } =
                std::mem::replace(&mut self.form, Form::Vacant)
        {
            let domain = Active::boxed(DomainState::unpark(limits, window));
            self.form = Form::Active { name, domain };
        }
        self.active()
    }

    /// The domain, if something may go on in it.
    #[inline]
    pub(crate) fn active(&mut self) -> Option<&mut Active> {
        match &mut self.form {
            Form::Active { domain, .. } => Some(domain),
            _ => None,
        }
    }

    /// Gives back what is not needed any more. Says whether the domain may be forgotten.
    pub(crate) fn tidy(&mut self, now: Moment) -> bool {
        match &mut self.form {
            Form::Vacant => false,
            Form::Parked { limits, window, .. } => window.empty_at(limits.window) <= now,
            Form::Active { name, domain } => {
                let is_armed = domain.armed.is_some_and(|armed| armed > now);
                if domain.core.idle_at().is_some_and(|at| at <= now) && !is_armed {
                    return true;
                }
                domain.core.tidy(now);
                if !is_armed && let Some((limits, window)) = domain.core.park() {
                    self.form = Form::Parked { name: name.clone(), limits, window };
                }
                false
            }
        }
    }
}

impl Active {
    fn boxed(core: DomainState<Waker>) -> Box<Self> {
        Box::new(Self { core, armed: None })
    }
}
