use std::{
    collections::{HashMap, HashSet},
    time::Instant,
};

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

/// All that a choice depends on.
#[derive(Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) survey: &'a Survey,
    pub(crate) tried: &'a Tried,
    pub(crate) rounds: &'a Rounds,
    pub(crate) fetch_limit: usize,
}

/// What a pass does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask the throttle about this endpoint, then come back.
    Check(Endpoint),
    /// Ask this URL.
    Ask(CloneUrl),
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

/// The choice of the next request: goes through the URLs in their order, and is told on the way what
/// the throttle says. However many URLs there are, each is looked at once.
#[derive(Debug)]
pub(crate) struct Walk {
    order: Vec<CloneUrl>,
    views: HashMap<Endpoint, View>,
    at: usize,
    end: Rest,
}

impl Walk {
    /// From the best URL on.
    pub(crate) fn new(situation: &Situation<'_>) -> Self {
        let order = situation.open();
        let Situation { survey, tried, .. } = *situation;
        let no_source_left = order.is_empty() && candidates::no_source_left(survey, tried);
        let limited = !order.is_empty() && situation.left() == 0;
        let end = Rest { no_source_left, limited, ..Rest::default() };
        Self { order, views: HashMap::new(), at: 0, end }
    }

    /// What the throttle said about an endpoint.
    pub(crate) fn heard(&mut self, endpoint: Endpoint, view: View) {
        self.views.insert(endpoint, view);
    }

    /// What the throttle said may not hold any more: begins anew.
    pub(crate) fn forget_views(&mut self) {
        self.views.clear();
        self.at = 0;
    }

    /// The first URL whose domain has capacity; if none has, the lines.
    pub(crate) fn step(&mut self) -> Step {
        if self.end.limited {
            return Step::End(self.end);
        }
        while let Some(url) = self.order.get(self.at) {
            match self.views.get(url.endpoint()) {
                None => return Step::Check(url.endpoint().clone()),
                Some(View::Free) => return Step::Ask(url.clone()),
                Some(_) => self.at += 1,
            }
        }
        self.lines()
    }

    /// Nothing is free.
    fn lines(&self) -> Step {
        let mut lines: Vec<Endpoint> = Vec::new();
        let mut seen = HashSet::new();
        let mut rest = self.end;
        for endpoint in self.order.iter().map(CloneUrl::endpoint) {
            match self.views.get(endpoint) {
                _ if !seen.insert(endpoint) => {}
                Some(View::Throttled) => lines.push(endpoint.clone()),
                Some(View::Paused(until)) => rest.paused = earlier(rest.paused, *until),
                Some(View::Shut) => rest.shut = true,
                Some(View::Free) | None => {}
            }
        }
        if lines.is_empty() { Step::End(rest) } else { Step::Wait(lines) }
    }
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
