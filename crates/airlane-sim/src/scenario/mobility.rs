//! Nodes that move: they leave one link and join another, and routes follow (the specification,
//! section 10.5).
//!
//! A link that a node joins later is not there before. While it is not, nothing is routed over it;
//! what was on it when the node left is lost: frames on the air, packets that waited, and what the
//! services of its ports kept. Between leaving and joining, packets for the node have no way. Circuits may carry
//! over what they have: then packets wait for it in the old one until the new one is there.

use airlane_base::config::{Problems, key};
use airlane_base::{Duration, Instant};
use airlane_link::mobility::{Attachment, Change, Hint, Mobility};

use super::handoff::{HandoffConfig, HandoffKind};
use super::{LONGEST_RUN, LinkConfig, Scenario};
use crate::route::Routes;

/// A time in which no node moves.
#[derive(Clone, Debug)]
pub(crate) struct Epoch {
    pub(crate) begin: Instant,
    /// By index of the link: whether it is there.
    pub(crate) present: Vec<bool>,
    pub(crate) routes: Routes,
}

impl Scenario {
    /// When a link is not there, in order: from the first time of each to the second.
    pub(crate) fn absences(&self, link: &str) -> Vec<[Instant; 2]> {
        self.absences_since(link, HandoffConfig::leaves)
    }

    fn absences_since(
        &self,
        link: &str,
        since: impl Fn(&HandoffConfig) -> Instant,
    ) -> Vec<[Instant; 2]> {
        let mut absences = vec![];
        // It begins absent if the first that happens to it is that a node joins it.
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
    pub(crate) fn epochs(&self) -> Vec<Epoch> {
        let routed = |link: &String| self.absences_since(link, HandoffConfig::routed_until);
        let absences: Vec<_> = self.links.keys().map(routed).collect();
        let moves = self.handoffs.iter();
        let moves = moves.flat_map(|h| [h.routed_until(), h.joins()]);
        let mut begins: Vec<Instant> = std::iter::once(Instant::ORIGIN).chain(moves).collect();
        begins.sort_unstable();
        begins.dedup();
        let radios = self.radio_routes();
        let epoch = |begin| {
            let absent = |windows: &Vec<[Instant; 2]>| {
                windows
                    .iter()
                    .any(|[left, back]| *left <= begin && begin < *back)
            };
            let present: Vec<bool> = absences.iter().map(|windows| !absent(windows)).collect();
            let routes = Routes::among(&self.nodes, &self.links, &radios, |link| present[link]);
            Epoch {
                begin,
                present,
                routes,
            }
        };
        begins.into_iter().map(epoch).collect()
    }

    /// What each handoff is, in order, as a link layer that gives hints would tell.
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
        // Per node: when its last handoff was over. Per link: whether a node has left it.
        for (i, handoff) in self.handoffs.iter().enumerate() {
            let before = &self.handoffs[..i];
            problems.within(&format!("handoffs[{i}]"), |p| {
                self.known_node("node", &handoff.node, p);
                for (field, name) in [("from", &handoff.from), ("to", &handoff.to)] {
                    match self.links.get(name) {
                        None => {
                            let links: Vec<&str> = self.links.keys().map(String::as_str).collect();
                            p.add(
                                field,
                                format!("there is no link \"{name}\""),
                                format!("one of: {}", links.join(", ")),
                            );
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
    /// What makes a handoff to it horizontal or vertical: links of one rate and delay are alike
    /// where nothing is said.
    fn technology(&self) -> String {
        let told = self.technology.clone();
        told.unwrap_or_else(|| format!("{} {}", self.rate, self.delay))
    }
}
