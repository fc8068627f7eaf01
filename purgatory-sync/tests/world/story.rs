//! A story: what the world is and what happens in it, as plain data that prints as something to read.

use std::fmt;

/// All times of a story are multiples of this many milliseconds, so that half of it after an instant is a
/// moment at which everything of that instant is over and nothing of the next has begun.
pub(crate) const GRID: u64 = 10;

/// How many objects a repository has.
pub(crate) const OBJECTS: u8 = 8;

/// The repositories that a crowd adds are numbered from here on.
pub(crate) const CROWD: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Story {
    pub(crate) rules: Rules,
    pub(crate) hosts: Vec<Host>,
    pub(crate) repos: Vec<Repo>,
    /// In order of time.
    pub(crate) acts: Vec<Timed>,
}

/// The settings of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) concurrent: u32,
    pub(crate) per_window: u32,
    pub(crate) window_secs: u64,
    pub(crate) slots: usize,
    pub(crate) queue: usize,
    pub(crate) wants_per_look: usize,
    pub(crate) oids_per_want: usize,
    pub(crate) fetches_per_pass: usize,
    /// Whether the limits outlive a restart that is no crash.
    pub(crate) keeps_limits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) latency_ms: u64,
    /// What it has of every repository, in each of the two places it offers. Bit `n` is object `n`.
    pub(crate) has: [u8; 2],
    /// Its moods, each from a time in milliseconds on; before the first it is fine.
    pub(crate) moods: Vec<(u64, Mood)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It serves what it has.
    Fine,
    /// It serves what it has, after so many seconds.
    Slow(u64),
    /// It refuses connections.
    Dead,
    /// Its name is gone.
    Nameless,
    /// It answers with a server error.
    Failing,
    /// It says: come back in so many seconds.
    Busy(u64),
    /// It accepts and stays silent.
    Silent,
    /// It claims to have delivered all, and delivers nothing.
    Lying,
    /// It brings down the fetcher.
    Poisonous,
    /// It delivers nothing and wants to be asked for the same again.
    Stubborn,
    /// It delivers the first object that it has, and wants to be asked for the others again.
    Piecemeal,
    /// It has no such repository.
    Gone,
    /// Our policy does not allow to ask it: nothing is sent.
    Forbidden,
    /// It has only the tips, without what they reach.
    Shallow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repo {
    /// What each owner announced before the story began.
    pub(crate) owners: Vec<Vec<Place>>,
}

/// One of the two places that a host offers for each repository, or our own service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    At { host: usize, copy: usize },
    Ours,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) at_ms: u64,
    pub(crate) act: Act,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// An event that names these objects comes.
    Event(Event),
    /// The same event comes again and again, as another one each time.
    Stream { event: Event, count: u64, gap_ms: u64 },
    /// So many repositories that nobody knew get an event each, all at this host.
    Crowd { host: usize, count: usize },
    /// Objects arrive from outside.
    Push { repo: usize, oids: Vec<u8> },
    /// An owner announces other places.
    Announce { repo: usize, owner: usize, places: Vec<Place> },
    /// The oldest held event of a repository expires.
    Expire { repo: usize },
    /// A host gets an object, and nobody is told.
    Upload { host: usize, copy: usize, oid: u8 },
    /// The next call of this kind goes wrong.
    Trouble(Call, Trouble),
    /// The service is shut down and started.
    Restart,
    /// The service dies at the so many-th step that it takes from here on, and is started.
    Crash { step: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) repo: usize,
    pub(crate) owner: usize,
    pub(crate) oids: Vec<u8>,
    /// A pull request names places of its own, and one object.
    pub(crate) own: Option<Vec<Place>>,
    /// By its author, and not by another relay.
    pub(crate) submitted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Needs,
    Missing,
    Release,
    HeldIdentifiers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Error,
    Panic,
    Slow(u64),
    /// It never answers. Not for a release, which has no time limit.
    Hang,
}

impl Story {
    /// From when on nothing happens any more that the engine does not do itself.
    pub(crate) fn calm_at(&self) -> u64 {
        let acts = self.acts.iter().map(|timed| match &timed.act {
            Act::Stream { count, gap_ms, .. } => timed.at_ms + count * gap_ms,
            _ => timed.at_ms,
        });
        let moods = self.hosts.iter().flat_map(|host| &host.moods).map(|(at, _)| *at);
        acts.chain(moods).max().unwrap_or(0)
    }
}

/// The name of a repository. Some have colons in them, and some begin like others.
pub(crate) fn repo_name(number: usize) -> String {
    match number {
        0 => "a".to_owned(),
        1 => "a:b".to_owned(),
        2 => "a:b:c".to_owned(),
        _ => format!("repo{number}"),
    }
}

/// The first host is called almost as our own service is.
pub(crate) fn host_name(number: usize) -> String {
    match number {
        0 => "notgit.ours.example".to_owned(),
        _ => format!("host{number}.example"),
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rules {
            concurrent,
            per_window,
            window_secs,
            slots,
            queue,
            wants_per_look,
            oids_per_want,
            fetches_per_pass,
            keeps_limits,
        } = &self.rules;
        writeln!(
            f,
            "Each host may be asked {concurrent} at once and {per_window} in {window_secs} s. {slots} fetches at once, {queue} \
             identifiers queued, {wants_per_look} wants a look, {oids_per_want} objects a want, {fetches_per_pass} fetches a pass. \
             The limits {} a restart.",
            if *keeps_limits { "outlive" } else { "end with" }
        )?;
        for (number, host) in self.hosts.iter().enumerate() {
            write!(f, "{} answers after {} ms and has", host_name(number), host.latency_ms)?;
            for (copy, has) in host.has.iter().enumerate() {
                write!(f, "{} in place {copy} ", Objects(*has))?;
            }
            for (at, mood) in &host.moods {
                write!(f, "; from {} it is {mood:?}", Secs(*at))?;
            }
            writeln!(f)?;
        }
        for (number, repo) in self.repos.iter().enumerate() {
            for (owner, places) in repo.owners.iter().enumerate() {
                writeln!(
                    f,
                    "{:?}, owner {owner}: announced at {}",
                    repo_name(number),
                    Places(places)
                )?;
            }
        }
        for Timed { at_ms, act } in &self.acts {
            writeln!(f, "{:>9}  {act}", Secs(*at_ms).to_string())?;
        }
        Ok(())
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => write!(f, "{event}"),
            Self::Stream { event, count, gap_ms } => {
                write!(f, "{count} times, every {gap_ms} ms: {event}")
            }
            Self::Crowd { host, count } => {
                write!(f, "{count} new repositories get an event each, all at {}", host_name(*host))
            }
            Self::Push { repo, oids } => {
                write!(f, "{:?}: objects {oids:?} are pushed", repo_name(*repo))
            }
            Self::Announce { repo, owner, places } => {
                write!(f, "{:?}, owner {owner}: announced at {}", repo_name(*repo), Places(places))
            }
            Self::Expire { repo } => write!(f, "{:?}: the oldest event expires", repo_name(*repo)),
            Self::Upload { host, copy, oid } => {
                write!(f, "{} gets object {oid} in place {copy}", host_name(*host))
            }
            Self::Trouble(call, trouble) => {
                write!(f, "the next call of {call:?} ends in {trouble:?}")
            }
            Self::Restart => write!(f, "the service restarts"),
            Self::Crash { step } => write!(f, "the service dies {step} steps later, and starts"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repo, owner, oids, own, submitted } = self;
        let repo = repo_name(*repo);
        let from = if *submitted { "its author" } else { "another relay" };
        match own {
            None => {
                write!(f, "{repo:?}: a state for owner {owner} with objects {oids:?} from {from}")
            }
            Some(own) => write!(
                f,
                "{repo:?}: a pull request to owner {owner} with object {oids:?} at {} from {from}",
                Places(own)
            ),
        }
    }
}

/// A set of objects, as bits.
struct Objects(u8);

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<u8> = (0..OBJECTS).filter(|bit| self.0 >> bit & 1 == 1).collect();
        write!(f, " {all:?}")
    }
}

struct Places<'a>(&'a [Place]);

impl fmt::Display for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no place");
        }
        for (number, place) in self.0.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            match place {
                Place::At { host, copy } => write!(f, "{comma}{} place {copy}", host_name(*host))?,
                Place::Ours => write!(f, "{comma}our own service")?,
            }
        }
        Ok(())
    }
}

/// Milliseconds, as seconds.
pub(crate) struct Secs(pub(crate) u64);

impl fmt::Display for Secs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1_000, self.0 % 1_000)
    }
}
