use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use domain_throttle::Domain;
use keyed_debounce::Run;
use tracing::debug;

use crate::{
    Activity, FetchStarted, Identifier, Oid, PassEnd, PassSummary, SyncEvent,
    bell::Bell,
    board::Seat,
    candidates::{self, Ask},
    clock,
    engine::Shared,
    fetching::{self, Finished},
    find::{Found, Leave},
    lines::Places,
    memory::SharedMemory,
    report,
    slot::SlotWait,
    step::{self, Rest, Situation},
    survey::Survey,
    tried::Tried,
};

/// How often in a row a pass lets events go and looks again before it asks a server: a store whose
/// events never end does not keep it from that.
const RELEASES_IN_A_ROW: usize = 8;

/// One pass: look, let go, choose, wait for leave, ask, and again, until nothing more can be done.
///
/// It holds a fetch slot and a permit only while a request is on, and for the one look between a
/// permit that came after a wait and its request, if that look is quick.
pub(crate) struct Pass<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) id: &'a Identifier,
    pub(crate) run: &'a Run<Identifier>,
    pub(crate) memory: Arc<SharedMemory>,
    pub(crate) bell: Bell<'a>,
    pub(crate) places: Places,
    pub(crate) slot_wait: SlotWait,
    pub(crate) leave: Option<Leave>,
    pub(crate) finished: Option<Finished>,
    pub(crate) here: HashSet<Oid>,
    pub(crate) survey: Survey,
    pub(crate) tried: Tried,
    pub(crate) signals: u64,
    pub(crate) look_was_slow: bool,
    pub(crate) turn: usize,
    pub(crate) turns_done: usize,
    pub(crate) turn_limit: usize,
    pub(crate) rest: Rest,
    pub(crate) released: usize,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(shared: &'a Shared, run: &'a Run<Identifier>, seat: Seat) -> Self {
        let turn = {
            let mut memory = seat.memory.lock();
            memory.rounds.begin_pass();
            memory.turn
        };
        Self {
            shared,
            id: run.key(),
            run,
            memory: seat.memory,
            bell: Bell::new(run, seat.wake, &shared.stopping),
            places: Places::new(),
            slot_wait: SlotWait::default(),
            leave: None,
            finished: None,
            here: HashSet::new(),
            survey: Survey::default(),
            tried: Tried::default(),
            signals: 0,
            look_was_slow: false,
            turn,
            turns_done: 0,
            turn_limit: 0,
            rest: Rest { no_source_left: true, ..Rest::default() },
            released: 0,
        }
    }

    pub(crate) async fn drive(&mut self) -> PassEnd {
        let end = match self.work().await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        self.leave = None;
        self.places.leave();
        self.slot_wait.leave();
        self.settle(end);
        end
    }

    /// What this pass found, once it has ended.
    pub(crate) fn summary(&self, why: PassEnd, elapsed: Duration) -> PassSummary {
        let all_asked = why == PassEnd::AllAsked;
        PassSummary {
            why,
            fetches: self.tried.fetches(),
            released: self.released,
            held: self.survey.held,
            missing: self.survey.missing_len(),
            no_source_left: all_asked && self.rest.no_source_left,
            elapsed,
        }
    }

    async fn work(&mut self) -> Result<std::convert::Infallible, PassEnd> {
        let mut releases = 0;
        loop {
            if !self.may_trust_last_look() {
                self.look().await?;
            }
            if self.survey.held == 0 {
                return Err(PassEnd::NothingHeld);
            }
            // A permit in hand is used at once: its server counts from now.
            if let Some((ask, leave)) = self.ask_with_leave() {
                releases = 0;
                self.fetch(ask, leave).await?;
                continue;
            }
            if self.release().await? && releases < RELEASES_IN_A_ROW {
                releases += 1;
                continue;
            }
            if self.bell.is_stopping() {
                return Err(PassEnd::Stopped);
            }
            match self.find().await {
                Found::Ask(url, leave) => {
                    releases = 0;
                    if let Some(ask) = candidates::ask(&self.survey, &self.tried, &url) {
                        self.fetch(ask, leave).await?;
                    }
                }
                Found::Leave(leave) => self.leave = Some(leave),
                Found::Look => {}
                Found::Rest(rest) => self.next_turn(rest)?,
                Found::End(end) => return Err(end),
            }
        }
    }

    /// Whether the last look is good enough for a permit that came after a wait: it took so long that its own
    /// permit had to go back, so another one would too, and nobody has said since that something changed.
    fn may_trust_last_look(&self) -> bool {
        self.look_was_slow && self.leave.is_some() && self.memory.signals() == self.signals
    }

    /// The request that a permit in hand is for, if there is still one. If there is none, the permit goes back.
    fn ask_with_leave(&mut self) -> Option<(Ask, Leave)> {
        let leave = self.leave.take()?;
        let ask = self.situated(|situation| step::ask_at(situation, leave.endpoint()?))?;
        Some((ask, leave))
    }

    /// Makes the request. What it brought is looked at by the next look.
    async fn fetch(&mut self, ask: Ask, mut leave: Leave) -> Result<(), PassEnd> {
        if self.bell.is_stopping() {
            return Err(PassEnd::Stopped);
        }
        let Some((permit, slot)) = leave.take() else { return Ok(()) };
        self.memory.lock().rounds.reach(&ask.url);
        self.tried.begin(&ask);
        let (identifier, url, wanted) = (self.id.clone(), ask.url.clone(), ask.oids.len());
        let activity = Activity::Fetching { url: url.clone(), since: clock::now() };
        self.shared.board.does(self.id, activity);
        self.shared.tell(SyncEvent::FetchStarted(FetchStarted { identifier, url, wanted }));
        let finished = fetching::fetch(self.shared, self.run, ask, permit).await;
        drop(slot);
        match &finished.result {
            Ok(fetched) => self.tried.answered(&finished.ask, &fetched.ask_again),
            Err(error) => self.tried.failed(&finished.ask, error.kind()),
        }
        if let Some(end) = finished.ended {
            report::fetch_ended(self.shared, self.id, &finished, None);
            return Err(end);
        }
        self.finished = Some(finished);
        Ok(())
    }

    /// Nothing more can be asked for the wants of this turn: goes on to those of the next.
    fn next_turn(&mut self, rest: Rest) -> Result<(), PassEnd> {
        if self.turns_done == 0 {
            // As many as there are now: a store that wants more from look to look does not keep the pass.
            self.turn_limit = self.survey.turns;
        }
        self.rest = self.rest.and(rest);
        self.turns_done += 1;
        self.turn = (self.turn + 1) % self.survey.turns;
        if rest.limited {
            self.memory.lock().turn = self.turn;
            return Err(PassEnd::FetchLimit);
        }
        if self.turns_done < self.turn_limit {
            return Ok(());
        }
        self.memory.lock().turn = 0;
        Err(match self.rest {
            Rest { paused: Some(until), .. } => PassEnd::Paused { until },
            Rest { shut: true, .. } => PassEnd::NoPlaceInLine,
            _ => PassEnd::AllAsked,
        })
    }

    /// Notes for the next pass what this one did not have to reach, and tells what was tried.
    fn settle(&mut self, end: PassEnd) {
        let open = self.situated(|situation| situation.open());
        let mut tried: HashMap<Domain, (usize, usize)> = HashMap::new();
        let mut memory = self.memory.lock();
        for url in self.survey.urls() {
            if !open.contains(&url) {
                memory.rounds.reach(&url);
            }
            let (asked, known) = tried.entry(url.domain().clone()).or_default();
            *asked += usize::from(self.tried.was_asked_at_all(&url));
            *known += 1;
        }
        drop(memory);
        for (domain, (tried, known)) in tried {
            debug!(
                identifier = self.id.as_str(),
                domain = domain.as_str(),
                tried,
                known,
                why = end.as_str(),
                "tried URLs"
            );
        }
    }

    pub(crate) fn situated<R>(&self, ask: impl FnOnce(&Situation<'_>) -> R) -> R {
        let memory = self.memory.lock();
        let (survey, tried, rounds) = (&self.survey, &self.tried, &memory.rounds);
        let fetch_limit = self.shared.config.fetches_per_pass();
        ask(&Situation { survey, tried, rounds, fetch_limit })
    }
}
