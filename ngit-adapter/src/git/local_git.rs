//! Git on repositories that are here: what a sibling gives, and whether what refs will name is all there.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use purgatory_sync::Oid;
use tokio::{
    io::{AsyncWriteExt, copy},
    process::{ChildStdin, ChildStdout, Command},
    sync::OnceCell,
};
use tokio_util::task::TaskTracker;

use super::{
    CheckedPack, Git, Limits, Quarantine, RepositoryError,
    child::{ChildGroup, drain},
    failure::{Failure, quoted},
    index_pack::index_pack,
};

/// Small memory, and no search for deltas that are not there yet: what is stored is copied as it is.
const SETTINGS: &[&str] = &[
    "core.packedGitWindowSize=16m",
    "core.packedGitLimit=128m",
    "core.deltaBaseCacheLimit=32m",
    "pack.threads=1",
    "pack.window=0",
];

/// The installed git, for work between repositories that are here.
#[derive(Debug)]
pub(crate) struct LocalGit {
    root: PathBuf,
    git: OnceCell<Git>,
    removals: TaskTracker,
}

/// A pack in quarantine, which goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) pack: CheckedPack,
    _quarantine: Quarantine,
}

/// What is copied, and what it may build on.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// The repository that has it.
    pub(crate) from: PathBuf,
    /// The objects that are wanted with all they reach.
    pub(crate) wanted: Vec<Oid>,
    /// Objects that both have with all they reach. If there are any the pack may build on `to`.
    pub(crate) common: Vec<Oid>,
    /// The repository that it is for.
    pub(crate) to: PathBuf,
}

impl LocalGit {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, git: OnceCell::new(), removals: TaskTracker::new() }
    }

    /// Uses this git from now on, if none was needed yet.
    pub(crate) fn set(&self, git: Git) {
        let _ = self.git.set(git);
    }

    /// A pack with what is wanted, checked as a stranger's would be: `git pack-objects` in the one repository, and a strict
    /// `git index-pack` that sees the other.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped its processes end, and what they wrote goes.
    pub(crate) async fn copy(&self, copy: Copy) -> Result<Copied, RepositoryError> {
        let failed = format!("cannot copy from {} to {}", copy.from.display(), copy.to.display());
        let git = self.git().await?;
        let quarantine = self.quarantine(&copy).await.map_err(RepositoryError::because(&failed))?;
        let feed = async |stdin| pack_objects(git, &copy, stdin).await;
        index_pack(git, &quarantine, &local_limits(), feed)
            .await
            .map_err(RepositoryError::because(&failed))?;
        let folder = quarantine.git_dir().to_owned();
        let found = tokio::task::spawn_blocking(move || Quarantine::find_pack(&folder)).await;
        let (pack, index) = match found {
            Ok(found) => found.map_err(RepositoryError::because(&failed))?,
            Err(error) => return Err(RepositoryError::new(failed).with_source(error)),
        };
        let pack = CheckedPack { pack, index, stands_alone: copy.common.is_empty() };
        Ok(Copied { pack, _quarantine: quarantine })
    }

    /// Whether `tips` are in the repository at `path` with all that they reach, down to what its refs reach.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the process ends.
    pub(crate) async fn is_connected(
        &self,
        path: &Path,
        tips: &[Oid],
    ) -> Result<bool, RepositoryError> {
        let failed = format!("cannot check the repository {}", path.display());
        let mut command = self.git().await?.command_with(&settings(), "rev-list");
        // A ref of somebody else may lead nowhere. What is asked for was seen to be here.
        command.args(["--ignore-missing", "--objects", "--quiet"]);
        command.args(["--stdin", "--not", "--all"]);
        command.env("GIT_DIR", path).stdin(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, stdin) = spawn(command).map_err(RepositoryError::because(&failed))?;
        let said = child.take_stderr();
        let written = write(stdin, lines("", tips));
        let (_, said) = tokio::join!(written, async {
            match said {
                Some(said) => drain(said).await,
                None => Vec::new(),
            }
        });
        let status = child.wait().await.map_err(RepositoryError::because(&failed))?;
        if !status.success() {
            tracing::warn!(path = %path.display(), git = %quoted(&said), "objects are missing");
        }
        Ok(status.success())
    }

    async fn git(&self) -> Result<&Git, RepositoryError> {
        let found = self.git.get_or_try_init(Git::find).await;
        found.map_err(RepositoryError::because("git cannot be used"))
    }

    async fn quarantine(&self, copy: &Copy) -> Result<Quarantine, Failure> {
        let root = self.root.clone();
        let base = (!copy.common.is_empty()).then(|| copy.to.join("objects"));
        let users = vec![self.removals.token()];
        tokio::task::spawn_blocking(move || Quarantine::create(&root, base.as_deref(), users))
            .await
            .map_err(Failure::local("work on the disk was ended"))?
            .map_err(Failure::local("a quarantine folder cannot be made"))
    }
}

/// Writes a pack with what is wanted to `to`.
async fn pack_objects(git: &Git, copy: &Copy, to: ChildStdin) -> Result<(), Failure> {
    let mut command = git.command_with(&settings(), "pack-objects");
    command.args(["--stdout", "--revs", "--quiet", "--delta-base-offset"]);
    if !copy.common.is_empty() {
        command.arg("--thin");
    }
    command.env("GIT_DIR", &copy.from);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, stdin) = spawn(command).map_err(Failure::local("git cannot be started"))?;
    let (stdout, said) = (child.take_stdout(), child.take_stderr());
    let (Some(stdout), Some(said)) = (stdout, said) else {
        return Err(Failure::local("git was started without its streams")("no pipe"));
    };
    let revisions = lines("", &copy.wanted) + &lines("^", &copy.common);
    let ((), (), said) = tokio::join!(write(stdin, revisions), pipe(stdout, to), drain(said));
    let status = child.wait().await.map_err(Failure::local("git cannot be waited for"))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::local(format!("git cannot pack: it says {}", quoted(&said)))(
            status.to_string(),
        )),
    }
}

/// If the other end closes, its own end says why. The pack ends with the pipe.
async fn pipe(mut from: ChildStdout, mut to: ChildStdin) {
    let _ = copy(&mut from, &mut to).await;
}

/// If the child ends early, its exit status says why.
async fn write(stdin: Option<ChildStdin>, lines: String) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(lines.as_bytes()).await;
    }
}

fn lines(before: &str, oids: &[Oid]) -> String {
    oids.iter().map(|oid| format!("{before}{oid}\n")).collect()
}

fn spawn(mut command: Command) -> std::io::Result<(ChildGroup, Option<ChildStdin>)> {
    let mut child = ChildGroup::spawn(&mut command, &local_limits().of_child())?;
    let stdin = child.take_stdin();
    Ok((child, stdin))
}

fn settings() -> Vec<String> {
    SETTINGS.iter().map(|setting| (*setting).to_owned()).collect()
}

/// What is here came in under the limits of many fetches, so one copy of it may take what many fetches may. The limits on
/// single objects and on memory are the same.
fn local_limits() -> Limits {
    Limits { pack_bytes: 1 << 40, cpu: Duration::from_secs(3_600), ..Limits::default() }
}
