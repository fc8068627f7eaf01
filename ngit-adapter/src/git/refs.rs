//! What a state does to the refs of a repository: all of it, or nothing.
//!
//! Branches and tags are kept in `packed-refs`: moving them is one rename of that file, so that no reader and no
//! kill sees some of them moved. It also lets `a` become `a/b` in one step, and makes 1,000 refs one file.

use std::{collections::BTreeMap, error::Error, path::Path};

use gix::{
    ObjectId,
    objs::Kind,
    refs::{FullName, Target},
};
use purgatory_sync::Oid;

use super::{
    RepositoryError,
    objects::{Objects, sha1},
    ref_locks,
    ref_moves::{Changes, RefMoves},
};
use crate::{RefError, RefName, StateRefs};

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
    ref_locks::mend(path)?;
    let refs = RefMoves { repository: objects.repository(), path };
    let changes = changes(refs.repository, state)?;
    let head = head(refs.repository, state)?;
    if changes.is_empty() && head.is_none() {
        return Ok(());
    }
    let moved = ref_locks::moving(path, || {
        refs.move_packed(&changes)?;
        match (head, FullName::try_from("HEAD")) {
            (Some(target), Ok(name)) => refs.set(&name, &target),
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
    let tip = Target::Object(tip);
    change_one(objects, path, &name, "set", |refs, here| match here {
        Some(here) if here == tip => Ok(()),
        _ => ref_locks::moving(path, || refs.set(&name, &tip)),
    })
}

/// Takes the ref `name` away, if it points to `tip`. The repository is locked.
pub(crate) fn remove(
    objects: &Objects,
    path: &Path,
    name: FullName,
    tip: ObjectId,
) -> Result<(), RepositoryError> {
    change_one(objects, path, &name, "remove", |refs, here| match here {
        Some(here) if here == Target::Object(tip) => {
            ref_locks::moving(path, || refs.remove(name.clone()))
        }
        _ => Ok(()),
    })
}

/// Changes one ref, by what is there.
fn change_one(
    objects: &Objects,
    path: &Path,
    name: &FullName,
    what: &str,
    change: impl FnOnce(&RefMoves<'_>, Option<Target>) -> Result<(), Box<dyn Error + Send + Sync>>,
) -> Result<(), RepositoryError> {
    ref_locks::mend(path)?;
    let failed = format!("cannot {what} {} of {}", name.as_bstr(), path.display());
    let refs = RefMoves { repository: objects.repository(), path };
    let here = refs.repository.refs.try_find(name.as_ref());
    let here = here.map_err(RepositoryError::because(&failed))?.map(|here| here.target);
    change(&refs, here).map_err(RepositoryError::because(failed))
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

/// What has to change for the branches and tags to be those of `state`.
fn changes(repository: &gix::Repository, state: &StateRefs) -> Result<Changes, RefError> {
    let mut here = list(repository, "refs/heads/")?;
    here.append(&mut list(repository, "refs/tags/")?);
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
fn head(
    repository: &gix::Repository,
    state: &StateRefs,
) -> Result<Option<Target>, RepositoryError> {
    // A branch that is not there is no place for HEAD to point to: clones would be empty.
    let Some(name) =
        state.head.as_ref().filter(|name| state.refs.contains_key(name) && name.is_branch())
    else {
        return Ok(None);
    };
    let target = Target::Symbolic(full_name(name)?);
    let head = repository.refs.try_find("HEAD").map_err(RepositoryError::because(format_args!(
        "cannot read HEAD of {}",
        repository.path().display()
    )))?;
    Ok(head.is_none_or(|head| head.target != target).then_some(target))
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

fn full_name(name: &RefName) -> Result<FullName, RepositoryError> {
    FullName::try_from(name.as_str())
        .map_err(RepositoryError::because(format_args!("git does not take the ref name {name}")))
}
