//! What the demo is about: repositories on servers, and the signed events that speak of them.

mod branch;
mod everyday;
mod history;
mod person;
mod special;

use std::io;

use futures::future::join_all;
use nostr::event::{Event, EventId, Kind};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{hosts::Host, servers::Servers};
use crate::git::Git;
use history::{History, Ids};

/// The repositories and their events. But for the servers' ports it is the same each time.
pub(super) struct World {
    pub(super) repositories: Vec<Repository>,
    /// The events of the burst, in the order in which they arrive.
    pub(super) burst: Vec<Told>,
    /// Those that come when all of the burst was seen to.
    pub(super) later: Vec<Told>,
}

/// A repository that is announced.
pub(super) struct Repository {
    pub(super) name: &'static str,
    /// The servers that the announcement names, in its order.
    pub(super) hosts: Vec<Host>,
}

/// An event, and how the story calls it.
pub(super) struct Told {
    pub(super) event: Event,
    pub(super) repository: &'static str,
    pub(super) what: String,
}

/// A repository with all that is said of it.
struct Plot {
    repository: Repository,
    burst: Vec<Told>,
    later: Vec<Told>,
}

impl World {
    /// Writes the repositories into the servers' folders and signs the events.
    ///
    /// # Errors
    ///
    /// Of the kind `Interrupted` if that token was cancelled meanwhile. Nothing is left running.
    pub(super) async fn make(
        git: &Git,
        servers: &Servers,
        interrupted: &CancellationToken,
    ) -> io::Result<Self> {
        let benches = Semaphore::new(BENCHES);
        let workshop = Workshop { git, servers, benches, interrupted };
        let everyday = everyday::REPOSITORIES
            .map(|(name, owner, hosts)| everyday::make(&workshop, name, owner, hosts));
        // Each of them is waited for, also when one fails: no git is left that still writes.
        let (lantern, compass, almanac, bellows, everyday) = tokio::join!(
            special::lantern(&workshop),
            special::compass(&workshop),
            special::almanac(&workshop),
            special::bellows(&workshop),
            join_all(everyday),
        );
        let special = [lantern, compass, almanac, bellows];
        let plots = special.into_iter().chain(everyday).collect::<io::Result<Vec<_>>>()?;
        let mut world = Self { repositories: Vec::new(), burst: Vec::new(), later: Vec::new() };
        let mut bursts = Vec::new();
        for plot in plots {
            world.repositories.push(plot.repository);
            world.later.extend(plot.later);
            bursts.push(plot.burst);
        }
        world.burst = mixed(bursts);
        Ok(world)
    }

    /// How the story calls the event.
    pub(super) fn told(&self, id: &EventId) -> Option<&Told> {
        self.burst.iter().chain(&self.later).find(|told| &told.event.id == id)
    }

    /// The names of the repositories that are announced to be on this server.
    pub(super) fn announced_on(&self, host: Host) -> Vec<&'static str> {
        let here = self.repositories.iter().filter(|each| each.hosts.contains(&host));
        here.map(|repository| repository.name).collect()
    }
}

impl Told {
    /// Whether it waits for git data. Announcements only say where that is.
    pub(super) fn waits(&self) -> bool {
        self.event.kind != Kind::GitRepoAnnouncement
    }
}

/// Events come from everywhere, mixed, and an announcement sooner or later than what it is about.
fn mixed(bursts: Vec<Vec<Told>>) -> Vec<Told> {
    let mut turned: Vec<_> = bursts
        .into_iter()
        .enumerate()
        .map(|(place, mut events)| {
            let turn = place % events.len().max(1);
            events.rotate_left(turn);
            events.into_iter()
        })
        .collect();
    let mut mixed = Vec::new();
    loop {
        let before = mixed.len();
        mixed.extend(turned.iter_mut().filter_map(Iterator::next));
        if mixed.len() == before {
            return mixed;
        }
    }
}

/// Where repositories are made.
struct Workshop<'a> {
    git: &'a Git,
    servers: &'a Servers,
    benches: Semaphore,
    interrupted: &'a CancellationToken,
}

/// How many repositories are made at once.
const BENCHES: usize = 3;

impl Workshop<'_> {
    /// Puts a repository with this history on a server.
    async fn put(&self, host: Host, name: &str, history: &History) -> io::Result<Ids> {
        let _bench = self.benches.acquire().await.map_err(io::Error::other)?;
        if self.interrupted.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let path = self.servers.at(host).folder.join(format!("{name}.git"));
        history.write_to(self.git, &path).await
    }

    fn url(&self, host: Host, name: &str) -> String {
        self.servers.at(host).url(name)
    }

    /// The URLs of a repository on its servers.
    fn urls(&self, repository: &Repository) -> Vec<String> {
        repository.hosts.iter().map(|host| self.url(*host, repository.name)).collect()
    }
}
