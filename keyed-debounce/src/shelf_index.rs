use crate::{due_queue::Position, slab::Slot};

/// Where each shelf begins, in order: blocks of bounded length, and where each block begins.
///
/// A look-up touches fewer cache lines than one in a `BTreeSet`, and there is one for each request.
pub(crate) struct ShelfIndex {
    firsts: Vec<Begin>,
    /// None is empty.
    blocks: Vec<Vec<Begin>>,
}

/// Where a shelf begins, and its number.
pub(crate) type Begin = (Position, Slot);

const FULL: usize = 128;

impl ShelfIndex {
    pub(crate) const fn new() -> Self {
        Self { firsts: Vec::new(), blocks: Vec::new() }
    }

    pub(crate) fn first(&self) -> Option<Begin> {
        self.firsts.first().copied()
    }

    /// The last shelf that begins at `position` or before.
    pub(crate) fn at(&self, position: Position) -> Option<Begin> {
        let last = (position, Slot::MAX);
        let block = self.firsts.partition_point(|begin| *begin <= last).checked_sub(1)?;
        let block = &self.blocks[block];
        Some(block[block.partition_point(|begin| *begin <= last).checked_sub(1)?])
    }

    /// The shelf after this one.
    pub(crate) fn after(&self, begin: Begin) -> Option<Begin> {
        let block = self.block(begin);
        let here = self.blocks.get(block)?;
        let after = here.get(here.partition_point(|other| *other <= begin));
        after.or_else(|| self.firsts.get(block + 1)).copied()
    }

    pub(crate) fn insert(&mut self, begin: Begin) {
        if self.blocks.is_empty() {
            self.firsts.push(begin);
            self.blocks.push(vec![begin]);
            return;
        }
        let number = self.block(begin);
        let block = &mut self.blocks[number];
        block.insert(block.partition_point(|other| *other < begin), begin);
        self.firsts[number] = block[0];
        if block.len() > FULL {
            // What comes last most often stays last: what is left behind should be full.
            let is_last = number + 1 == self.firsts.len();
            let rest = block.split_off(if is_last { FULL } else { FULL / 2 });
            block.shrink_to_fit();
            self.firsts.insert(number + 1, rest[0]);
            self.blocks.insert(number + 1, rest);
        }
    }

    pub(crate) fn remove(&mut self, begin: Begin) {
        let number = self.block(begin);
        let Some(block) = self.blocks.get_mut(number) else { return };
        let Ok(at) = block.binary_search(&begin) else { return };
        block.remove(at);
        match block.first() {
            Some(&first) => self.firsts[number] = first,
            None => {
                self.firsts.remove(number);
                self.blocks.remove(number);
            }
        }
        if self.firsts.is_empty() {
            *self = Self::new();
        }
    }

    pub(crate) fn pop_first(&mut self) -> Option<Begin> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }

    /// The block in which this is, or would be.
    fn block(&self, begin: Begin) -> usize {
        self.firsts.partition_point(|other| *other <= begin).saturating_sub(1)
    }
}
