use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Index, IndexMut},
    sync::Arc,
};

use crate::{Endpoint, keys::KeyId};

/// A place in the rotation of keys; lower ones are served first.
pub(crate) type Turn = u64;
/// A lane's slot. Slots are used again once nobody waits in their lane.
pub(crate) type LaneId = u32;

/// Those who wait for the same endpoints, so that a pause shuts a lane and touches no waiter.
#[derive(Debug)]
pub(crate) struct Lane {
    endpoints: Arc<[Endpoint]>,
    waiters: u32,
    /// The keys that are free and have somebody willing here.
    pub(crate) order: BTreeSet<(Turn, KeyId)>,
}

/// The lanes of one domain: mostly one.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    slots: Vec<Option<Lane>>,
    free: Vec<LaneId>,
    ids: BTreeMap<Arc<[Endpoint]>, LaneId>,
}

impl Lane {
    pub(crate) fn endpoints(&self) -> &Arc<[Endpoint]> {
        &self.endpoints
    }
}

impl Lanes {
    /// One more waits for these endpoints.
    pub(crate) fn enter(&mut self, endpoints: &[Endpoint]) -> LaneId {
        let id = match self.ids.get(endpoints) {
            Some(&id) => id,
            None => self.open(Arc::from(endpoints)),
        };
        self[id].waiters += 1;
        id
    }

    /// One less waits there.
    pub(crate) fn leave(&mut self, id: LaneId) {
        self[id].waiters -= 1;
        if self[id].waiters == 0
            && let Some(lane) = self.slots[id as usize].take()
        {
            self.ids.remove(&lane.endpoints);
            self.free.push(id);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.slots.iter().flatten()
    }

    fn open(&mut self, endpoints: Arc<[Endpoint]>) -> LaneId {
        let lane = Lane { endpoints: endpoints.clone(), waiters: 0, order: BTreeSet::new() };
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("memory ends before four billion lanes")
        });
        self.slots[id as usize] = Some(lane);
        self.ids.insert(endpoints, id);
        id
    }
}

impl Index<LaneId> for Lanes {
    type Output = Lane;

    fn index(&self, id: LaneId) -> &Lane {
        self.slots[id as usize].as_ref().expect("a lane lives as long as somebody waits in it")
    }
}

impl IndexMut<LaneId> for Lanes {
    fn index_mut(&mut self, id: LaneId) -> &mut Lane {
        self.slots[id as usize].as_mut().expect("a lane lives as long as somebody waits in it")
    }
}
