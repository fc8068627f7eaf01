//! How a pack comes in: stored in quarantine, checked, and only then put in its place.

use std::{io, path::Path};

use purgatory_sync::{FetchErrorKind as Kind, FetchRequest, Oid};
use tokio::{io::AsyncWriteExt, process::ChildStdin};
use tokio_util::task::TaskTracker;

use super::{
    CheckedPack, FetchProgress, FetchTarget, Quarantine, Repositories, connectivity,
    failure::{Failure, quoted},
    fetcher::Shared,
    http_answer::Body,
    index_pack::index_pack,
    limits::MAX_PROGRESS,
    negotiation,
    objects::sha1,
    protocol::{self, Band},
};

/// What a fetch builds on.
#[derive(Debug)]
pub(super) struct Base {
    target: FetchTarget,
    pub(super) haves: Vec<Oid>,
}

/// Takes the pack of one fetch in.
pub(super) struct Intake<'a> {
    pub(super) shared: &'a Shared,
    pub(super) request: &'a FetchRequest<'a>,
    pub(super) removals: &'a TaskTracker,
    pub(super) base: &'a Base,
}

/// Progress is told each time that this much of a pack came.
const TELL_EVERY: u64 = 256 << 10;

impl Base {
    /// Where the objects of `request` go, and what is there.
    pub(super) async fn look(
        repositories: &Repositories,
        request: &FetchRequest<'_>,
    ) -> Result<Self, Failure> {
        let target = repositories
            .fetch_target(request.identifier, request.targets)
            .await
            .map_err(Failure::local("there is no repository to fetch into"))?;
        let (path, tips) = (target.path.clone(), target.tips.clone());
        let haves = off_worker(move || Ok(negotiation::haves(&path, &tips))).await?;
        Ok(Self { target, haves })
    }
}

impl Intake<'_> {
    /// Stores the pack that comes, checks it, and puts it in its place. Gives those of `asked` that it brought, all
    /// of `wants` among them.
    pub(super) async fn take(
        &self,
        body: Body<'_>,
        wants: &[Oid],
        asked: &[Oid],
    ) -> Result<Vec<Oid>, Failure> {
        let quarantine = self.new_quarantine().await?;
        let (git, limits) = (&self.shared.git, &self.shared.limits);
        index_pack(git, &quarantine, limits, async |stdin| self.feed(body, stdin).await).await?;
        let (pack, brought) = self.look_at(&quarantine, wants, asked).await?;
        connectivity::check(git, &quarantine, limits, &brought, &self.base.target.tips).await?;
        self.shared
            .repositories
            .adopt(&self.base.target, &pack, self.request.targets)
            .await
            .map_err(Failure::local("the pack cannot be put into the repository"))?;
        Ok(brought)
    }

    /// With nothing that it may build on, the pack has to stand alone, and can go into any repository then.
    fn stands_alone(&self) -> bool {
        self.base.haves.is_empty()
    }

    async fn new_quarantine(&self) -> Result<Quarantine, Failure> {
        let root = self.shared.repositories.root().to_owned();
        let base = (!self.stands_alone()).then(|| self.base.target.objects.clone());
        let users = vec![self.shared.removals.token(), self.removals.token()];
        off_worker(move || Quarantine::create(&root, base.as_deref(), users)).await
    }

    /// Writes the pack in `body` to `stdin`, up to its end.
    async fn feed(&self, mut body: Body<'_>, mut stdin: ChildStdin) -> Result<(), Failure> {
        let mut pack = PackBytes::new(self);
        while let Some(line) = body.packet().await? {
            let Some(line) = line.as_slice() else {
                drop(stdin);
                pack.tell();
                body.finish().await;
                return Ok(());
            };
            let part = match protocol::band(line) {
                Some(Band::Pack(part)) => part,
                Some(Band::Progress(text)) => {
                    pack.progress_text(text)?;
                    continue;
                }
                Some(Band::Error(text)) => {
                    let what = format!("the server gave up: {}", quoted(text));
                    return Err(Failure::new(Kind::ServerError, what));
                }
                None => return Err(Failure::corrupt("the server's pack is not in bands")),
            };
            pack.part(part)?;
            match stdin.write_all(part).await {
                Ok(()) => {}
                // The child has ended: its exit status says why.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::corrupt("the server's answer ends within the pack"))
    }

    /// The pack that was stored, and which of `asked` came with it.
    async fn look_at(
        &self,
        quarantine: &Quarantine,
        wants: &[Oid],
        asked: &[Oid],
    ) -> Result<(CheckedPack, Vec<Oid>), Failure> {
        let stands_alone = self.stands_alone();
        let (folder, asked) = (quarantine.git_dir().to_owned(), asked.to_vec());
        let (pack, mut brought) = off_worker(move || {
            let (pack, index) = Quarantine::find_pack(&folder)?;
            let brought = in_index(&index, &asked)?;
            Ok((CheckedPack { pack, index, stands_alone }, brought))
        })
        .await?;
        // A wanted object that is no part of the pack may lie in the repository already, without all that it
        // reaches, which the pack then has to bring. The check of connectivity will tell.
        brought.extend(
            wants.iter().filter(|want| !brought.contains(want)).copied().collect::<Vec<_>>(),
        );
        Ok((pack, brought))
    }
}

/// Counts the bytes of a pack, and tells who wants to know.
struct PackBytes<'a> {
    intake: &'a Intake<'a>,
    head: Vec<u8>,
    bytes: u64,
    told: u64,
    text_bytes: u64,
}

impl<'a> PackBytes<'a> {
    /// The first bytes of a pack, with the number of its objects.
    const HEAD: usize = 12;

    fn new(intake: &'a Intake<'a>) -> Self {
        Self { intake, head: Vec::new(), bytes: 0, told: 0, text_bytes: 0 }
    }

    fn part(&mut self, part: &[u8]) -> Result<(), Failure> {
        let missing = Self::HEAD - self.head.len();
        self.head.extend_from_slice(&part[..part.len().min(missing)]);
        self.bytes += part.len() as u64;
        if self.bytes > self.intake.shared.limits.pack_bytes {
            return Err(Failure::too_large("the pack is larger than the limit"));
        }
        if self.bytes - self.told >= TELL_EVERY {
            self.tell();
        }
        Ok(())
    }

    fn progress_text(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.text_bytes += text.len() as u64;
        match self.text_bytes > MAX_PROGRESS {
            true => Err(Failure::too_large("the server sends text without end")),
            false => Ok(()),
        }
    }

    fn tell(&mut self) {
        self.told = self.bytes;
        let Some(progress) = &self.intake.shared.progress else { return };
        progress(&FetchProgress {
            identifier: self.intake.request.identifier,
            url: self.intake.request.url,
            bytes: self.bytes,
            objects: protocol::pack_objects(&self.head),
        });
    }
}

/// Which of `asked` the index of a pack has.
fn in_index(index: &Path, asked: &[Oid]) -> io::Result<Vec<Oid>> {
    let index =
        gix::odb::pack::index::File::at(index, gix::hash::Kind::Sha1).map_err(io::Error::other)?;
    let has = |oid: &Oid| sha1(oid).is_some_and(|id| index.lookup(id).is_some());
    Ok(asked.iter().copied().filter(has).collect())
}

/// Runs what waits for the disk where it holds up nobody.
async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let result = tokio::task::spawn_blocking(work).await;
    Ok(result.map_err(Failure::local("work on the disk was ended"))??)
}
