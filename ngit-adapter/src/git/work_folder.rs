//! Where half-done work lies: beside the repositories, on the same file system, and never inside them.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use tempfile::TempDir;

use super::paths::Case;

/// The folder below the folder of repositories.
const FOLDER: &str = ".quarantine";

/// In the folder: held while sessions are made and swept.
const SWEEP_LOCK: &str = "lock";

/// In a session: locked as long as its process lives.
const ALIVE: &str = "alive";

/// A folder of this process for what is not checked or not whole yet.
///
/// It goes when it is dropped. Whatever a killed process left is removed by the next one that opens a
/// work folder there; what belongs to a process that lives is not touched.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    session: TempDir,
    _alive: File,
}

impl WorkFolder {
    /// Makes one below `root`, which exists.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let folder = root.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let sweep = open_to_lock(&folder.join(SWEEP_LOCK))?;
        sweep.lock()?;
        remove_left_over(&folder)?;
        let session = tempfile::Builder::new().prefix("session-").tempdir_in(&folder)?;
        let alive = open_to_lock(&session.path().join(ALIVE))?;
        alive.lock()?;
        Ok(Self { session, _alive: alive })
    }

    /// How names are told apart here: asked by looking for `alive` under another name.
    pub(crate) fn case(&self) -> io::Result<Case> {
        let found = self.session.path().join(ALIVE.to_uppercase()).try_exists()?;
        Ok(if found { Case::Ignored } else { Case::Matters })
    }

    /// A new folder in it, which goes when its guard is dropped.
    pub(crate) fn new_folder(&self, prefix: &str) -> io::Result<TempDir> {
        tempfile::Builder::new().prefix(prefix).tempdir_in(self.session.path())
    }
}

fn remove_left_over(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir()
            && is_left_over(&path)
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove what a dead process left");
        }
    }
    Ok(())
}

/// Whether the process of this session is gone. Nobody makes a session meanwhile.
fn is_left_over(session: &Path) -> bool {
    match File::options().write(true).open(session.join(ALIVE)) {
        Ok(alive) => alive.try_lock().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn open_to_lock(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}
