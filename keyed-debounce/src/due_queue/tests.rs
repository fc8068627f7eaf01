use std::{cell::Cell, collections::BTreeMap, time::Duration};

use proptest::{collection::vec, prelude::*};

use super::*;

/// The keys that wait, each with its position and where the queue says that it is.
#[derive(Default)]
struct Keys {
    keys: Vec<(Position, Place)>,
    /// How many records were looked at.
    looks: Cell<usize>,
}

impl Records for Keys {
    fn position(&self, slot: Slot) -> Position {
        self.looks.set(self.looks.get() + 1);
        self.keys[slot as usize].0
    }

    fn place(&self, slot: Slot) -> Place {
        self.keys[slot as usize].1
    }

    fn set_place(&mut self, slot: Slot, place: Place) {
        self.keys[slot as usize].1 = place;
    }
}

/// The queue beside a map that is always sorted.
struct Pair {
    queue: DueQueue,
    keys: Keys,
    model: BTreeMap<Position, Slot>,
}

/// Something that happens to many keys.
#[derive(Clone, Debug)]
enum Burst {
    /// New keys, the first of which is due at `due` and each other `step` after the one before.
    Add { count: u32, due: u64, step: u64 },
    /// Each `stride`-th key that waits is put off, the last first if `backwards`.
    PutOff { stride: usize, by: u64, backwards: bool },
    /// Each `stride`-th key is due at `due` now.
    Move { stride: usize, due: u64 },
    /// Each `stride`-th key is taken out.
    Remove { stride: usize },
    /// So many keys leave.
    Pop { count: usize },
}

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let due = || prop_oneof![2 => Just(500_u64), 2 => 0..1000_u64, 1 => any::<u64>()];
    let by = prop_oneof![Just(0), 0..100_u64, 0..10_000_u64, Just(u64::MAX)];
    let step = prop_oneof![Just(0), Just(1), 0..50_u64, Just(u64::MAX / 300)];
    let stride = || prop_oneof![Just(1), 1..40_usize];
    vec(
        prop_oneof![
            4 => (1..400_u32, due(), step).prop_map(|(count, due, step)| Burst::Add { count, due, step }),
            3 => (stride(), by, any::<bool>())
                .prop_map(|(stride, by, backwards)| Burst::PutOff { stride, by, backwards }),
            2 => (stride(), due()).prop_map(|(stride, due)| Burst::Move { stride, due }),
            1 => stride().prop_map(|stride| Burst::Remove { stride }),
            2 => (1..300_usize).prop_map(|count| Burst::Pop { count }),
        ],
        0..24,
    )
}

fn at(due: u64) -> Timestamp {
    Timestamp::from_origin(Duration::from_nanos(due))
}

impl Pair {
    fn new() -> Self {
        Self { queue: DueQueue::new(), keys: Keys::default(), model: BTreeMap::new() }
    }

    fn burst(&mut self, burst: &Burst) {
        match *burst {
            Burst::Add { count, due, step } => {
                for number in 0..u64::from(count) {
                    self.add(at(due.saturating_add(step.saturating_mul(number))));
                }
            }
            Burst::PutOff { stride, by, backwards } => {
                let mut keys = self.each(stride);
                if backwards {
                    keys.reverse();
                }
                for (was, slot) in keys {
                    let due = was.due.saturating_add(Duration::from_nanos(by));
                    self.move_to(slot, Position { due, ..was });
                }
            }
            Burst::Move { stride, due } => {
                for (was, slot) in self.each(stride) {
                    self.move_to(slot, Position { due: at(due), ..was });
                }
            }
            Burst::Remove { stride } => {
                for (was, slot) in self.each(stride) {
                    assert!(self.step(|queue, keys| queue.remove(slot, keys)));
                    self.model.remove(&was);
                    self.compare();
                    assert!(!self.queue.remove(slot, &mut self.keys), "once is enough");
                }
            }
            Burst::Pop { count } => (0..count).for_each(|_| self.pop()),
        }
    }

    fn each(&self, stride: usize) -> Vec<(Position, Slot)> {
        self.model.iter().step_by(stride).map(|(&position, &slot)| (position, slot)).collect()
    }

    fn add(&mut self, due: Timestamp) {
        let slot = u32::try_from(self.keys.keys.len()).unwrap();
        let position = Position { due, order: u64::from(slot) };
        self.keys.keys.push((position, Place::NOWHERE));
        self.model.insert(position, slot);
        self.step(|queue, keys| queue.insert(slot, keys));
        self.compare();
    }

    /// As the schedule does it: what may be put off where it is, is.
    fn move_to(&mut self, slot: Slot, position: Position) {
        let was = self.keys.keys[slot as usize].0;
        self.model.remove(&was);
        self.model.insert(position, slot);
        if position >= was && self.queue.may_be_put_off(slot, &self.keys) {
            self.keys.keys[slot as usize].0 = position;
            self.step(DueQueue::tidy);
        } else {
            self.step(|queue, keys| {
                queue.remove(slot, keys);
                keys.keys[slot as usize].0 = position;
                queue.insert(slot, keys);
            });
        }
        self.compare();
    }

    fn pop(&mut self) {
        let expected = self.model.pop_first();
        // Bounded: each try sorts out some of what was put off.
        for _ in 0..=self.keys.keys.len() {
            let popped = self.step(DueQueue::pop_first);
            if popped.is_some() || expected.is_none() {
                assert_eq!(popped, expected);
                self.compare();
                return;
            }
        }
        panic!("{expected:?} never leaves");
    }

    /// D18: one step looks at a bounded number of records, however many there are.
    fn step<R>(&mut self, step: impl FnOnce(&mut DueQueue, &mut Keys) -> R) -> R {
        self.keys.looks.set(0);
        let result = step(&mut self.queue, &mut self.keys);
        assert!(self.keys.looks.get() <= 4096, "{} looks", self.keys.looks.get());
        result
    }

    fn compare(&self) {
        let first = self.model.first_key_value().map(|(position, _)| position.due);
        assert_eq!(self.queue.is_empty(), first.is_none());
        match self.queue.next() {
            Some(Next::NotBefore(due)) => assert!(Some(due) <= first),
            Some(Next::Due(due)) => assert_eq!(Some(due), first),
            None => assert_eq!(first, None),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// D11, D14, D18: with thousands of keys that come, are put off, moved and taken out, they leave
    /// as a sorted map has them, and no step is long.
    #[test]
    fn it_does_what_a_sorted_map_does(bursts in bursts()) {
        let mut pair = Pair::new();
        for burst in &bursts {
            pair.burst(burst);
        }
        while !pair.model.is_empty() {
            pair.pop();
        }
        pair.pop();
        prop_assert!(pair.queue.is_empty());
    }
}

/// D13, D18: when all that waits was put off, the last first, no step looks at all of it; a few more
/// steps, and the next due is known again.
#[test]
fn many_keys_that_were_put_off_are_sorted_out_in_steps() {
    let mut pair = Pair::new();
    pair.burst(&Burst::Add { count: 20_000, due: 1_000_000, step: 1 });
    pair.burst(&Burst::PutOff { stride: 1, by: 1_000_000, backwards: true });
    let mut steps = 0;
    while !matches!(pair.queue.next(), Some(Next::Due(_))) {
        pair.step(DueQueue::tidy);
        steps += 1;
    }
    assert!((1..=20_000 / 128).contains(&steps), "{steps} steps");
    assert_eq!(pair.queue.next(), Some(Next::Due(at(2_000_000))));
}
