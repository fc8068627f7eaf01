//! How the refs of a repository move: branches and tags by one rename of `packed-refs`.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use gix::{
    ObjectId,
    lock::acquire::Fail,
    refs::{
        FullName, Target,
        file::transaction::PackedRefs,
        transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog},
    },
};

use super::packed_refs;

/// How long the locks of other programs on refs are waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// What becomes of each ref that changes: another value, or nothing.
pub(super) type Changes = BTreeMap<FullName, Option<ObjectId>>;

/// Moves the refs of one repository, which is locked.
pub(super) struct RefMoves<'a> {
    pub(super) repository: &'a gix::Repository,
    pub(super) path: &'a Path,
}

impl RefMoves<'_> {
    /// Moves all of `changes` by one rename of `packed-refs`.
    pub(super) fn move_packed(&self, changes: &Changes) -> Result<(), gix::Error> {
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

    /// Sets one ref that has, or gets, a file of its own.
    pub(super) fn set(&self, name: &FullName, target: &Target) -> Result<(), gix::Error> {
        let path = self.path.join(gix::path::from_bstr(name.as_bstr())?);
        packed_refs::write_file(&path, target, patience())
    }

    /// Removes one ref.
    pub(super) fn remove(&self, name: FullName) -> Result<(), gix::Error> {
        self.commit(vec![delete(name)], PackedRefs::DeletionsOnly)
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

fn patience() -> Fail {
    Fail::AfterDurationWithBackoff(LOCK_PATIENCE)
}
