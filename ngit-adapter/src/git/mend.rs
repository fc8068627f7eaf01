//! How a repository that is not whole becomes whole: by what came since, seen by looking at all that is in it.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use super::{RepositoryError, closure::Closure, objects::Objects, pack_list, whole};

/// Which repositories were looked at in vain, and how their packs were then. A look at all of a big repository takes
/// seconds, so it is not repeated until a pack came or went.
#[derive(Debug, Default)]
pub(crate) struct Mender {
    in_vain: Mutex<HashMap<PathBuf, Option<SystemTime>>>,
}

impl Mender {
    /// Makes the repository at `path` one that is marked whole, if it is: no longer shallow if the history that was cut off came,
    /// and marked if each of its objects has all it reaches. The repository is locked.
    pub(crate) fn mend(&self, path: &Path) -> Result<(), RepositoryError> {
        // What is borrowed may go at any time, so nothing of it is noted. Nothing is known to have been in vain, either:
        // it can become whole without a pack that comes or goes.
        if whole::is_whole(path) || whole::borrows(path) {
            return Ok(());
        }
        let packs = fs::metadata(path.join("objects/pack")).and_then(|it| it.modified()).ok();
        if self.in_vain().get(path) == Some(&packs) {
            return Ok(());
        }
        if look_at_all(path)? {
            self.in_vain().remove(path);
        } else {
            self.in_vain().insert(path.to_owned(), packs);
        }
        Ok(())
    }

    /// A pack came into the repository at `path`: it is worth another look. The times of files are too coarse to tell.
    pub(crate) fn changed(&self, path: &Path) {
        self.in_vain().remove(path);
    }

    fn in_vain(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Option<SystemTime>>> {
        self.in_vain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the repository is whole now.
fn look_at_all(path: &Path) -> Result<bool, RepositoryError> {
    let failed = || format!("cannot mend the repository {}", path.display());
    let packs = pack_list::now(path).ok();
    let objects = Objects::open(path)?;
    let mut closure = Closure::new(objects.repository());
    let shallow = path.join("shallow");
    if let Some(cut) = read_shallow(&shallow).map_err(RepositoryError::because(failed()))? {
        if !cut.into_iter().all(|id| closure.is_whole(id)) {
            return Ok(false);
        }
        fs::remove_file(&shallow).map_err(RepositoryError::because(failed()))?;
        tracing::info!(path = %path.display(), "a shallow repository has all its history now");
    }
    let mut all =
        objects.repository().objects.iter().map_err(RepositoryError::because(failed()))?;
    if !all.all(|id| id.is_ok_and(|id| closure.is_whole(id))) {
        return Ok(false);
    }
    let marked = match packs.filter(|seen| pack_list::now(path).is_ok_and(|now| now == *seen)) {
        // What was seen, and not what is there now: somebody may bring something at any time.
        Some(seen) => pack_list::begin_with(path, &seen),
        // What came or went meanwhile was not looked at.
        None => Ok(()),
    };
    marked.and_then(|()| whole::mark(path)).map_err(RepositoryError::because(failed()))?;
    Ok(whole::is_whole(path))
}

/// The commits whose parents were cut off. `None` if the repository is not shallow.
fn read_shallow(file: &Path) -> io::Result<Option<Vec<gix::ObjectId>>> {
    let text = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        result => result?,
    };
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| gix::ObjectId::from_hex(line).map_err(io::Error::other))
        .collect::<io::Result<_>>()
        .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G7: nothing is noted of a repository that borrows its objects, so that nothing is believed of it once what was lent
    /// is gone. It is looked at as soon as it borrows no more.
    #[test]
    fn what_is_borrowed_makes_nothing_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for below in ["objects/info", "objects/pack", "refs/heads"] {
            fs::create_dir_all(path.join(below)).unwrap();
        }
        fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(path.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
            .unwrap();
        let lender = tempfile::tempdir().unwrap();
        let alternates = path.join("objects/info/alternates");
        fs::write(&alternates, format!("{}\n", lender.path().display())).unwrap();
        let mender = Mender::default();
        mender.mend(path).unwrap();
        fs::remove_file(&alternates).unwrap();
        assert!(!whole::is_whole(path) && !pack_list::holds(path));
        mender.mend(path).unwrap();
        assert!(whole::is_whole(path) && pack_list::holds(path));
    }
}
