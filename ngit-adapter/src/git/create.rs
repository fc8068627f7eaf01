//! How a repository comes to be: bare, empty, and all at once.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{RepositoryError, durable, pack_list, whole, work_folder::WorkFolder};

/// What another program that serves or tends the folder should know. Nothing is tidied behind our back, and what is
/// named by an event may be fetched by its id.
const CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[receive]
\tautogc = false
\tfsckObjects = true
[uploadpack]
\tallowTipSHA1InWant = true
\tallowReachableSHA1InWant = true
";

const HEAD: &str = "ref: refs/heads/main\n";

/// Makes the repository at `path` if it is not there. Any number of threads and processes may do it at once.
///
/// It is made elsewhere and moved here as a whole: a process that is killed leaves no half of it.
pub(crate) fn create_if_absent(work: &WorkFolder, path: &Path) -> Result<(), RepositoryError> {
    if is_repository(path) {
        return Ok(());
    }
    let failed = || format!("cannot make the repository {}", path.display());
    make(work, path).map_err(RepositoryError::because(failed()))?;
    if !is_repository(path) {
        return Err(RepositoryError::new(format!("{}: something else is there", failed())));
    }
    Ok(())
}

/// Whether there is a repository at `path`.
pub(crate) fn is_repository(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir()
}

fn make(work: &WorkFolder, path: &Path) -> io::Result<()> {
    let new = work.new_folder("new-")?;
    let repository = new.path().join("repository");
    for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        fs::create_dir_all(repository.join(folder))?;
    }
    for (name, text) in [("config", CONFIG), ("HEAD", HEAD)] {
        fs::write(repository.join(name), text)?;
        durable::flush(&repository.join(name))?;
    }
    whole::mark(&repository)?;
    pack_list::begin(&repository)?;
    for folder in ["objects", "refs", ""] {
        durable::flush(&repository.join(folder))?;
    }
    let owner_folder = owner_folder(path);
    fs::create_dir_all(&owner_folder)?;
    let moved = fs::rename(&repository, path)
        .and_then(|()| durable::flush(&owner_folder))
        .and_then(|()| durable::flush_folder_of(&owner_folder));
    match moved {
        // Somebody else was faster.
        Err(error) if is_repository(path) => {
            drop(error);
            Ok(())
        }
        result => result,
    }
}

fn owner_folder(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}
