//! Where a pack stays until it has passed every check.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use tokio_util::task::task_tracker::TaskTrackerToken;

/// A folder for one fetch, outside of every repository. Dropping it removes it with all it holds.
///
/// It is laid out as a bare repository that borrows the objects of the repository the data is for,
/// so that git can check the pack here with all that it builds on. What is in it counts nowhere until its
/// files are linked into a repository, the `.idx` last.
///
/// It is on the same file system as the repositories, so that linking copies nothing.
#[derive(Debug)]
#[must_use = "dropping it removes what was fetched"]
pub(crate) struct Quarantine {
    path: PathBuf,
    // Held as long as somebody may write here: by this process, and by each child that has it as its
    // standard output. `None` once the folder is given up.
    lock: Option<File>,
    // Whoever waits for these to be dropped waits for the removal.
    users: Vec<TaskTrackerToken>,
}

/// The folder below the one of all repositories. No owner's folder can have this name.
const FOLDER: &str = ".quarantine";

/// In that folder: held by whoever makes or sweeps what is in it.
const SWEEP_LOCK: &str = "lock";

/// In each folder in it: locked as long as somebody uses that folder.
const ALIVE: &str = "alive";

impl Quarantine {
    /// Makes a quarantine below `root` for a pack that builds on what is in the object folder `base`, or on nothing.
    ///
    /// It first removes what processes that are gone left behind. It blocks on the file system: call it
    /// where that may be. It holds `users` until it is removed.
    pub(crate) fn create(
        root: &Path,
        base: Option<&Path>,
        users: Vec<TaskTrackerToken>,
    ) -> io::Result<Self> {
        let folder = root.join(FOLDER);
        let _all = lock_all(&folder)?;
        sweep_locked(&folder);
        let path =
            tempfile::Builder::new().prefix("fetch-").rand_bytes(16).tempdir_in(&folder)?.keep();
        let lock = open_lock(&path.join(ALIVE))?;
        lock.lock()?;
        let made = Self { path, lock: Some(lock), users };
        made.lay_out(base)?;
        Ok(made)
    }

    /// The folder, laid out as a bare repository.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.path
    }

    /// The pack that was stored here. It blocks on the file system.
    pub(crate) fn find_pack(git_dir: &Path) -> io::Result<(PathBuf, PathBuf)> {
        for entry in fs::read_dir(git_dir.join("objects/pack"))? {
            let index = entry?.path();
            if index.extension().is_some_and(|extension| extension == "idx") {
                return Ok((index.with_extension("pack"), index));
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// A handle on the lock of this quarantine, to be the standard output of a child: as long as the child lives,
    /// the quarantine counts as in use, also when this process is gone.
    pub(crate) fn lock_handle(&self) -> io::Result<File> {
        self.lock
            .as_ref()
            .ok_or_else(|| io::Error::other("the quarantine is given up"))?
            .try_clone()
    }

    fn lay_out(&self, base: Option<&Path>) -> io::Result<()> {
        fs::create_dir(self.path.join("refs"))?;
        fs::create_dir_all(self.path.join("objects/info"))?;
        fs::create_dir(self.path.join("objects/pack"))?;
        fs::write(self.path.join("HEAD"), "ref: refs/heads/none\n")?;
        fs::write(
            self.path.join("config"),
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        )?;
        let Some(base) = base else { return Ok(()) };
        let mut line = quoted(base.as_os_str().as_bytes());
        line.push(b'\n');
        File::create(self.path.join("objects/info/alternates"))?.write_all(&line)
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        drop(lock);
        let path = std::mem::take(&mut self.path);
        let users = std::mem::take(&mut self.users);
        let remove = move || {
            remove_when_free(&path);
            drop(users);
        };
        // Whoever cancels a fetch must not wait for a child that is about to die.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

/// Removes what processes that are gone left below `root`. It blocks on the file system.
///
/// # Errors
///
/// If the folder cannot be made or locked.
pub(crate) fn sweep(root: &Path) -> io::Result<()> {
    let folder = root.join(FOLDER);
    let _all = lock_all(&folder)?;
    sweep_locked(&folder);
    Ok(())
}

/// Keeps others from making and from removing quarantines while it lives.
fn lock_all(folder: &Path) -> io::Result<File> {
    match fs::DirBuilder::new().mode(0o700).recursive(true).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let lock = open_lock(&folder.join(SWEEP_LOCK))?;
    lock.lock()?;
    Ok(lock)
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn sweep_locked(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_if_free(&entry.path());
        }
    }
}

fn remove_if_free(path: &Path) {
    match OpenOptions::new().append(true).open(path.join(ALIVE)) {
        Ok(lock) => match lock.try_lock() {
            Ok(()) => remove(path),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        },
        // Its maker was killed before the lock was there. Makers hold the lock on all while they make.
        Err(error) if error.kind() == io::ErrorKind::NotFound => remove(path),
        Err(_) => {}
    }
}

/// Waits until no child writes there any more, then removes it.
fn remove_when_free(path: &Path) {
    if let Ok(lock) = OpenOptions::new().append(true).open(path.join(ALIVE)) {
        let _ = lock.lock();
        remove(path);
    }
}

fn remove(path: &Path) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove a quarantine folder");
        }
        _ => {}
    }
}

/// A path as git's list of alternates reads it, whatever bytes it has.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b' '..=b'~' => text.push(*byte),
            _ => text.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    text.push(b'"');
    text
}
