//! How a checked pack comes into a repository: as a file with two names, so that whatever happens to the one
//! leaves the other whole.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{RepositoryError, durable, pack_list};

/// A pack that passed all checks, in a quarantine folder.
#[derive(Clone, Debug)]
pub struct CheckedPack {
    /// The pack, `pack-<hash>.pack`.
    pub pack: PathBuf,
    /// Its index beside it, `pack-<hash>.idx`.
    pub index: PathBuf,
    /// Whether it was checked without the objects of any repository, so that each object that is named in it is in it.
    /// Such a pack is right for any repository, any other one for that whose objects were seen by the check.
    pub stands_alone: bool,
}

/// Puts the pack into the repository at `path`, which is locked. The index goes last: without it git sees no pack. It is
/// flushed when this returns.
pub(crate) fn link(pack: &CheckedPack, path: &Path) -> Result<(), RepositoryError> {
    let folder = path.join("objects/pack");
    let name = pack.pack.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let linked = fs::create_dir_all(&folder)
        .and_then(|()| link_file(&pack.pack, &folder))
        .and_then(|()| link_file(&pack.index, &folder))
        .and_then(|()| durable::flush(&folder))
        .and_then(|()| pack_list::add(path, name));
    linked.map_err(RepositoryError::because(format_args!(
        "cannot put a pack into the repository {}",
        path.display()
    )))
}

fn link_file(file: &Path, folder: &Path) -> io::Result<()> {
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let link = folder.join(name);
    // Git has done so as it wrote it, unless somebody told it not to: then this costs nothing.
    durable::flush(file)?;
    match fs::hard_link(file, &link) {
        Ok(()) => Ok(()),
        // The name is the hash of what is in it: it is there already.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems have no hard links, or only so many of one file.
        Err(error) if is_without_links(&error) => copy(file, &link),
        Err(error) => Err(error),
    }
}

fn is_without_links(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(
        error.kind(),
        K::Unsupported | K::CrossesDevices | K::TooManyLinks | K::PermissionDenied
    )
}

/// Git removes files of this prefix when it tidies up, so that a killed process leaves nothing for ever.
fn copy(file: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut copy = tempfile::Builder::new().prefix("tmp_pack_").tempfile_in(folder)?;
    io::copy(&mut fs::File::open(file)?, copy.as_file_mut())?;
    copy.as_file().sync_all()?;
    let mut permissions = copy.as_file().metadata()?.permissions();
    permissions.set_readonly(true);
    copy.as_file().set_permissions(permissions)?;
    copy.persist(to)?;
    Ok(())
}
