//! The next hop of each packet.
//!
//! Small worlds have a table of all pairs, which is fastest; large worlds use their routes' run-length tables.

use crate::graph::Step;
use crate::route::{Routes, Table};

/// Largest number of nodes for a table of all pairs, which is then at most 128 kB.
const SMALL: usize = 128;

/// Where a node sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHop {
    /// The packet is at its destination.
    Here,
    /// There is no route.
    Nowhere,
    Direction(u32),
    Port(u32),
    /// A radio, this node's station, and its neighbour's station.
    Station([u16; 3]),
    /// The live node at the near end of a direction.
    Live(u32),
}

/// The next hops of all nodes.
#[derive(Clone, Debug)]
pub(crate) struct NextHops {
    nodes: usize,
    /// By `node * nodes + destination`; empty in a large world.
    pairs: Vec<NextHop>,
    runs: Table<NextHop>,
}

impl NextHops {
    /// Translates routes into next hops.
    pub(crate) fn new(routes: &Routes, nodes: usize, word: impl Fn(Step) -> NextHop) -> Self {
        let table = routes.table();
        let runs = table.map(|step| step.map_or(NextHop::Nowhere, &word));
        let listed = if nodes > SMALL { 0 } else { nodes };
        let pairs = (0..listed).flat_map(|from| (0..listed).map(move |to| (from, to)));
        let pairs = pairs.map(|(from, to)| at(&runs, from, to)).collect();
        Self { nodes, pairs, runs }
    }

    /// Where a node sends a packet.
    #[inline(always)]
    pub(crate) fn at(&self, node: u16, to: u16) -> NextHop {
        let [node, to] = [node, to].map(usize::from);
        // A single bounds check also tells whether the table of pairs is in use.
        match self.pairs.get(node * self.nodes + to) {
            Some(hop) => *hop,
            None => at(&self.runs, node, to),
        }
    }
}

fn at(table: &Table<NextHop>, node: usize, to: usize) -> NextHop {
    if node == to {
        return NextHop::Here;
    }
    table.at(node, to).unwrap_or(NextHop::Nowhere)
}
