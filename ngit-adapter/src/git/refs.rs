//! What a state does to the refs of a repository: all of it, or nothing.
//!
//! Branches and tags are kept in `packed-refs`: moving them is one rename of that file, so that no reader and no
//! kill sees some of them moved. It also lets `a` become `a/b` in one step, and makes 1,000 refs one file.

use std::{collections::BTreeMap, error::Error, fs, io, path::Path, time::Duration};

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
    packed_refs,
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
                return Err(cannot_be_both(&parent, name));
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
pub(crate) fn apply(objects: &Objects, path: &Path, state: &StateRefs) -> Result<(), RefError> {
    mend(path)?;
    let refs = Refs { repository: objects.repository(), path };
    let changes = refs.changes(state)?;
    let head = refs.head(state)?;
    if changes.is_empty() && head.is_none() {
        return Ok(());
    }
    let moved = moving(path, || {
        refs.move_packed(&changes)?;
        match (head, FullName::try_from("HEAD")) {
            (Some(target), Ok(name)) => refs.move_one(name, target),
            _ => Ok(()),
        }
    });
    Ok(moved.map_err(RepositoryError::because(format_args!(
        "cannot move the refs of {}",
        path.display()
    )))?)
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
    let failed = format!("cannot set {} of {}", name.as_bstr(), path.display());
    let here = refs.repository.refs.try_find(name.as_ref());
    let here = here.map_err(RepositoryError::because(&failed))?;
    if here.is_some_and(|here| here.target == Target::Object(tip)) {
        return Ok(());
    }
    moving(path, || refs.move_one(name, Target::Object(tip)))
        .map_err(RepositoryError::because(failed))
}

/// Moves refs, with a sign up for the next process, should this one die meanwhile.
fn moving(
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

/// Takes the ref `name` away, if it points to `tip`. The repository is locked.
pub(crate) fn remove(
    objects: &Objects,
    path: &Path,
    name: FullName,
    tip: ObjectId,
) -> Result<(), RepositoryError> {
    mend(path)?;
    let refs = Refs { repository: objects.repository(), path };
    let failed = format!("cannot remove {} of {}", name.as_bstr(), path.display());
    let here = refs.repository.refs.try_find(name.as_ref());
    let here = here.map_err(RepositoryError::because(&failed))?;
    if here.is_none_or(|here| here.target != Target::Object(tip)) {
        return Ok(());
    }
    moving(path, || refs.commit(vec![delete(name)], PackedRefs::DeletionsOnly))
        .map_err(RepositoryError::because(failed))
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

/// What becomes of each ref that changes: another value, or nothing.
type Changes = BTreeMap<FullName, Option<ObjectId>>;

impl Refs<'_> {
    /// What has to change for the branches and tags to be those of `state`.
    fn changes(&self, state: &StateRefs) -> Result<Changes, RefError> {
        let mut here = list(self.repository, "refs/heads/")?;
        here.append(&mut list(self.repository, "refs/tags/")?);
        for name in &state.left_alone {
            if here.remove(&full_name(name)?).is_some() {
                check_beside(name, state)?;
            }
        }
        let mut changes = Changes::new();
        for (name, oid) in &state.refs {
            let name = full_name(name)?;
            let Some(id) = sha1(oid) else { continue };
            if here.remove(&name) != Some(Target::Object(id)) {
                changes.insert(name, Some(id));
            }
        }
        changes.extend(here.into_keys().map(|name| (name, None)));
        Ok(changes)
    }

    /// Where `HEAD` has to go, if it has to.
    fn head(&self, state: &StateRefs) -> Result<Option<Target>, RepositoryError> {
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
        Ok(head.is_none_or(|head| head.target != target).then_some(target))
    }

    /// Moves all of `changes` by one rename of `packed-refs`.
    fn move_packed(&self, changes: &Changes) -> Result<(), gix::Error> {
        if changes.is_empty() {
            return Ok(());
        }
        self.pack_files(changes)?;
        packed_refs::rewrite(self.repository, changes, patience())?;
        self.remove_logs(changes);
        Ok(())
    }

    /// Moves those refs into `packed-refs`, as they are, that change and have files of their own: a file would be
    /// seen before the packed value, and stand where another ref needs a folder.
    fn pack_files(&self, changes: &Changes) -> Result<(), gix::Error> {
        let mut packable = Vec::new();
        let mut odd = Vec::new();
        for name in changes.keys() {
            if !self.path.join(gix::path::from_bstr(name.as_bstr())?).is_file() {
                continue;
            }
            let target = self.repository.refs.try_find_loose(name.as_ref())?.map(|it| it.target);
            match target {
                Some(Target::Object(id)) if self.repository.has_object(id) => {
                    packable.push(update(name.clone(), Target::Object(id)));
                }
                // Symbolic, or it leads nowhere.
                _ => odd.push(delete(name.clone())),
            }
        }
        if !packable.is_empty() {
            let objects = Box::new(&self.repository.objects);
            let packed =
                PackedRefs::DeletionsAndNonSymbolicUpdatesRemoveLooseSourceReference(objects);
            self.commit(packable, packed)?;
        }
        if !odd.is_empty() {
            self.commit(odd, PackedRefs::DeletionsOnly)?;
        }
        Ok(())
    }

    fn move_one(&self, name: FullName, target: Target) -> Result<(), gix::Error> {
        self.commit(vec![update(name, target)], PackedRefs::DeletionsOnly)
    }

    fn commit(&self, edits: Vec<RefEdit>, packed: PackedRefs<'_>) -> Result<(), gix::Error> {
        let transaction = self.repository.refs.transaction().packed_refs(packed);
        transaction.prepare(edits, patience(), patience())?.commit(None)?;
        Ok(())
    }

    /// We write no logs, but others may have. That of `a`, which is gone, would be in the way of one of `a/b`.
    fn remove_logs(&self, changes: &Changes) {
        let logs = self.path.join("logs");
        if !logs.is_dir() {
            return;
        }
        for (name, _) in changes.iter().filter(|(_, value)| value.is_none()) {
            if let Ok(name) = gix::path::from_bstr(name.as_bstr()) {
                let _ = fs::remove_file(logs.join(name));
            }
        }
    }
}

/// Whether `name`, which stays as it is, can be beside the refs of `state`.
fn check_beside(name: &RefName, state: &StateRefs) -> Result<(), RefError> {
    let below = format!("{name}/");
    let other = state.refs.keys().find(|other| {
        other.as_str().starts_with(&below) || name.as_str().starts_with(&format!("{other}/"))
    });
    match other {
        Some(other) => Err(cannot_be_both(name, other)),
        None => Ok(()),
    }
}

fn cannot_be_both(one: &RefName, other: &RefName) -> RefError {
    RefError::Conflict(format!("{one} and {other} cannot be in one repository"))
}

fn patience() -> Fail {
    Fail::AfterDurationWithBackoff(LOCK_PATIENCE)
}

fn full_name(name: &RefName) -> Result<FullName, RepositoryError> {
    FullName::try_from(name.as_str())
        .map_err(RepositoryError::because(format_args!("git does not take the ref name {name}")))
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
