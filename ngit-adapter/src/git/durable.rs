//! What is on the disk for good, also after a loss of power.
//!
//! The journal of what is held forgets an event only after its refs were set and it was saved. So that no power failure
//! can cost it, what these refs stand for is flushed before: packs and refs, and the names of both in their folders.

use std::{fs::File, io, path::Path};

/// Flushes what is in the file or, for a folder, which names are in it.
pub(super) fn flush(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Flushes the names in the folder that `path` is in.
pub(super) fn flush_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), flush)
}
