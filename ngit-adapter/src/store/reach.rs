//! What can be reached from each node of a graph, in one pass over its edges.

/// A set of places in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BitSet(Vec<u64>);

impl BitSet {
    /// An empty set for a list of this length.
    pub(super) fn new(length: usize) -> Self {
        Self(vec![0; length.div_ceil(64)])
    }

    fn add(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    /// The places, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let places = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        };
        self.0.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(places)
    }
}

/// For each node the nodes that can be reached from it, itself included.
///
/// Nodes that reach each other reach the same: they share one set, which is made from the sets of the
/// nodes behind them (Tarjan's algorithm, without recursion: a chain may be long).
#[derive(Debug)]
pub(super) struct Reach {
    group_of: Vec<usize>,
    sets: Vec<BitSet>,
}

impl Reach {
    /// From the edges of each node, as places in the list of nodes.
    pub(super) fn new(next: &[Vec<usize>]) -> Self {
        let mut search = Search {
            next,
            number: vec![UNSEEN; next.len()],
            low: vec![0; next.len()],
            open: Vec::new(),
            numbers: 0,
            reach: Self { group_of: vec![UNSEEN; next.len()], sets: Vec::new() },
        };
        for start in 0..next.len() {
            if search.number[start] == UNSEEN {
                search.run(start);
            }
        }
        search.reach
    }

    pub(super) fn from(&self, node: usize) -> &BitSet {
        &self.sets[self.group_of[node]]
    }
}

const UNSEEN: usize = usize::MAX;

struct Search<'a> {
    next: &'a [Vec<usize>],
    /// In which order nodes were seen.
    number: Vec<usize>,
    /// The lowest number that is known to be in the node's group.
    low: Vec<usize>,
    /// Nodes that were seen and have no group yet.
    open: Vec<usize>,
    numbers: usize,
    reach: Reach,
}

impl Search<'_> {
    fn run(&mut self, start: usize) {
        // Nodes on the way, each with the next edge to follow.
        let mut way = vec![(start, 0)];
        self.see(start);
        while let Some((node, edge)) = way.last_mut() {
            let node = *node;
            if let Some(&to) = self.next[node].get(*edge) {
                *edge += 1;
                if self.number[to] == UNSEEN {
                    self.see(to);
                    way.push((to, 0));
                } else if self.reach.group_of[to] == UNSEEN {
                    self.low[node] = self.low[node].min(self.number[to]);
                }
                continue;
            }
            way.pop();
            if let Some((before, _)) = way.last() {
                self.low[*before] = self.low[*before].min(self.low[node]);
            }
            if self.low[node] == self.number[node] {
                self.close(node);
            }
        }
    }

    fn see(&mut self, node: usize) {
        self.number[node] = self.numbers;
        self.low[node] = self.numbers;
        self.numbers += 1;
        self.open.push(node);
    }

    /// All nodes that were opened since `first` are one group, and what lies behind them has a set.
    fn close(&mut self, first: usize) {
        let at = self.open.iter().rposition(|node| *node == first).unwrap_or(0);
        let members = self.open.split_off(at);
        let group = self.reach.sets.len();
        let mut set = BitSet::new(self.next.len());
        for member in &members {
            self.reach.group_of[*member] = group;
            set.add(*member);
        }
        for to in members.iter().flat_map(|member| &self.next[*member]) {
            let behind = self.reach.group_of[*to];
            if behind != group {
                set.add_all(&self.reach.sets[behind]);
            }
        }
        self.reach.sets.push(set);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Walks from the node, as anyone would.
    fn walk(next: &[Vec<usize>], start: usize) -> Vec<usize> {
        let mut reached = vec![start];
        let mut at = 0;
        while at < reached.len() {
            for to in &next[reached[at]] {
                if !reached.contains(to) {
                    reached.push(*to);
                }
            }
            at += 1;
        }
        reached.sort_unstable();
        reached
    }

    proptest! {
        /// R4: chains, cycles and everything between.
        #[test]
        fn it_is_what_a_walk_from_each_node_finds(
            next in (1usize..20).prop_flat_map(|nodes| {
                prop::collection::vec(prop::collection::vec(0..nodes, 0..4), nodes)
            })
        ) {
            let reach = Reach::new(&next);
            for node in 0..next.len() {
                prop_assert_eq!(reach.from(node).iter().collect::<Vec<_>>(), walk(&next, node));
            }
        }
    }

    #[test]
    fn a_long_chain_and_a_long_ring_need_no_stack() {
        const LONG: usize = 3_000;
        let chain: Vec<_> =
            (0..LONG).map(|at| if at + 1 < LONG { vec![at + 1] } else { vec![] }).collect();
        assert_eq!(Reach::new(&chain).from(0).iter().count(), LONG);
        assert_eq!(Reach::new(&chain).from(LONG - 1).iter().count(), 1);
        let ring: Vec<_> = (0..LONG).map(|at| vec![(at + 1) % LONG]).collect();
        assert_eq!(Reach::new(&ring).from(LONG / 2).iter().count(), LONG);
    }
}
