//! Nodes that move: they leave one link and join another, and routes follow (docs/spec/multi-service.md, section
//! 10.5).
//!
//! A link that a node joins later is absent before that. Nothing is routed over an absent link. When a node leaves,
//! everything on the link is lost: frames in flight, waiting packets, and the contents of its ports' services.
//! Between leaving and joining, packets for the node have no route. Circuits may hand over what they hold: then
//! packets wait in the old circuit until the new one is there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use airlane_base::config::{Problems, key};
use airlane_base::{Duration, Instant, Size};
use airlane_link::mobility::{Attachment, Change, Hint, Mobility};

use super::handoff::{HandoffConfig, HandoffKind};
use super::ranks::{Ranks, one_of};
use super::{LONGEST_RUN, LinkConfig, RelayConfig, Scenario};
use crate::graph::{Graph, Hop};
use crate::route::{Routes, Ways};

/// A period in which no node moves.
#[derive(Clone, Debug)]
pub(crate) struct Epoch {
    pub(crate) begin: Instant,
    /// By index of the link: whether it is present.
    pub(crate) present: Vec<bool>,
    pub(crate) routes: Routes,
}

/// All epochs, in order; at least one.
#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    all: Vec<Epoch>,
    /// The largest payload of a frame, by index of the link.
    frames: Vec<Option<Size>>,
}

impl Deref for Epochs {
    type Target = [Epoch];

    fn deref(&self) -> &[Epoch] {
        &self.all
    }
}

impl Epochs {
    /// Whether a flow has a path at any time, over links or radio channels.
    pub(crate) fn joins(&self, flow: usize) -> bool {
        self.iter().any(|epoch| epoch.routes.first(flow).is_some())
    }

    /// Links that a flow's main direction crosses at any time, in path order.
    pub(crate) fn hops(&self, flow: usize) -> impl Iterator<Item = Hop> {
        let mut known = BTreeSet::new();
        let hops = self.iter().flat_map(move |epoch| epoch.routes.links(flow));
        hops.filter(move |hop| known.insert(hop.link))
    }

    /// The links among them that limit the size of frames, with that limit.
    pub(crate) fn frames(&self, flow: usize) -> impl Iterator<Item = (usize, Size)> {
        self.hops(flow)
            .filter_map(|hop| Some((hop.link, self.frames[hop.link]?)))
    }

    /// The smallest frame limit on a flow's paths; none if no link states one.
    pub(crate) fn smallest_frame(&self, flow: usize) -> Option<Size> {
        self.frames(flow).map(|(_, frame)| frame).min()
    }
}

impl Scenario {
    /// When a link is absent, in order: from the first time of each pair to the second.
    pub(crate) fn absences(&self, link: &str) -> Vec<[Instant; 2]> {
        self.absences_since(link, HandoffConfig::leaves)
    }

    fn absences_since(
        &self,
        link: &str,
        since: impl Fn(&HandoffConfig) -> Instant,
    ) -> Vec<[Instant; 2]> {
        let mut absences = vec![];
        // It is absent at first if its first handoff is one to it.
        let first = self
            .handoffs
            .iter()
            .find(|h| h.from == link || h.to == link);
        let mut left = first
            .filter(|handoff| handoff.to == link)
            .map(|_| Instant::ORIGIN);
        for handoff in &self.handoffs {
            if handoff.from == link {
                left.get_or_insert(since(handoff));
            } else if handoff.to == link
                && let Some(left) = left.take()
            {
                absences.push([left, handoff.joins()]);
            }
        }
        absences.extend(left.map(|left| [left, Instant::FAR_FUTURE]));
        absences
    }

    /// The times between handoffs, with the routes of each; at least one.
    pub(crate) fn epochs(&self) -> Epochs {
        let nodes = Ranks::of(self.nodes.keys());
        let moved = self.handoffs.iter().flat_map(|h| [&h.from, &h.to]);
        let moved: BTreeSet<&String> = moved.collect();
        let routed = |link: &String| match moved.contains(link) {
            true => self.absences_since(link, HandoffConfig::routed_until),
            false => vec![],
        };
        let absences: Vec<_> = self.links.keys().map(routed).collect();
        let begins = self.epoch_begins();
        let radios = self.radio_routes(&nodes);
        let present = |begin: &Instant| -> Vec<bool> {
            let absent = |[left, back]: &[Instant; 2]| left <= begin && begin < back;
            let present = absences.iter().map(|windows| !windows.iter().any(absent));
            present.collect()
        };
        let present: Vec<_> = begins.iter().map(present).collect();
        let graph = |present: &Vec<bool>| {
            Graph::new(&nodes, self.links.values(), &radios, |link| present[link])
        };
        let graphs: Vec<Graph> = present.iter().map(graph).collect();
        let routes = Routes::through(&graphs, &self.ways(&nodes));
        let epochs = begins.into_iter().zip(present).zip(routes);
        let epochs = epochs.map(|((begin, present), routes)| Epoch {
            begin,
            present,
            routes,
        });
        Epochs {
            all: epochs.collect(),
            frames: self.payloads(),
        }
    }

    /// When the epochs begin, in order.
    pub(super) fn epoch_begins(&self) -> Vec<Instant> {
        let moves = self.handoffs.iter();
        let moves = moves.flat_map(|h| [h.routed_until(), h.joins()]);
        let mut begins: Vec<Instant> = std::iter::once(Instant::ORIGIN).chain(moves).collect();
        begins.sort_unstable();
        begins.dedup();
        begins
    }

    /// The paths that its flows need.
    fn ways(&self, nodes: &Ranks<'_>) -> Ways {
        let pair = |a: &str, b: &str| Some([nodes.at(a)?, nodes.at(b)?]);
        let flows = self.flows.iter();
        let legs = self.flows.iter().flat_map(|flow| {
            let relay = flow.relay.as_ref().map(|RelayConfig::Split { at, .. }| at);
            let [a, b] = &flow.ends;
            let legs = relay.map(|at| [pair(a, at), pair(at, b)]);
            legs.into_iter().flatten().flatten()
        });
        let links = Ranks::of(self.links.keys());
        let mut heirs: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
        for handoff in self.handoffs.iter().filter(|handoff| handoff.carries) {
            if let (Some(from), Some(to)) = (links.at(&handoff.from), self.links.get(&handoff.to))
                && let Some([first, second]) = pair(&to.ends[0], &to.ends[1])
            {
                heirs.entry((from, true)).or_default().push(second);
                heirs.entry((from, false)).or_default().push(first);
            }
        }
        Ways {
            flows: flows
                .map(|flow| pair(&flow.ends[0], &flow.ends[1]))
                .collect(),
            legs: legs.collect(),
            heirs,
        }
    }

    /// The kind of each handoff, in order, as a link layer with hints would report it.
    pub(crate) fn handoff_kinds(&self) -> Vec<HandoffKind> {
        let mut nodes: Vec<(&str, Mobility<usize>)> = vec![];
        let mut kinds = vec![];
        for handoff in &self.handoffs {
            let place = nodes.iter().position(|(name, _)| *name == handoff.node);
            let place = place.unwrap_or_else(|| {
                nodes.push((&handoff.node, Mobility::new()));
                nodes.len() - 1
            });
            let mobility = &mut nodes[place].1;
            let (Some(from), Some(to)) =
                (self.attachment(&handoff.from), self.attachment(&handoff.to))
            else {
                continue;
            };
            mobility.handle_hint(Hint::Disconnected(from));
            kinds.push(match mobility.handle_hint(Hint::Connected(to)) {
                Change::VerticalHandoff { .. } => HandoffKind::Vertical,
                _ => HandoffKind::Horizontal,
            });
        }
        kinds
    }

    fn attachment(&self, name: &str) -> Option<Attachment<usize>> {
        let link = self.links.keys().position(|n| n == name)?;
        let technology = self.links[name].technology();
        let alike = |other: &LinkConfig| other.technology() == technology;
        let technology = self.links.values().position(alike)?;
        Some(Attachment { link, technology })
    }

    pub(super) fn check_handoffs(&self, problems: &mut Problems) {
        // By node: when its last handoff was over. By link: whether a node has left it.
        for (i, handoff) in self.handoffs.iter().enumerate() {
            let before = &self.handoffs[..i];
            problems.within(&format!("handoffs[{i}]"), |p| {
                self.known_node("node", &handoff.node, p);
                for (field, name) in [("from", &handoff.from), ("to", &handoff.to)] {
                    match self.links.get(name) {
                        None => {
                            let help = one_of(self.links.keys());
                            p.add(field, format!("there is no link \"{name}\""), help);
                        }
                        Some(link) if !link.ends.contains(&handoff.node) => p.add(
                            field,
                            format!("\"{}\" is no end of the link \"{name}\"", handoff.node),
                            format!("a link with ends = [\"{}\", ...]", key(&handoff.node)),
                        ),
                        Some(_) => {}
                    }
                }
                let end = |link: &str| {
                    let link = self.links.get(link)?;
                    link.gsm?;
                    link.ends.iter().position(|end| *end == handoff.node)
                };
                let (from, to) = (end(&handoff.from), end(&handoff.to));
                if handoff.carries && (from.is_none() || from != to) {
                    p.add(
                        "carries",
                        "only circuits that have the node at the same end take over from each other",
                        "two links with gsm = {}, both with ends = [..., NODE] or both with ends = [NODE, ...]",
                    );
                }
                if handoff.from == handoff.to {
                    p.add(
                        "to",
                        "a node that comes back to its link has had an outage",
                        "another link, or outages = [{ from = ..., to = ... }] at this one",
                    );
                }
                if handoff.at == Duration::ZERO
                    || handoff.at > LONGEST_RUN
                    || handoff.gap > LONGEST_RUN
                {
                    p.add(
                        "at",
                        format!(
                            "nothing is handed over at {} for {}",
                            handoff.at, handoff.gap
                        ),
                        format!("times above zero and up to \"{LONGEST_RUN}\""),
                    );
                }
                if before
                    .last()
                    .is_some_and(|last| last.joins() > handoff.leaves())
                {
                    p.add(
                        "at",
                        "the handoff before this one is not over yet",
                        "handoffs in the order of time, each after the gap of the one before",
                    );
                }
                let last = |link: &str| {
                    let mut before = before.iter().rev();
                    before.find(|h| h.from == link || h.to == link)
                };
                if last(&handoff.from).is_some_and(|h| h.from == handoff.from) {
                    p.add(
                        "from",
                        format!("the link \"{}\" has been left already", handoff.from),
                        "the link that a node is on",
                    );
                }
                if last(&handoff.to).is_some_and(|h| h.to == handoff.to) {
                    p.add(
                        "to",
                        format!("the link \"{}\" is there already", handoff.to),
                        "a link that nothing has joined yet, or that was left",
                    );
                }
            });
        }
    }
}

impl LinkConfig {
    /// The technology that makes a handoff horizontal or vertical; by default, links of the same rate and delay are
    /// of one technology.
    fn technology(&self) -> String {
        let told = self.technology.clone();
        told.unwrap_or_else(|| format!("{} {}", self.rate, self.delay))
    }
}
