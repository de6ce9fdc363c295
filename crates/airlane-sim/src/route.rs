//! Next hops along shortest paths, computed once: base stations are plain routers.

use std::collections::{BTreeMap, VecDeque};

use crate::scenario::{LinkConfig, RadioHop, RadioRoutes};

/// Which way a packet leaves a node: link `link`, "down" or "up".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// Index of the link in order of names.
    pub(crate) link: usize,
    /// From the first end to the second.
    pub(crate) down: bool,
    /// The node at the other end.
    pub(crate) to: usize,
}

/// How a packet goes on from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Over a link.
    Link(Hop),
    /// Through the air of a radio.
    Radio(RadioHop),
}

impl Step {
    /// The node at its other end.
    const fn to(self) -> usize {
        match self {
            Self::Link(hop) => hop.to,
            Self::Radio(hop) => hop.node,
        }
    }

    /// The link, if it is one.
    pub(crate) const fn link(self) -> Option<Hop> {
        match self {
            Self::Link(hop) => Some(hop),
            Self::Radio(_) => None,
        }
    }
}

/// Next hops between all pairs of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    nodes: usize,
    next: Vec<Option<Step>>,
}

impl Routes {
    /// Fewest hops over links that are `present`, by index; among equals the link whose name comes
    /// first, and links before radios, unless a radio says otherwise. Links with unknown ends are ignored: validation reports them.
    pub(crate) fn among<V>(
        nodes: &BTreeMap<String, V>,
        links: &BTreeMap<String, LinkConfig>,
        radios: &RadioRoutes,
        present: impl Fn(usize) -> bool,
    ) -> Self {
        let index = |name: &str| nodes.keys().position(|n| n == name);
        let mut hops: Vec<Vec<Step>> = vec![vec![]; nodes.len()];
        for (link, config) in links
            .values()
            .enumerate()
            .filter(|(link, _)| present(*link))
        {
            let [a, b] = &config.ends;
            if let (Some(a), Some(b)) = (index(a), index(b)) {
                hops[a].push(Step::Link(Hop {
                    link,
                    down: true,
                    to: b,
                }));
                hops[b].push(Step::Link(Hop {
                    link,
                    down: false,
                    to: a,
                }));
            }
        }
        for (from, hop) in &radios.hops {
            hops[*from].push(Step::Radio(*hop));
        }
        let n = nodes.len();
        let mut next = vec![None; n * n];
        for to in 0..n {
            // Distances towards `to`; links are symmetric.
            let mut distance = vec![usize::MAX; n];
            distance[to] = 0;
            let mut queue = VecDeque::from([to]);
            while let Some(node) = queue.pop_front() {
                for hop in &hops[node] {
                    if distance[hop.to()] == usize::MAX {
                        distance[hop.to()] = distance[node] + 1;
                        queue.push_back(hop.to());
                    }
                }
            }
            for from in 0..n {
                if from != to && distance[from] != usize::MAX {
                    next[from * n + to] = hops[from]
                        .iter()
                        .copied()
                        .find(|hop| distance[hop.to()] + 1 == distance[from]);
                }
            }
        }
        for (from, to, hop) in &radios.fixed {
            next[from * n + to] = Some(Step::Radio(*hop));
        }
        Self { nodes: n, next }
    }

    /// The next hop, if `to` can be reached from `from` and is not `from`.
    pub(crate) fn next(&self, from: usize, to: usize) -> Option<Step> {
        self.next[from * self.nodes + to]
    }

    /// All hops from `from` to `to`; empty if there is no path.
    pub(crate) fn path(&self, from: usize, to: usize) -> Vec<Step> {
        let mut path = vec![];
        let mut node = from;
        while let Some(hop) = self.next(node, to)
            && path.len() < self.nodes
        {
            path.push(hop);
            node = hop.to();
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(a: &str, b: &str) -> LinkConfig {
        toml::from_str(&format!(
            "ends = [\"{a}\", \"{b}\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\""
        ))
        .unwrap()
    }

    fn routes(nodes: &[&str], links: &[(&str, &str, &str)]) -> Routes {
        let nodes = nodes.iter().map(|n| ((*n).to_owned(), ())).collect();
        let links = links
            .iter()
            .map(|(name, a, b)| ((*name).to_owned(), link(a, b)))
            .collect();
        Routes::among(&nodes, &links, &RadioRoutes::default(), |_| true)
    }

    #[test]
    fn the_shortest_path_is_taken_in_both_directions() {
        // a - b - c - d, and a shortcut a - d.
        let r = routes(
            &["a", "b", "c", "d"],
            &[
                ("1", "a", "b"),
                ("2", "b", "c"),
                ("3", "c", "d"),
                ("4", "d", "a"),
            ],
        );
        let links = |from, to| {
            let path = r.path(from, to);
            path.iter()
                .map(|step| step.link().unwrap().link)
                .collect::<Vec<_>>()
        };
        assert_eq!(links(0, 3), [3]);
        assert_eq!(links(3, 0), [3]);
        assert_eq!(links(0, 2), [0, 1]);
        let down = |from, to| r.path(from, to)[0].link().unwrap().down;
        assert!(!down(0, 3));
        assert!(down(3, 0));
        assert_eq!(r.next(1, 1), None);
    }

    #[test]
    fn what_is_not_joined_has_no_path() {
        let r = routes(&["a", "b", "c"], &[("1", "a", "b")]);
        assert!(r.path(0, 2).is_empty());
        assert_eq!(r.path(0, 1).len(), 1);
    }
}
