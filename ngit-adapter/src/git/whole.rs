//! The mark of a repository in which every object is there with all it reaches.
//!
//! It is what makes "here" cheap. The mark is set when we make a repository, empty as it is, and it stays true:
//!
//! - a fetched pack was checked, before it is linked in, by a strict `index-pack` that saw the objects of that
//!   repository and no others, so that each object it names is in the pack or was there before, with all *it* reaches;
//! - what a sibling gives is checked in the same way, or is a pack that names nothing outside of itself;
//! - a push goes through `git receive-pack`, which does the same, as `receive.fsckObjects` is set in our repositories;
//! - `git gc` keeps what refs reach, in full.
//!
//! Somebody may tidy away what no ref reaches yet between a check and the moment when refs move. So there is a last look just before
//! (`bring.rs`): whether all packs that came are there (`pack_list.rs`), and where that is not so, at all that refs will
//! reach. The mark goes if something lacks.
//!
//! A repository without the mark was made by others, or was found damaged. In it an object counts if a walk over all
//! that it reaches finds everything. A repository that is shallow or borrows objects from another is not whole,
//! whatever the mark says.

use std::{fs, io, path::Path};

const MARK: &str = "ngit-whole";
const TEXT: &str =
    "Each object in this repository was checked to be here with all that it reaches.\n";

/// Whether an object that is in the repository at `path` is there with all it reaches.
pub(crate) fn is_whole(path: &Path) -> bool {
    let exists = |name: &str| path.join(name).try_exists().unwrap_or(true);
    path.join(MARK).is_file() && !exists("shallow") && !borrows(path)
}

/// Whether the repository at `path` borrows objects from another.
pub(crate) fn borrows(path: &Path) -> bool {
    path.join("objects/info/alternates").try_exists().unwrap_or(true)
}

/// Sets the mark.
pub(crate) fn mark(path: &Path) -> io::Result<()> {
    fs::write(path.join(MARK), TEXT)
}

/// Takes the mark away: something that should be there was not.
pub(crate) fn unmark(path: &Path) -> io::Result<()> {
    match fs::remove_file(path.join(MARK)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
