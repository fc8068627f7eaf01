use std::{collections::HashMap, time::Instant};

use domain_throttle::{Denied, Endpoint};

use crate::{
    CloneUrl,
    candidates::{self, Ask},
    rounds::Rounds,
    survey::Survey,
    tried::Tried,
};

/// What the throttle says about an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// It may be asked now.
    Free,
    /// It may be asked later: it is worth to stand in its line.
    Throttled,
    /// It is paused, at least until then: nobody stands in its line.
    Paused(Instant),
    /// The throttle has no room for it, or failed.
    Shut,
}

impl View {
    pub(crate) fn of(answer: &Result<(), Denied>) -> Self {
        match answer {
            Ok(()) => Self::Free,
            Err(Denied::Paused { until }) => Self::Paused(*until),
            Err(Denied::TooManyDomains | Denied::Closed | Denied::Backend(_)) => Self::Shut,
            Err(_) => Self::Throttled,
        }
    }
}

/// All that the next step depends on.
#[derive(Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) survey: &'a Survey,
    pub(crate) tried: &'a Tried,
    pub(crate) rounds: &'a Rounds,
    pub(crate) views: &'a HashMap<Endpoint, View>,
    pub(crate) fetch_limit: usize,
}

/// What a pass does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask the throttle about this endpoint, then come back.
    Check(Endpoint),
    /// Make this request.
    Ask(Ask),
    /// Stand in the lines of these endpoints, in this order of preference.
    Wait(Vec<Endpoint>),
    /// Nothing more can be asked.
    End(Rest),
}

/// What is left when nothing more can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The pass made all the requests it may.
    pub(crate) limited: bool,
    /// Something is paused; the first pause ends then.
    pub(crate) paused: Option<Instant>,
    /// Some endpoint could not even be waited for.
    pub(crate) shut: bool,
    /// Asking again soon is without hope.
    pub(crate) no_source_left: bool,
}

impl Situation<'_> {
    fn left(&self) -> usize {
        self.fetch_limit.saturating_sub(self.tried.fetches())
    }

    /// The URLs that something is left to ask of, the best first.
    pub(crate) fn open(&self) -> Vec<CloneUrl> {
        let own_first = self.left() <= self.fetch_limit / 4;
        candidates::ordered(self.survey, self.tried, self.rounds, own_first)
    }
}

/// Chooses: the first URL, in the order of `candidates`, whose domain has capacity; if none has, the lines.
pub(crate) fn step(situation: &Situation<'_>) -> Step {
    let Situation { survey, tried, views, .. } = *situation;
    let order = situation.open();
    let mut rest = Rest {
        no_source_left: order.is_empty() && candidates::no_source_left(survey, tried),
        limited: !order.is_empty() && situation.left() == 0,
        ..Rest::default()
    };
    if rest.limited {
        return Step::End(rest);
    }
    let mut lines: Vec<Endpoint> = Vec::new();
    for url in &order {
        match views.get(url.endpoint()) {
            None => return Step::Check(url.endpoint().clone()),
            Some(View::Free) => {
                if let Some(ask) = candidates::ask(survey, tried, url) {
                    return Step::Ask(ask);
                }
            }
            Some(View::Throttled) => {
                if !lines.contains(url.endpoint()) {
                    lines.push(url.endpoint().clone());
                }
            }
            Some(View::Paused(until)) => rest.paused = earlier(rest.paused, *until),
            Some(View::Shut) => rest.shut = true,
        }
    }
    if lines.is_empty() { Step::End(rest) } else { Step::Wait(lines) }
}

/// The best request at an endpoint for which a permit is in hand.
pub(crate) fn ask_at(situation: &Situation<'_>, endpoint: &Endpoint) -> Option<Ask> {
    if situation.left() == 0 {
        return None;
    }
    let order = situation.open();
    let url = order.iter().find(|url| url.endpoint() == endpoint)?;
    candidates::ask(situation.survey, situation.tried, url)
}

impl Rest {
    /// What is left after this turn and the turns before.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            limited: self.limited || other.limited,
            paused: other.paused.map_or(self.paused, |until| earlier(self.paused, until)),
            shut: self.shut || other.shut,
            no_source_left: self.no_source_left && other.no_source_left,
        }
    }
}

fn earlier(one: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(one.map_or(other, |one| one.min(other)))
}
