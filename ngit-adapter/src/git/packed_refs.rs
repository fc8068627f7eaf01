//! The file that holds all branches and tags of a repository and the one rename that moves them; and that of a single
//! ref.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufWriter, Read, Write},
    path::Path,
};

use gix::{
    ObjectId,
    lock::acquire::Fail,
    objs::Kind,
    refs::{FullName, Target},
};

use super::durable;

/// Git's own header: with `fully-peeled`, what has no `^` line is no tag object.
const HEADER: &[u8] = b"# pack-refs with: peeled fully-peeled sorted \n";
const FULLY_PEELED: &[u8] = b" fully-peeled ";

/// How many tags of tags are followed.
const MAX_PEEL: usize = 100;

/// An entry: the object, and what is behind it if it is a tag object.
struct Entry {
    target: ObjectId,
    peeled: Option<ObjectId>,
}

/// Sets each ref of `changes` to its value, or removes it, by one rename of `packed-refs`. Other entries stay.
///
/// The objects are here. None of the refs has a file of its own.
pub(super) fn rewrite(
    repository: &gix::Repository,
    changes: &BTreeMap<FullName, Option<ObjectId>>,
    patience: Fail,
) -> Result<(), gix::Error> {
    let path = repository.refs.common_dir_resolved().join("packed-refs");
    let lock = gix::lock::File::acquire_to_update_resource(&path, patience, None, 0)?;
    let mut entries = read(repository, &path)?;
    for (name, value) in changes {
        match value {
            Some(target) => {
                let peeled = peel(repository, *target)?;
                entries.insert(name.clone(), Entry { target: *target, peeled });
            }
            None => {
                entries.remove(name);
            }
        }
    }
    commit(lock, &path, |file| write(file, &entries))
}

/// Sets the file of one ref, by one rename. It is on the disk for good when this returns.
pub(super) fn write_file(path: &Path, target: &Target, patience: Fail) -> Result<(), gix::Error> {
    let folder = path.parent().unwrap_or(path);
    let is_new = !folder.is_dir();
    fs::create_dir_all(folder).map_err(gix::Error::from_error)?;
    if is_new {
        durable::flush_folder_of(folder).map_err(gix::Error::from_error)?;
    }
    let lock = gix::lock::File::acquire_to_update_resource(path, patience, None, 0)?;
    commit(lock, path, |file| match target {
        Target::Object(id) => writeln!(file, "{id}"),
        Target::Symbolic(name) => writeln!(file, "ref: {}", name.as_bstr()),
    })
}

/// Writes the file that is locked, flushes it, and puts it in its place.
fn commit(
    mut lock: gix::lock::File,
    path: &Path,
    write: impl FnOnce(&mut fs::File) -> io::Result<()>,
) -> Result<(), gix::Error> {
    lock.with_mut(|file| write(file).and_then(|()| file.sync_data()))
        .map_err(gix::Error::from_error)?;
    lock.commit().map_err(|error| gix::Error::from_error(error.error))?;
    durable::flush_folder_of(path).map_err(gix::Error::from_error)
}

fn read(
    repository: &gix::Repository,
    path: &Path,
) -> Result<BTreeMap<FullName, Entry>, gix::Error> {
    let is_fully_peeled = is_fully_peeled(path).map_err(gix::Error::from_error)?;
    let Some(packed) = repository.refs.open_packed_buffer()? else { return Ok(BTreeMap::new()) };
    let mut entries = BTreeMap::new();
    for reference in packed.iter()? {
        let reference = reference?;
        let target = reference.target();
        let peeled = match reference.object {
            Some(_) => Some(reference.object()),
            None if is_fully_peeled => None,
            // Written by an old git, or for an object that is not here.
            None => peel(repository, target).ok().flatten(),
        };
        entries.insert(reference.name.to_owned(), Entry { target, peeled });
    }
    Ok(entries)
}

fn is_fully_peeled(path: &Path) -> io::Result<bool> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        result => result?,
    };
    let mut start = Vec::new();
    file.take(256).read_to_end(&mut start)?;
    let header = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(header.starts_with(b"#")
        && header.windows(FULLY_PEELED.len()).any(|part| part == FULLY_PEELED))
}

/// What is behind a tag object. `None` for all else.
fn peel(repository: &gix::Repository, id: ObjectId) -> Result<Option<ObjectId>, gix::Error> {
    let mut current = id;
    for _ in 0..MAX_PEEL {
        if repository.find_header(current)?.kind() != Kind::Tag {
            break;
        }
        current = repository.find_tag(current)?.target_id()?.detach();
    }
    Ok((current != id).then_some(current))
}

fn write(file: &mut fs::File, entries: &BTreeMap<FullName, Entry>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    out.write_all(HEADER)?;
    for (name, Entry { target, peeled }) in entries {
        write!(out, "{target} ")?;
        out.write_all(name.as_bstr())?;
        out.write_all(b"\n")?;
        if let Some(peeled) = peeled {
            writeln!(out, "^{peeled}")?;
        }
    }
    out.flush()
}
