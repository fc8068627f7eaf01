use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::Path,
};

/// A lock file that is held. Other processes, and other holders in this one, find it taken.
///
/// Dropping it says so to the system, and does not leave it to the closing of the file: a child
/// that is just being started has a copy of every open file, and would keep the lock for a moment.
#[must_use = "the lock is free again when this is dropped"]
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl FileLock {
    /// Takes the lock at `path`, which is made if it is not there. `None` if somebody has it.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If it fails, the closing of the file frees the lock.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of the file, as a child has it while it is being started, does not keep the lock.
    #[test]
    fn a_dropped_lock_is_free_though_a_copy_of_its_file_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = FileLock::try_take(&path).unwrap().unwrap();
        let copy = lock.0.try_clone().unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        drop(lock);
        assert!(FileLock::try_take(&path).unwrap().is_some());
        drop(copy);
    }
}
