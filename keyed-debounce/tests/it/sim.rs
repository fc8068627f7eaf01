//! A schedule with a clock that is set by hand, in milliseconds.

use std::{
    io::{self, Write},
    process, thread,
    time::Duration,
};

use keyed_debounce::{
    Debounce, Exponential, KeyState, Outcome, ScheduleError, Scheduled,
    schedule::{Ending, HandOut, Schedule, Settings, Timestamp},
};
use tokio::time::sleep;

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn at(ms: u64) -> Timestamp {
    Timestamp::from_origin(Duration::from_millis(ms))
}

pub(crate) const fn debounce(quiet_ms: u64, max_wait_ms: u64) -> Debounce {
    Debounce::new(ms(quiet_ms), ms(max_wait_ms))
}

/// On a paused clock a century passes at once when nobody can go on: a test that would hang for a
/// lost wake-up ends here instead, and says which it is.
pub(crate) fn bounded() {
    tokio::spawn(async {
        sleep(secs(100 * 365 * 86_400)).await;
        let test = thread::current().name().unwrap_or_default().to_owned();
        // Not `eprintln`, whose output the harness keeps for the end of the test.
        let _ = writeln!(io::stderr(), "{test}: nobody can go on, a wake-up was lost");
        process::abort();
    });
}

pub(crate) struct Sim {
    pub(crate) schedule: Schedule<&'static str>,
    pub(crate) now: Timestamp,
}

impl Sim {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self { schedule: Schedule::new(settings), now: Timestamp::ORIGIN }
    }

    pub(crate) fn with_min_gap(gap_ms: u64) -> Self {
        Self::with(Settings { min_gap: Some(ms(gap_ms)), ..Settings::default() })
    }

    pub(crate) fn with_min_interval(interval_ms: u64) -> Self {
        Self::with(Settings { min_interval: Some(ms(interval_ms)), ..Settings::default() })
    }

    /// Sets the clock.
    pub(crate) fn at(&mut self, ms: u64) -> &mut Self {
        self.now = at(ms);
        self
    }

    pub(crate) fn request(&mut self, key: &'static str, quiet: u64, max_wait: u64) -> Scheduled {
        self.try_request(key, debounce(quiet, max_wait)).unwrap()
    }

    pub(crate) fn try_request(
        &mut self,
        key: &'static str,
        debounce: Debounce,
    ) -> Result<Scheduled, ScheduleError<&'static str>> {
        self.schedule.schedule(key, debounce, self.now)
    }

    pub(crate) fn take(&mut self) -> Option<HandOut<&'static str>> {
        self.schedule.pop_due(self.now)
    }

    /// Takes the next run, which must be of this key.
    pub(crate) fn start(&mut self, key: &'static str) -> HandOut<&'static str> {
        let hand_out = self.take().unwrap_or_else(|| panic!("{key} is not due"));
        assert_eq!(*hand_out.key, key);
        hand_out
    }

    pub(crate) fn finish(&mut self, run: HandOut<&'static str>, outcome: Outcome) {
        let ending = Ending::new(outcome, run.attempt, &Exponential::DEFAULT, 0);
        self.schedule.finish(run.ticket, ending, self.now);
    }

    pub(crate) fn cancel(&mut self, key: &'static str) -> bool {
        self.schedule.cancel(&key, self.now).found
    }

    pub(crate) fn state(&self, key: &'static str) -> Option<KeyState> {
        self.schedule.state(&key, self.now)
    }

    /// The keys that are due, in the order in which they leave. They stay running.
    pub(crate) fn take_all(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| self.take().map(|run| *run.key)).collect()
    }

    /// Checks that nothing is due just before `ms` and that `key` is at it, and starts it.
    pub(crate) fn starts_exactly_at(
        &mut self,
        ms: u64,
        key: &'static str,
    ) -> HandOut<&'static str> {
        assert_eq!(self.schedule.next_wake(), Some(at(ms)), "{key} is due at another time");
        let before = at(ms).since_origin().saturating_sub(Duration::from_nanos(1));
        self.now = self.now.max(Timestamp::from_origin(before));
        if self.now < at(ms) {
            assert!(self.take().is_none(), "{key} starts before {ms} ms");
        }
        self.now = at(ms);
        self.start(key)
    }
}
