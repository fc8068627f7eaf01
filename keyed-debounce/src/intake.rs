/// What [`drain`](crate::KeyedDebouncer::drain) still runs before it ends (D15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Drain {
    /// Nothing: it waits for the runs that are on.
    Running,
    /// Also what is ready, and what becomes ready while runs are on.
    Ready,
    /// Also all that waits, which counts as due now; only `min_interval` is still kept.
    All,
}

/// What is taken in and handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intake {
    Open,
    Draining(Drain),
    Closed,
}

impl Intake {
    /// Draining can be made to run more, or to stop, never to run less in between.
    pub(crate) fn drain(self, what: Drain) -> Self {
        match (self, what) {
            (Self::Closed, _) | (_, Drain::Running) => Self::Closed,
            (Self::Draining(Drain::All), Drain::Ready) => self,
            _ => Self::Draining(what),
        }
    }

    pub(crate) fn parks_failures(self) -> bool {
        matches!(self, Self::Draining(_))
    }
}
