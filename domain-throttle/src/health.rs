use std::time::Duration;

use crate::moment::Moment;

const REPORTS_BEFORE_PAUSE: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(12 * 60 * 60);

/// How one endpoint stands, after the `Broken` part of the rule L10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may be asked.
    Open,
    /// Its pause is over: one permit may go out as a probe.
    ProbeReady,
    /// The probe is out.
    Probing,
    /// It is paused.
    Paused { until: Moment },
}

impl Standing {
    /// Whether a permit may go out.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::ProbeReady)
    }
}

/// What is remembered of an endpoint that was reported broken.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Reports in a row.
    reports: u32,
    /// The last pause; `None` before the first.
    pause: Option<Pause>,
    forget_at: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    length: Duration,
    until: Moment,
    /// Grants below this number came before it.
    since_grant: u64,
    probe_out: bool,
}

impl Health {
    pub(crate) fn standing(&self, now: Moment) -> Standing {
        match self.pause {
            Some(pause) if now < pause.until => Standing::Paused { until: pause.until },
            Some(pause) if pause.probe_out => Standing::Probing,
            Some(_) if now < self.forget_at => Standing::ProbeReady,
            _ => Standing::Open,
        }
    }

    /// A permit goes out. Says whether it is the probe.
    pub(crate) fn granted(&mut self, now: Moment) -> bool {
        let is_probe = self.standing(now) == Standing::ProbeReady;
        if let Some(pause) = self.pause.as_mut().filter(|_| is_probe) {
            pause.probe_out = true;
        }
        is_probe
    }

    pub(crate) fn probe_unused(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.probe_out = false;
        }
    }

    /// A report that the endpoint is broken. Returns the end of the pause that it began.
    pub(crate) fn broken(
        &mut self,
        now: Moment,
        grant: u64,
        probe: bool,
        next_grant: u64,
    ) -> Option<Moment> {
        if self.is_over(now) {
            *self = Self::default();
        }
        let length = match self.pause {
            Some(pause) if probe => (2 * pause.length).min(LONGEST_PAUSE),
            // It was granted before the pause that its like brought about.
            Some(pause) if grant < pause.since_grant => return None,
            _ => {
                self.reports += 1;
                if self.reports < REPORTS_BEFORE_PAUSE {
                    self.forget_at = now.saturating_add(2 * FIRST_PAUSE);
                    return None;
                }
                FIRST_PAUSE
            }
        };
        let until = now.saturating_add(length);
        self.pause = Some(Pause { length, until, since_grant: next_grant, probe_out: false });
        self.forget_at = until.saturating_add(2 * length);
        Some(until)
    }

    /// Whether an answer other than `Broken` clears the endpoint's name.
    pub(crate) fn ends_with(&self, now: Moment, grant: u64, probe: bool) -> bool {
        probe || self.is_over(now) || self.pause.is_none_or(|pause| pause.since_grant <= grant)
    }

    pub(crate) fn is_over(&self, now: Moment) -> bool {
        !self.is_probe_out() && self.forget_at <= now
    }

    /// From when on nothing here counts. While the probe is out nobody knows: its end decides.
    pub(crate) fn forget_at(&self) -> Moment {
        if self.is_probe_out() { Moment::MAX } else { self.forget_at }
    }

    fn is_probe_out(&self) -> bool {
        self.pause.is_some_and(|pause| pause.probe_out)
    }
}
