//! The graph of a world's nodes, links and radios, and shortest paths through it.
//!
//! A path is searched from both ends, level by level, so nodes far from both are never visited. Nodes with a single
//! neighbour are on no path between others and are left out.

use std::collections::{BTreeMap, VecDeque};

use crate::scenario::{LinkConfig, RadioHop, RadioRoutes, Ranks};

/// A hop of a packet from a node: over link `link`, "down" or "up".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// Index of the link in order of names.
    pub(crate) link: usize,
    /// From the first end to the second.
    pub(crate) down: bool,
    /// The node at the other end.
    pub(crate) to: usize,
}

/// How a packet leaves a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Over a link.
    Link(Hop),
    /// Over a radio channel.
    Radio(RadioHop),
}

impl Step {
    /// The node at its other end.
    pub(crate) const fn to(self) -> usize {
        match self {
            Self::Link(hop) => hop.to,
            Self::Radio(hop) => hop.node,
        }
    }

    /// The link, if the step uses one.
    pub(crate) const fn link(self) -> Option<Hop> {
        match self {
            Self::Link(hop) => Some(hop),
            Self::Radio(_) => None,
        }
    }

    /// The reverse step, which leads back to `node`.
    pub(crate) const fn back_to(self, node: usize) -> Self {
        match self {
            Self::Link(Hop { link, down, .. }) => Self::Link(Hop {
                link,
                down: !down,
                to: node,
            }),
            Self::Radio(RadioHop {
                radio, from, to, ..
            }) => Self::Radio(RadioHop {
                radio,
                from: to,
                to: from,
                node,
            }),
        }
    }
}

/// The nodes and their connections at some time.
#[derive(Debug)]
pub(crate) struct Graph {
    /// By node: links in order of their names, then the neighbours that radios reach.
    hops: Vec<Vec<Step>>,
    /// Which of the hops lead to nodes with several neighbours.
    through: Vec<Vec<u32>>,
    /// Component number: nodes with the same number are connected, others are not.
    island: Vec<u32>,
    /// From a node, to a node: the next hop prescribed by the file.
    fixed: BTreeMap<(usize, usize), Step>,
}

impl Graph {
    /// Uses the links in `present`, by index, and radios. Links with unknown ends are ignored: validation reports
    /// them.
    pub(crate) fn new<'a>(
        nodes: &Ranks<'_>,
        links: impl IntoIterator<Item = &'a LinkConfig>,
        radios: &RadioRoutes,
        present: impl Fn(usize) -> bool,
    ) -> Self {
        let mut hops: Vec<Vec<Step>> = vec![vec![]; nodes.len()];
        let links = links.into_iter().enumerate();
        for (link, config) in links.filter(|(link, _)| present(*link)) {
            let [a, b] = &config.ends;
            if let (Some(a), Some(b)) = (nodes.at(a), nodes.at(b)) {
                for (from, to, down) in [(a, b, true), (b, a, false)] {
                    hops[from].push(Step::Link(Hop { link, down, to }));
                }
            }
        }
        for (from, hop) in &radios.hops {
            hops[*from].push(Step::Radio(*hop));
        }
        let fixed = radios.fixed.iter();
        let fixed = fixed.map(|(from, to, hop)| ((*from, *to), Step::Radio(*hop)));
        let leaf = |node: usize| {
            let mut to = hops[node].iter().map(|step| step.to());
            let first = to.next();
            to.all(|to| Some(to) == first)
        };
        let leaves: Vec<bool> = (0..hops.len()).map(leaf).collect();
        let through = |steps: &Vec<Step>| {
            let steps = (0..).zip(steps);
            let steps = steps.filter(|(_, step)| !leaves[step.to()]);
            steps.map(|(i, _)| i).collect()
        };
        Self {
            through: hops.iter().map(through).collect(),
            island: islands(&hops),
            fixed: fixed.collect(),
            hops,
        }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.hops.len()
    }

    /// The next hop prescribed by the file.
    pub(crate) fn fixed(&self, from: usize, to: usize) -> Option<Step> {
        self.fixed.get(&(from, to)).copied()
    }

    /// The first hop of a node that has only one neighbour.
    fn only_hop(&self, node: usize) -> Option<Step> {
        let first = *self.hops[node].first()?;
        // The neighbour of a leaf, if it is not a leaf itself, is an inner node.
        let mut to = self.hops[node].iter().map(|step| step.to());
        to.all(|to| to == first.to()).then_some(first)
    }

    /// Hops to nodes with several neighbours.
    fn inner(&self, node: usize) -> impl Iterator<Item = Step> {
        let hops = &self.hops[node];
        self.through[node].iter().map(|i| hops[*i as usize])
    }
}

fn islands(hops: &[Vec<Step>]) -> Vec<u32> {
    let mut island = vec![u32::MAX; hops.len()];
    let mut open = VecDeque::new();
    for first in 0..hops.len() {
        if island[first] != u32::MAX {
            continue;
        }
        island[first] = first as u32;
        open.push_back(first);
        while let Some(node) = open.pop_front() {
            for step in &hops[node] {
                if island[step.to()] == u32::MAX {
                    island[step.to()] = first as u32;
                    open.push_back(step.to());
                }
            }
        }
    }
    island
}

/// State of a search, whose memory is reused from one to the next.
#[derive(Debug)]
pub(crate) struct Search {
    round: u32,
    /// By end and node: the round in which it was reached from that end, and its distance.
    reached: [Vec<(u32, u32)>; 2],
    /// By node: the last round in which it was on a shortest path.
    on_way: Vec<u32>,
}

impl Search {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            round: 0,
            reached: [vec![(0, 0); nodes], vec![(0, 0); nodes]],
            on_way: vec![0; nodes],
        }
    }

    /// The steps of a path with the fewest hops; of equal paths, the one whose hops come first at their nodes. Empty
    /// if there is no path.
    pub(crate) fn way(&mut self, graph: &Graph, from: usize, to: usize) -> Vec<Step> {
        let mut way = vec![];
        if from == to || graph.island[from] != graph.island[to] {
            return way;
        }
        let mut node = from;
        if let Some(first) = graph.only_hop(from) {
            way.push(first);
            node = first.to();
        }
        if node == to {
            return way;
        }
        let last = graph.only_hop(to);
        let end = last.map_or(to, Step::to);
        if node != end {
            self.between(graph, node, end, &mut way);
        }
        // Parallel connections between two nodes are in the same order at both.
        way.extend(last.map(|last| last.back_to(to)));
        way
    }

    /// The steps between two nodes that are connected and have several neighbours each.
    fn between(&mut self, graph: &Graph, from: usize, to: usize, way: &mut Vec<Step>) {
        self.round += 1;
        let round = self.round;
        let mut levels = [vec![vec![from]], vec![vec![to]]];
        self.reached[0][from] = (round, 0);
        self.reached[1][to] = (round, 0);
        let mut cost = [from, to].map(|end| graph.through[end].len());
        // The end with the smaller frontier advances, until both have reached a common node.
        let met = loop {
            let side = usize::from(cost[1] < cost[0]);
            let distance = levels[side].len() as u32;
            let (mut level, mut met) = (vec![], vec![]);
            for node in &levels[side][levels[side].len() - 1] {
                for step in graph.inner(*node) {
                    let to = step.to();
                    if self.reached[side][to].0 == round {
                        continue;
                    }
                    self.reached[side][to] = (round, distance);
                    level.push(to);
                    if self.reached[1 - side][to].0 == round {
                        met.push(to);
                    }
                }
            }
            cost[side] = level.iter().map(|node| graph.through[*node].len()).sum();
            let over = level.is_empty();
            levels[side].push(level);
            if over || !met.is_empty() {
                break met;
            }
        };
        let Some(half) = met.first().map(|node| self.reached[0][*node].1) else {
            debug_assert!(
                false,
                "nodes of one island are joined by nodes with several neighbours"
            );
            return;
        };
        for node in met {
            self.on_way[node] = round;
        }
        for distance in (0..half).rev() {
            for node in &levels[0][distance as usize] {
                let mut steps = graph.inner(*node);
                if steps.any(|step| self.goes_on(step.to(), distance + 1)) {
                    self.on_way[*node] = round;
                }
            }
        }
        let mut node = from;
        for distance in 1..=half {
            let step = graph
                .inner(node)
                .find(|step| self.goes_on(step.to(), distance));
            let Some(step) = step else { return };
            way.push(step);
            node = step.to();
        }
        while let left @ 1.. = self.reached[1][node].1 {
            let nearer = (round, left - 1);
            let step = graph
                .inner(node)
                .find(|step| self.reached[1][step.to()] == nearer);
            let Some(step) = step else { return };
            way.push(step);
            node = step.to();
        }
    }

    /// Whether a node is on a shortest path, at this distance from its start.
    fn goes_on(&self, node: usize, distance: u32) -> bool {
        self.on_way[node] == self.round && self.reached[0][node] == (self.round, distance)
    }
}
