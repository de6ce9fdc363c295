//! Where each node sends packets.
//!
//! Small worlds have a table of all pairs, which is fastest; large ones the runs of their routes.

use crate::graph::Step;
use crate::route::{Routes, Table};

/// Worlds of so many nodes have a table of all pairs, of at most 128 kB.
const SMALL: usize = 128;

/// Where a node sends a packet for some other node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHop {
    /// The packet is where it goes.
    Here,
    /// There is no way to it.
    Nowhere,
    Direction(u32),
    Port(u32),
    /// A radio, the station of the node itself, and that of its neighbour.
    Station([u16; 3]),
}

/// The next hops of all packets.
#[derive(Clone, Debug)]
pub(crate) enum NextHops {
    /// By `node * nodes + destination`.
    Pairs(usize, Vec<NextHop>),
    Runs(Table<NextHop>),
}

impl NextHops {
    /// In the words of the engine.
    pub(crate) fn new(routes: &Routes, nodes: usize, word: impl Fn(Step) -> NextHop) -> Self {
        let table = routes.table();
        let table = table.map(|step| step.map_or(NextHop::Nowhere, &word));
        if nodes > SMALL {
            return Self::Runs(table);
        }
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let pairs = pairs.map(|(from, to)| at(&table, from, to));
        Self::Pairs(nodes, pairs.collect())
    }

    /// Where a node sends a packet.
    #[inline(always)]
    pub(crate) fn at(&self, node: u16, to: u16) -> NextHop {
        match self {
            Self::Pairs(nodes, pairs) => pairs[usize::from(node) * nodes + usize::from(to)],
            Self::Runs(table) => at(table, node.into(), to.into()),
        }
    }
}

fn at(table: &Table<NextHop>, node: usize, to: usize) -> NextHop {
    if node == to {
        return NextHop::Here;
    }
    table.at(node, to).unwrap_or(NextHop::Nowhere)
}
