//! What a state does to the refs of a repository: all of it, or nothing.
//!
//! Branches and tags are kept in `packed-refs`: moving them is one rename of that file, so that no reader and no
//! kill sees some of them moved. It also lets `a` become `a/b` in one step, and makes 1,000 refs one file.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use gix::{
    ObjectId,
    lock::acquire::Fail,
    objs::Kind,
    refs::{
        FullName, Target,
        file::transaction::PackedRefs,
        transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog},
    },
};
use purgatory_sync::Oid;

use super::{
    RepositoryError,
    objects::{Objects, sha1},
};
use crate::{RefError, RefName, StateRefs};

/// There while refs move. If it is there before, a process died while it moved them.
const MOVING: &str = "ngit-moving-refs";

/// How long the locks of other programs on refs are waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// How many names a reason lists.
const NAMED: usize = 5;

/// Whether the refs of `state` can stand together, whatever they point to.
pub(crate) fn check_names(state: &StateRefs) -> Result<(), RefError> {
    for name in state.refs.keys() {
        let parts = name.as_str().match_indices('/').map(|(at, _)| &name.as_str()[..at]);
        for parent in parts.filter_map(|parent| parent.parse::<RefName>().ok()) {
            if state.refs.contains_key(&parent) {
                return Err(RefError::Conflict(format!(
                    "{parent} and {name} cannot be in one repository"
                )));
            }
        }
    }
    let unsupported: Vec<_> = state.refs.iter().filter(|(_, oid)| sha1(oid).is_none()).collect();
    if !unsupported.is_empty() {
        return Err(conflict("SHA-256 is not supported", unsupported));
    }
    Ok(())
}

/// Whether each branch of `state` is a commit. All of its objects are here.
pub(crate) fn check_kinds(objects: &Objects, state: &StateRefs) -> Result<(), RefError> {
    let mut wrong = BTreeMap::<Kind, Vec<_>>::new();
    for (name, oid) in state.refs.iter().filter(|(name, _)| name.is_branch()) {
        match objects.kind(oid)? {
            Some(Kind::Commit) => {}
            Some(kind) => wrong.entry(kind).or_default().push((name, oid)),
            None => return Err(RepositoryError::new(format!("{name}: {oid} is not here")).into()),
        }
    }
    match wrong.pop_first() {
        Some((kind, named)) => {
            Err(conflict(&format!("a branch is a commit, and this is a {kind}"), named))
        }
        None => Ok(()),
    }
}

fn conflict(what: &str, named: Vec<(&RefName, &Oid)>) -> RefError {
    let mut reason = what.to_owned();
    for (at, (name, oid)) in named.iter().take(NAMED).enumerate() {
        reason += if at == 0 { ": " } else { ", " };
        reason += &format!("{name} ({oid})");
    }
    if named.len() > NAMED {
        reason += &format!(" and {} more", named.len() - NAMED);
    }
    RefError::Conflict(reason)
}

/// Makes the branches and tags those of `state`, and then `HEAD`. The repository is locked, and has all the data.
pub(crate) fn apply(
    objects: &Objects,
    path: &Path,
    state: &StateRefs,
) -> Result<(), RepositoryError> {
    mend(path)?;
    let refs = Refs { repository: objects.repository(), path };
    let edits = refs.edits(state)?;
    let head = refs.head_edit(state)?;
    if edits.is_empty() && head.is_none() {
        return Ok(());
    }
    let failed = || format!("cannot move the refs of {}", path.display());
    fs::write(path.join(MOVING), "").map_err(RepositoryError::because(failed()))?;
    refs.commit_packed(edits).map_err(RepositoryError::because(failed()))?;
    if let Some(head) = head {
        refs.commit_loose(head).map_err(RepositoryError::because(failed()))?;
    }
    fs::remove_file(path.join(MOVING)).map_err(RepositoryError::because(failed()))
}

/// Sets the ref `name` to `tip`. The repository is locked, and has all the data.
pub(crate) fn set(
    objects: &Objects,
    path: &Path,
    name: FullName,
    tip: ObjectId,
) -> Result<(), RepositoryError> {
    mend(path)?;
    let refs = Refs { repository: objects.repository(), path };
    let failed = || format!("cannot set {} of {}", name.as_bstr(), path.display());
    let here =
        refs.repository.refs.try_find(name.as_ref()).map_err(RepositoryError::because(failed()))?;
    if here.is_some_and(|here| here.target == Target::Object(tip)) {
        return Ok(());
    }
    let edit = update(name.clone(), Target::Object(tip));
    fs::write(path.join(MOVING), "").map_err(RepositoryError::because(failed()))?;
    refs.commit_loose(edit).map_err(RepositoryError::because(failed()))?;
    fs::remove_file(path.join(MOVING)).map_err(RepositoryError::because(failed()))
}

/// What every ref points to, with what it is called, for those below `prefix`.
pub(crate) fn list(
    repository: &gix::Repository,
    prefix: &str,
) -> Result<BTreeMap<FullName, Target>, RepositoryError> {
    let failed = || format!("cannot list the refs of {}", repository.path().display());
    let all = repository.references().map_err(RepositoryError::because(failed()))?;
    let refs = all.prefixed(prefix).map_err(RepositoryError::because(failed()))?;
    refs.map(|reference| {
        let reference = reference.map_err(RepositoryError::because(failed()))?.detach();
        Ok((reference.name, reference.target))
    })
    .collect()
}

/// Removes the locks that a killed process left on refs. The repository is locked: nobody of ours uses them.
///
/// Locks are left alone where no process of ours died: they may be those of somebody else's git.
fn mend(path: &Path) -> Result<(), RepositoryError> {
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

struct Refs<'a> {
    repository: &'a gix::Repository,
    path: &'a Path,
}

impl Refs<'_> {
    /// What has to change for the branches and tags to be those of `state`.
    fn edits(&self, state: &StateRefs) -> Result<Vec<RefEdit>, RepositoryError> {
        let mut here = list(self.repository, "refs/heads/")?;
        here.append(&mut list(self.repository, "refs/tags/")?);
        for name in &state.left_alone {
            here.remove(&full_name(name)?);
        }
        let mut edits = Vec::new();
        for (name, oid) in &state.refs {
            let name = full_name(name)?;
            let Some(id) = sha1(oid) else { continue };
            let target = Target::Object(id);
            if here.remove(&name).as_ref() != Some(&target) {
                edits.push(update(name, target));
            }
        }
        edits.extend(here.into_keys().map(delete));
        // Deeper names first. The locks of `a/b` need a folder `a`, which has to be gone before `a` is tended to.
        edits.sort_by(|one, other| other.name.cmp(&one.name));
        Ok(edits)
    }

    fn head_edit(&self, state: &StateRefs) -> Result<Option<RefEdit>, RepositoryError> {
        // A branch that is not there is no place for HEAD to point to: clones would be empty.
        let Some(name) =
            state.head.as_ref().filter(|name| state.refs.contains_key(name) && name.is_branch())
        else {
            return Ok(None);
        };
        let target = Target::Symbolic(full_name(name)?);
        let head = self.repository.refs.try_find("HEAD").map_err(RepositoryError::because(
            format_args!("cannot read HEAD of {}", self.path.display()),
        ))?;
        if head.is_some_and(|head| head.target == target) {
            return Ok(None);
        }
        Ok(Some(update(head_name(), target)))
    }

    /// Makes `edits` by one rename of `packed-refs`.
    fn commit_packed(&self, edits: Vec<RefEdit>) -> Result<(), gix::Error> {
        if edits.is_empty() {
            return Ok(());
        }
        self.pack_loose(&edits)?;
        self.remove_empty_folders(&edits);
        self.commit(edits)
    }

    /// Moves those refs into `packed-refs` that `edits` change and that have files of their own, as they are. Then
    /// the edits themselves are one rename, and no file stands where another ref needs a folder.
    fn pack_loose(&self, edits: &[RefEdit]) -> Result<(), gix::Error> {
        let mut loose = Vec::new();
        for edit in edits {
            let reference = self.repository.refs.try_find_loose(edit.name.as_ref())?;
            let target = reference.map(|reference| reference.target);
            // What leads nowhere cannot be packed, and stays a file until it is overwritten.
            if let Some(Target::Object(id)) = target
                && self.repository.has_object(id)
            {
                loose.push(update(edit.name.clone(), Target::Object(id)));
            }
        }
        if loose.is_empty() { Ok(()) } else { self.commit(loose) }
    }

    fn commit(&self, edits: Vec<RefEdit>) -> Result<(), gix::Error> {
        let objects = Box::new(&self.repository.objects);
        let patience = Fail::AfterDurationWithBackoff(LOCK_PATIENCE);
        let transaction = self.repository.refs.transaction();
        transaction
            .packed_refs(PackedRefs::DeletionsAndNonSymbolicUpdatesRemoveLooseSourceReference(
                objects,
            ))
            .prepare(edits, patience, patience)?
            .commit(None)?;
        Ok(())
    }

    fn commit_loose(&self, edit: RefEdit) -> Result<(), gix::Error> {
        let patience = Fail::AfterDurationWithBackoff(LOCK_PATIENCE);
        self.repository.refs.transaction().prepare([edit], patience, patience)?.commit(None)?;
        Ok(())
    }

    /// A folder without refs may stand where a ref goes: git leaves them behind, and so does a killed process.
    fn remove_empty_folders(&self, edits: &[RefEdit]) {
        for edit in edits {
            let Ok(name) = gix::path::from_bstr(edit.name.as_bstr()) else { continue };
            let file = self.path.join(name);
            if file.is_dir() {
                remove_if_empty(&file);
            }
        }
    }
}

/// Best effort: what is not empty stays, and the transaction says so.
fn remove_if_empty(folder: &Path) {
    let folders: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    folders.iter().filter(|path| path.is_dir()).for_each(|path| remove_if_empty(path));
    let _ = fs::remove_dir(folder);
}

fn full_name(name: &RefName) -> Result<FullName, RepositoryError> {
    FullName::try_from(name.as_str())
        .map_err(RepositoryError::because(format_args!("git does not take the ref name {name}")))
}

fn head_name() -> FullName {
    FullName::try_from("HEAD").expect("HEAD is a ref name")
}

fn update(name: FullName, target: Target) -> RefEdit {
    let change = Change::Update {
        log: LogChange { mode: RefLog::AndReference, ..LogChange::default() },
        expected: PreviousValue::Any,
        new: target,
    };
    RefEdit { change, name, deref: false }
}

fn delete(name: FullName) -> RefEdit {
    let change = Change::Delete { expected: PreviousValue::Any, log: RefLog::AndReference };
    RefEdit { change, name, deref: false }
}
