//! Whether an object is here with all it reaches, by looking at all of it.

use std::collections::HashMap;

use gix::{
    ObjectId,
    objs::{CommitRefIter, FindExt as _, Kind, TagRefIter, TreeRefIter},
};

/// Beyond these an answer would cost too much memory: what is behind them counts as not here.
const MAX_OBJECTS: usize = 8_000_000;
const MAX_STEPS: usize = 8_000_000;
const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Looks at history, and remembers what it saw: each object is read once, whatever number of tips is asked for.
///
/// It trusts nothing but the objects: where history was cut (`shallow`), it ends, and is not whole.
pub(crate) struct Closure<'a> {
    repository: &'a gix::Repository,
    /// Commits, trees and tags that were seen. An object that is neither whole nor broken is on the way.
    seen: HashMap<ObjectId, Seen>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    OnTheWay,
    Whole,
    Broken,
}

enum Step {
    Enter(ObjectId, Expect),
    Leave(ObjectId),
}

#[derive(Clone, Copy)]
enum Expect {
    Any,
    Blob,
}

impl<'a> Closure<'a> {
    pub(crate) fn new(repository: &'a gix::Repository) -> Self {
        Self { repository, seen: HashMap::new(), buffer: Vec::new() }
    }

    /// Whether `tip` and all that it reaches is here.
    pub(crate) fn is_whole(&mut self, tip: ObjectId) -> bool {
        let mut steps = vec![Step::Enter(tip, Expect::Any)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Leave(id) => {
                    self.seen.insert(id, Seen::Whole);
                }
                Step::Enter(id, expect) => {
                    if !self.enter(id, expect, &mut steps) {
                        self.give_up(&steps);
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Looks at one object and plans the steps to what it names. False if it is not here in full.
    fn enter(&mut self, id: ObjectId, expect: Expect, steps: &mut Vec<Step>) -> bool {
        if matches!(expect, Expect::Blob) {
            return self.repository.has_object(id);
        }
        match self.seen.get(&id) {
            Some(Seen::Whole) => return true,
            Some(Seen::Broken) => return false,
            // A loop cannot be made of hashes. It would end here all the same.
            Some(Seen::OnTheWay) => return true,
            None => {}
        }
        let Ok(Some(header)) = self.repository.try_find_header(id) else { return false };
        if header.kind() == Kind::Blob {
            return true;
        }
        if self.seen.len() >= MAX_OBJECTS
            || steps.len() >= MAX_STEPS
            || header.size() > MAX_OBJECT_BYTES
        {
            return false;
        }
        self.seen.insert(id, Seen::OnTheWay);
        steps.push(Step::Leave(id));
        self.plan_children(id, steps).is_some()
    }

    fn plan_children(&mut self, id: ObjectId, steps: &mut Vec<Step>) -> Option<()> {
        let object = self.repository.objects.find(&id, &mut self.buffer).ok()?;
        let hash = object.object_hash;
        match object.kind {
            Kind::Blob => {}
            Kind::Commit => {
                let mut commit = CommitRefIter::from_bytes(object.data, hash);
                let tree = commit.tree_id().ok()?;
                let parents = CommitRefIter::from_bytes(object.data, hash).parent_ids();
                steps.extend(parents.map(|parent| Step::Enter(parent, Expect::Any)));
                // The last step is the next one: the tree is done with before history goes on.
                steps.push(Step::Enter(tree, Expect::Any));
            }
            Kind::Tree => {
                for entry in TreeRefIter::from_bytes(object.data, hash) {
                    let entry = entry.ok()?;
                    // A submodule's commit belongs to another repository.
                    if entry.mode.is_commit() {
                        continue;
                    }
                    let expect = if entry.mode.is_tree() { Expect::Any } else { Expect::Blob };
                    steps.push(Step::Enter(entry.oid.to_owned(), expect));
                }
            }
            Kind::Tag => {
                let target = TagRefIter::from_bytes(object.data, hash).target_id().ok()?;
                steps.push(Step::Enter(target, Expect::Any));
            }
        }
        Some(())
    }

    /// What has been entered and not left reaches the object that is not here.
    fn give_up(&mut self, steps: &[Step]) {
        for step in steps {
            if let Step::Leave(id) = step {
                self.seen.insert(*id, Seen::Broken);
            }
        }
    }
}
