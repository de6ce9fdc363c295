//! Next hops along shortest paths, computed once: base stations are plain routers.
//!
//! A world has far more pairs of nodes than flows. So next hops are computed only for the destinations of flows, and
//! only where their packets can be: memory grows with the paths of the flows, and each path is searched from both
//! ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::graph::{Graph, Hop, Search, Step};

/// A value for each destination at each node, in runs of destinations with the same value.
///
/// Valid at the nodes and for the destinations that were added; for all others the result is arbitrary.
#[derive(Clone, Debug)]
pub(crate) struct Table<H>(Vec<Vec<(u16, H)>>);

impl<H: Copy + PartialEq> Table<H> {
    fn new(nodes: usize) -> Self {
        Self(vec![vec![]; nodes])
    }

    /// Adds a destination, which must be greater than those added before.
    fn push(&mut self, node: usize, to: usize, what: H) {
        let runs = &mut self.0[node];
        if runs.last().is_none_or(|(_, last)| *last != what) {
            runs.push((to as u16, what));
        }
    }

    /// The value of a destination.
    pub(crate) fn at(&self, node: usize, to: usize) -> Option<H> {
        let runs = &self.0[node];
        let above = runs.partition_point(|(first, _)| usize::from(*first) <= to);
        Some(runs[above.checked_sub(1)?].1)
    }

    /// Translates the values.
    pub(crate) fn map<T: Copy + PartialEq>(&self, word: impl Fn(H) -> T) -> Table<T> {
        let runs =
            |runs: &Vec<(u16, H)>| runs.iter().map(|(to, what)| (*to, word(*what))).collect();
        Table(self.0.iter().map(runs).collect())
    }
}

/// The paths that are needed: between the ends of flows, and from where packets continue when a node leaves its link.
#[derive(Debug)]
pub(crate) struct Ways {
    /// The ends of each flow; none if one of them does not exist.
    pub(crate) flows: Arc<[Option<[usize; 2]>]>,
    /// Ends of connections other than those of the flow itself, as with a relay.
    pub(crate) legs: Vec<[usize; 2]>,
    /// By link and direction: nodes that take over the link's packets when a node has left it.
    pub(crate) heirs: BTreeMap<(usize, bool), Vec<usize>>,
}

impl Ways {
    /// Where packets start, by destination.
    fn origins(&self) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut origins: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for [a, b] in self.flows.iter().flatten().chain(&self.legs) {
            for (from, to) in [(a, b), (b, a)] {
                origins.entry(*to).or_default().insert(*from);
            }
        }
        origins
    }
}

/// Next hops on the paths of flows.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    flows: Arc<[Option<[usize; 2]>]>,
    next: Table<Option<Step>>,
}

impl Routes {
    /// Shortest paths in each of these graphs; packets may be in flight from one graph to the next. Of equal paths,
    /// the one whose hops come first at their nodes, unless a radio prescribes a next hop.
    pub(crate) fn through(graphs: &[Graph], ways: &Ways) -> Vec<Self> {
        let nodes = graphs.first().map_or(0, Graph::nodes);
        let mut search = Search::new(nodes);
        let mut tables = vec![Table::new(nodes); graphs.len()];
        // By graph and node: the last destination whose next hop is known there, counted from 1.
        let mut known = vec![vec![0_u32; nodes]; graphs.len()];
        for (round, (to, origins)) in (1..).zip(ways.origins()) {
            let mut open: Vec<usize> = origins.into_iter().collect();
            while let Some(node) = open.pop() {
                for (graph, (table, known)) in graphs.iter().zip(tables.iter_mut().zip(&mut known))
                {
                    let mut at = node;
                    while at != to && known[at] != round {
                        let steps = match graph.fixed(at, to) {
                            Some(step) => vec![step],
                            None => search.way(graph, at, to),
                        };
                        if steps.is_empty() {
                            known[at] = round;
                            table.push(at, to, None);
                        }
                        for (i, step) in steps.into_iter().enumerate() {
                            if known[at] == round || (i > 0 && graph.fixed(at, to).is_some()) {
                                break;
                            }
                            known[at] = round;
                            table.push(at, to, Some(step));
                            at = step.to();
                            // Packets in flight when routes change continue from where they are.
                            if graphs.len() > 1 {
                                open.push(at);
                                let heirs = step
                                    .link()
                                    .and_then(|hop| ways.heirs.get(&(hop.link, hop.down)));
                                open.extend(heirs.into_iter().flatten());
                            }
                        }
                    }
                }
            }
        }
        let routes = |next| Self {
            flows: Arc::clone(&ways.flows),
            next,
        };
        tables.into_iter().map(routes).collect()
    }

    /// The next hops at each node, for destinations of packets that can be there.
    pub(crate) fn table(&self) -> &Table<Option<Step>> {
        &self.next
    }

    /// The first hop of a flow's main direction, if it has a path.
    pub(crate) fn first(&self, flow: usize) -> Option<Step> {
        let [from, to] = self.flows[flow]?;
        self.next(from, to)
    }

    /// All hops of a flow's main direction; empty if it has no path.
    pub(crate) fn way(&self, flow: usize) -> Vec<Step> {
        let mut way = vec![];
        let Some([mut node, to]) = self.flows[flow] else {
            return way;
        };
        while let Some(step) = self.next(node, to)
            && way.len() < self.next.0.len()
        {
            way.push(step);
            node = step.to();
        }
        way
    }

    /// The links on the path of a flow's main direction.
    pub(crate) fn links(&self, flow: usize) -> impl Iterator<Item = Hop> + use<> {
        self.way(flow).into_iter().filter_map(Step::link)
    }

    fn next(&self, from: usize, to: usize) -> Option<Step> {
        if from == to {
            return None;
        }
        self.next.at(from, to).flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenario::{LinkConfig, RadioRoutes, Ranks};

    fn graph(nodes: usize, links: &[[usize; 2]], radios: &RadioRoutes) -> Graph {
        let names: Vec<String> = (0..nodes).map(|node| format!("{node:04}")).collect();
        let usual = "ends = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"";
        let usual: LinkConfig = toml::from_str(usual).unwrap();
        let links: Vec<_> = links
            .iter()
            .map(|ends| LinkConfig {
                ends: ends.map(|end| names[end].clone()),
                ..usual.clone()
            })
            .collect();
        Graph::new(&Ranks::of(&names), &links, radios, |_| true)
    }

    fn routes(nodes: usize, links: &[[usize; 2]], flows: &[[usize; 2]]) -> Routes {
        let graph = graph(nodes, links, &RadioRoutes::default());
        let ways = Ways {
            flows: flows.iter().map(|ends| Some(*ends)).collect(),
            legs: vec![],
            heirs: BTreeMap::new(),
        };
        Routes::through(&[graph], &ways).remove(0)
    }

    #[test]
    fn the_shortest_path_is_taken_in_both_directions() {
        // 0 - 1 - 2 - 3, and a shortcut 0 - 3.
        let links = [[0, 1], [1, 2], [2, 3], [3, 0]];
        let r = routes(4, &links, &[[0, 3], [3, 0], [0, 2], [1, 1]]);
        let links = |flow| r.links(flow).map(|hop| hop.link).collect::<Vec<_>>();
        assert_eq!(links(0), [3]);
        assert_eq!(links(1), [3]);
        assert_eq!(links(2), [0, 1]);
        let down = |flow| r.first(flow).unwrap().link().unwrap().down;
        assert!(!down(0));
        assert!(down(1));
        assert_eq!(r.first(3), None);
    }

    #[test]
    fn unconnected_nodes_have_no_path() {
        let r = routes(3, &[[0, 1]], &[[0, 2], [0, 1]]);
        assert!(r.way(0).is_empty());
        assert_eq!(r.way(1).len(), 1);
    }

    /// The definition of next hops: distances from every node, and the first hop that is closer.
    fn defined(links: &[[usize; 2]], nodes: usize, from: usize, to: usize) -> Vec<(usize, bool)> {
        let hops = |node: usize| {
            links.iter().enumerate().flat_map(move |(link, [a, b])| {
                let down = (*a == node).then_some((link, true, *b));
                down.into_iter()
                    .chain((*b == node).then_some((link, false, *a)))
            })
        };
        let mut distance = vec![usize::MAX; nodes];
        distance[to] = 0;
        for _ in 0..nodes {
            for node in 0..nodes {
                for (_, _, next) in hops(node) {
                    distance[node] = distance[node].min(distance[next].saturating_add(1));
                }
            }
        }
        let (mut way, mut node) = (vec![], from);
        if distance[from] == usize::MAX {
            return way;
        }
        while node != to {
            let mut hops = hops(node);
            let (link, down, next) = hops
                .find(|(_, _, next)| distance[*next] + 1 == distance[node])
                .unwrap();
            way.push((link, down));
            node = next;
        }
        way
    }

    proptest! {
        #[test]
        fn routes_equal_a_search_from_every_node(
            nodes in 2_usize..14,
            ends in prop::collection::vec((0_usize..14, 0_usize..14), 0..24),
            flows in prop::collection::vec((0_usize..14, 0_usize..14), 1..8),
        ) {
            let within = |pairs: Vec<(usize, usize)>| -> Vec<[usize; 2]> {
                let pairs = pairs.into_iter().map(|(a, b)| [a % nodes, b % nodes]);
                pairs.filter(|[a, b]| a != b).collect()
            };
            let (links, flows) = (within(ends), within(flows));
            let routes = routes(nodes, &links, &flows);
            for (flow, [from, to]) in flows.iter().enumerate() {
                let got: Vec<_> = routes.links(flow).map(|hop| (hop.link, hop.down)).collect();
                prop_assert_eq!(got, defined(&links, nodes, *from, *to));
            }
        }
    }
}
