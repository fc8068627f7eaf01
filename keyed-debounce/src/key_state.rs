use std::time::Duration;

/// What is known of a key that is not absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// The key was requested and is not due yet.
    Waiting {
        /// How long until it is due, as things stand.
        due_in: Duration,
    },
    /// The key is due and waits for a runner, or for the next round where `min_gap` is set.
    Ready,
    /// Somebody holds a run of the key.
    Running {
        /// Whether the key was requested since the run began.
        requested_again: bool,
    },
    /// The last run asked for another one, and nobody requested the key since.
    Backoff {
        /// How long until it is due.
        due_in: Duration,
        /// How many runs failed in a row.
        failures: u32,
    },
}

/// How many keys are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Keys in [`KeyState::Waiting`].
    pub waiting: usize,
    /// Keys in [`KeyState::Ready`].
    pub ready: usize,
    /// Keys in [`KeyState::Running`].
    pub running: usize,
    /// Keys in [`KeyState::Backoff`].
    pub backoff: usize,
}

impl Counts {
    /// All keys that are not absent.
    pub const fn total(&self) -> usize {
        self.waiting + self.ready + self.running + self.backoff
    }

    pub(crate) fn count(&mut self, state: KeyState) {
        *match state {
            KeyState::Waiting { .. } => &mut self.waiting,
            KeyState::Ready => &mut self.ready,
            KeyState::Running { .. } => &mut self.running,
            KeyState::Backoff { .. } => &mut self.backoff,
        } += 1;
    }
}
