//! What a process that is killed while it moves refs leaves behind, and how the next one clears it up.

use std::{error::Error, fs, io, path::Path};

use super::RepositoryError;

/// There while refs move. If it is there before, a process died while it moved them.
const MOVING: &str = "ngit-moving-refs";

/// Moves refs, with a sign up for the next process, should this one die meanwhile.
pub(super) fn moving(
    path: &Path,
    work: impl FnOnce() -> Result<(), gix::Error>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let sign = path.join(MOVING);
    fs::write(&sign, "")?;
    let result = work();
    // If it failed, its locks are gone too.
    fs::remove_file(&sign)?;
    Ok(result?)
}

/// Removes the locks that a killed process left on refs. The repository is locked: nobody of ours uses them.
///
/// Locks are left alone where no process of ours died: they may be those of somebody else's git.
pub(super) fn mend(path: &Path) -> Result<(), RepositoryError> {
    let moving = path.join(MOVING);
    if !moving.exists() {
        return Ok(());
    }
    let removed = remove_locks(path).and_then(|()| fs::remove_file(&moving));
    removed.map_err(RepositoryError::because(format_args!(
        "cannot clear up after a process that died in {}",
        path.display()
    )))
}

fn remove_locks(path: &Path) -> io::Result<()> {
    for name in ["HEAD.lock", "packed-refs.lock"] {
        match fs::remove_file(path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let mut folders = vec![path.join("refs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().as_encoded_bytes().ends_with(b".lock") {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}
