use std::time::Duration;

use crate::{
    Debounce, Scheduled,
    schedule::{Ending, Settings, Timestamp},
};

/// The rules once more, as plainly as they can be said: a list of keys that is scanned.
///
/// It shares nothing with the real schedule but the vocabulary. It is slow and obvious, and what
/// a backend does is compared with it.
#[derive(Clone, Debug)]
pub struct Model<K> {
    settings: Settings,
    keys: Vec<ModelKey<K>>,
    /// D16: the last start of each key that ever ran.
    last_starts: Vec<(K, Timestamp)>,
    /// D13: when the last round began, and which of its keys were not handed out yet.
    round: Option<(Timestamp, Vec<K>)>,
    requests: u64,
}

/// A key that is not absent.
#[derive(Clone, Debug)]
struct ModelKey<K> {
    key: K,
    running: bool,
    cancelled: bool,
    failures: u32,
    /// What was requested since the last run began, or what the last outcome asked for.
    wish: Option<Wish>,
}

#[derive(Clone, Copy, Debug)]
struct Wish {
    due: Timestamp,
    latest: Timestamp,
    /// The smallest quiet among the requests; `None` if the last outcome alone asks for the run.
    quiet: Option<Duration>,
    /// The number of the first request, or of the outcome.
    first: u64,
}

/// What a [`Model`] expects of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Unknown.
    Absent,
    /// Requested, due at the timestamp.
    Waiting(Timestamp),
    /// Due.
    Ready,
    /// Running, and whether it was requested again.
    Running(bool),
    /// Due at the timestamp after so many failures in a row.
    Backoff(Timestamp, u32),
}

impl<K: Clone + PartialEq> Model<K> {
    /// A model that knows no key.
    pub fn new(settings: Settings) -> Self {
        Self { settings, keys: Vec::new(), last_starts: Vec::new(), round: None, requests: 0 }
    }

    /// A request. `None` if there is no room for the key (D12).
    pub fn schedule(&mut self, key: K, debounce: Debounce, now: Timestamp) -> Option<Scheduled> {
        self.requests += 1;
        let first = self.requests;
        let ready = self.state(&key, now) == Expected::Ready;
        let Some(known) = self.keys.iter_mut().find(|known| known.key == key) else {
            if self.settings.capacity.is_some_and(|capacity| self.keys.len() >= capacity.get()) {
                return None;
            }
            let wish = Some(Wish::first(debounce, now, first));
            self.keys.push(ModelKey { key, running: false, cancelled: false, failures: 0, wish });
            return Some(Scheduled::New);
        };
        if !known.running {
            known.failures = 0; // D8
        }
        if !ready {
            known.wish = Some(match known.wish {
                None => Wish::first(debounce, now, first),
                Some(wish) => wish.joined(debounce, now, first),
            });
        }
        Some(if known.running { Scheduled::AfterRun } else { Scheduled::Joined })
    }

    /// Which key may start at `now`: the first of those that are due (D11), if the round allows it
    /// (D13).
    pub fn next(&self, now: Timestamp) -> Option<K> {
        let ready = self.ready(now);
        let Some(gap) = self.settings.min_gap else { return ready.first().cloned() };
        match &self.round {
            Some((start, members)) if now < *start + gap => {
                ready.into_iter().find(|key| members.contains(key))
            }
            _ => ready.first().cloned(),
        }
    }

    /// When [`next`](Self::next) would first say a key if nothing happened until then.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let opens = |key: &ModelKey<K>| {
            let due = self.due(key)?;
            Some(match (&self.round, self.settings.min_gap) {
                (Some((start, members)), Some(gap)) if !members.contains(&key.key) => {
                    due.max(*start + gap)
                }
                _ => due,
            })
        };
        self.keys.iter().filter_map(opens).min()
    }

    /// A run of `key` begins. Returns its attempt.
    ///
    /// # Panics
    ///
    /// If the key is unknown: only a key that is ready can start.
    pub fn start(&mut self, key: &K, now: Timestamp) -> u32 {
        let ready = self.ready(now);
        match &mut self.round {
            Some((_, members)) if members.contains(key) => members.retain(|member| member != key),
            round => *round = Some((now, ready.into_iter().filter(|other| other != key).collect())),
        }
        self.last_starts.retain(|(other, _)| other != key);
        self.last_starts.push((key.clone(), now));
        let known = self.known(key).expect("a key that starts is known");
        known.running = true;
        known.cancelled = false;
        known.wish = None;
        known.failures.saturating_add(1)
    }

    /// The run of `key` ends.
    ///
    /// # Panics
    ///
    /// If the key does not run.
    pub fn finish(&mut self, key: &K, ending: Ending, now: Timestamp) {
        self.requests += 1;
        let first = self.requests;
        let known = self.known(key).expect("a key that runs is known");
        known.running = false;
        if let Some(wish) = &mut known.wish {
            // D6
            known.failures = 0;
            let delay = match ending {
                Ending::Done => None,
                Ending::Failed { delay_if_requested, .. } => Some(delay_if_requested),
                Ending::Deferred { delay } => Some(delay),
            };
            if let Some(delay) = delay {
                wish.latest = wish.latest.min(now + delay);
                wish.due = wish.due.min(wish.latest);
            }
            wish.due = wish.due.max(now);
            return;
        }
        let delay = match ending {
            _ if known.cancelled => None, // D19
            Ending::Done => None,         // D9
            Ending::Failed { delay, .. } => {
                known.failures = known.failures.saturating_add(1);
                Some(delay)
            }
            Ending::Deferred { delay } => Some(delay),
        };
        match delay {
            None => self.keys.retain(|known| known.key != *key),
            Some(delay) => known.wish = Some(Wish::of_outcome(now + delay, first)), // D7
        }
    }

    /// D19: forgets what waits. Says whether there was anything.
    pub fn cancel(&mut self, key: &K) -> bool {
        if let Some((_, members)) = &mut self.round {
            members.retain(|member| member != key);
        }
        let Some(known) = self.known(key) else { return false };
        if known.running {
            known.cancelled = true;
            return known.wish.take().is_some();
        }
        self.keys.retain(|known| known.key != *key);
        true
    }

    /// What is expected of `key`.
    pub fn state(&self, key: &K, now: Timestamp) -> Expected {
        let Some(known) = self.keys.iter().find(|known| known.key == *key) else {
            return Expected::Absent;
        };
        match (known.wish, self.due(known)) {
            _ if known.running => Expected::Running(known.wish.is_some()),
            (_, Some(due)) if due <= now => Expected::Ready,
            (Some(Wish { quiet: None, .. }), Some(due)) => Expected::Backoff(due, known.failures),
            (_, Some(due)) => Expected::Waiting(due),
            (_, None) => Expected::Absent,
        }
    }

    /// When the last run of `key` began, if it ever ran.
    pub fn last_start(&self, key: &K) -> Option<Timestamp> {
        self.last_starts.iter().find(|(other, _)| other == key).map(|(_, start)| *start)
    }

    /// How many keys are not absent.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether all keys are absent.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// All keys that are due at `now`, in the order in which they leave.
    pub fn ready(&self, now: Timestamp) -> Vec<K> {
        let mut ready: Vec<_> = self
            .keys
            .iter()
            .filter_map(|known| Some((self.due(known)?, known.wish?.first, &known.key)))
            .filter(|(due, _, _)| *due <= now)
            .collect();
        ready.sort_by_key(|(due, first, _)| (*due, *first));
        ready.into_iter().map(|(_, _, key)| key.clone()).collect()
    }

    /// When a key that waits may start: at its due, but not within the interval (D16).
    fn due(&self, known: &ModelKey<K>) -> Option<Timestamp> {
        if known.running {
            return None;
        }
        let due = known.wish?.due;
        Some(match (self.settings.min_interval, self.last_start(&known.key)) {
            (Some(interval), Some(start)) => due.max(start + interval),
            _ => due,
        })
    }

    fn known(&mut self, key: &K) -> Option<&mut ModelKey<K>> {
        self.keys.iter_mut().find(|known| known.key == *key)
    }
}

impl Wish {
    /// D1
    fn first(debounce: Debounce, now: Timestamp, first: u64) -> Self {
        let latest = now + debounce.max_wait;
        let due = (now + debounce.quiet).min(latest);
        Self { due, latest, quiet: Some(debounce.quiet), first }
    }

    /// D7
    fn of_outcome(due: Timestamp, first: u64) -> Self {
        Self { due, latest: due, quiet: None, first }
    }

    fn joined(self, debounce: Debounce, now: Timestamp, first: u64) -> Self {
        let latest = self.latest.min(now + debounce.max_wait);
        match self.quiet {
            // D3
            Some(quiet) if debounce.quiet > quiet => {
                Self { due: self.due.min(latest), latest, ..self }
            }
            // D2, and D8 where nobody had asked before
            asked => Self {
                due: (now + debounce.quiet).min(latest),
                latest,
                quiet: Some(debounce.quiet),
                first: if asked.is_some() { self.first } else { first },
            },
        }
    }
}
