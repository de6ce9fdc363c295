//! Warnings about settings that are legal, cost a flow most of its path, and are seldom intended: a window or a queue
//! too small to fill the link, a scheme that does not suit a flow, a key without effect. Each warning says what to
//! write.
//!
//! Warnings cover only what a file transfer is sure to meet: paths at fixed rates whose links lose nothing, or repair
//! every loss. If losses or other flows limit the rate, a larger window does not help.

use std::collections::BTreeSet;

use airlane_base::{Duration, QueueLimit, Rate, Size};
use airlane_channel::ErrorModelConfig;
use airlane_link::classify::{Behaviour, Classifier};
use airlane_link::config::{Pacing, RateLimit, SchemeConfig};
use airlane_link::{FlowKey, QueueConfig, ServiceConfig};
use airlane_transport::TcpConfig;
use airlane_transport::tcp::{CongestionKind, Profile};

use crate::scenario::{AppConfig, LinkConfig, Scenario, TransportConfig};
use crate::services::header;
use crate::world::mean_rate;

/// A window that fills this share of the path gets no warning.
const ENOUGH: f64 = 0.9;
/// From this many losses per round trip on, BBR gets half or less of a link that repairs in order: measured at 4 to
/// 100 Mbit/s and 40 to 160 ms.
const LOSSES: f64 = 5.0;
/// A queue of half the size needed still keeps most of the link busy.
const SHORT: f64 = 0.5;

impl Scenario {
    /// Settings that are allowed but harmful, each with its place and what to write instead; also services that no
    /// flow uses.
    ///
    /// The scenario must be valid, as those from files are.
    pub fn warnings(&self) -> Vec<String> {
        let unreached = self.unreached().into_iter();
        let unreached = unreached.map(|(link, unreached)| format!("link \"{link}\": {unreached}"));
        let mut all: Vec<String> = unreached.collect();
        all.extend(self.unused_queues());
        all.extend(self.early_flows());
        let resolved = self.resolved();
        let mut said = BTreeSet::new();
        for path in paths(&resolved) {
            all.extend(path.warning().filter(|text| said.insert(text.clone())));
        }
        all
    }

    /// Flows that begin before live nodes on their path can have a session: their first packets are dropped.
    fn early_flows(&self) -> Vec<String> {
        let links: Vec<(&String, &LinkConfig)> = self.links.iter().collect();
        if !links.iter().any(|(_, link)| link.is_live()) {
            return vec![];
        }
        let epochs = self.epochs();
        let early = self.flows.iter().enumerate().filter_map(|(index, flow)| {
            let mut hops = epochs.hops(index);
            let (name, session) = hops.find_map(|hop| {
                let (name, link) = links[hop.link];
                Some((name, link.session_by()?))
            })?;
            (flow.start < session).then(|| {
                format!(
                    "flow \"{}\" begins at {}, before the ends of link \"{name}\" have a session: its first packets are \
                     dropped; write start = \"{session}\", or more",
                    flow.name, flow.start
                )
            })
        });
        early.collect()
    }

    /// Queue settings of links with services, which have queues of their own, so that these have no effect.
    fn unused_queues(&self) -> impl Iterator<Item = String> {
        self.links.iter().filter_map(|(name, link)| {
            let limit = link.queue?.down;
            let below = link.rate_limit == Some(RateLimit::Found)
                || [true, false].map(|down| link.rate.of(down).varies()) != [false; 2];
            let paced = link.pacing.is_some_and(|pacing| pacing != Pacing::Off);
            if below || paced || !link.header.unwrap_or_default().is_live() {
                return None;
            }
            let own = link.services.iter().filter(|service| service.queue.is_none());
            let own: Vec<String> = own.map(|service| format!("\"{}\"", service.name)).collect();
            (!own.is_empty()).then(|| {
                format!(
                    "link \"{name}\": queue = \"{limit}\" has no effect: with this header services have queues of their own; \
                     write queue = {{ kind = \"drop-tail\", limit = \"{limit}\" }} at {}, or leave it out",
                    own.join(", ")
                )
            })
        })
    }
}

/// The path of a file over TCP.
struct Path<'a> {
    flow: &'a str,
    tcp: &'a TcpConfig,
    /// Bytes of a segment: user data, and all of it.
    segment: [u32; 2],
    /// Of the slowest link.
    rate: Rate,
    round_trip: Duration,
    hops: Vec<Hop<'a>>,
    /// How many files share the slowest link.
    files: usize,
}

struct Hop<'a> {
    name: &'a str,
    link: &'a LinkConfig,
    /// The service that the flow gets there; none on a link without services.
    service: Option<&'a ServiceConfig>,
    /// Whether its packets, or their acknowledgments, may be lost on the air.
    lossy: bool,
    /// Share of its frames that is lost, if that is constant.
    loss: f64,
    slowest: bool,
    limit: QueueLimit,
}

/// The paths of all files that are this simple. The scenario must be resolved.
fn paths(scenario: &Scenario) -> Vec<Path<'_>> {
    let epochs = scenario.epochs();
    // A medium with contention has no fixed rate, and mobility no fixed path.
    if epochs.len() > 1 || !scenario.media.is_empty() {
        return vec![];
    }
    let links: Vec<(&String, &LinkConfig)> = scenario.links.iter().collect();
    let mut files = vec![0; links.len()];
    let mut paths = vec![];
    for (index, flow) in scenario.flows.iter().enumerate() {
        let TransportConfig::Tcp(tcp) = &flow.transport else {
            continue;
        };
        let AppConfig::Bulk(app) = &flow.app else {
            continue;
        };
        let route: Vec<_> = epochs[0].routes.links(index).collect();
        let fixed = |link: &LinkConfig| {
            let paced = [true, false].map(|down| link.rate.of(down).varies());
            link.gsm.is_none() && link.police.is_none() && paced == [false; 2]
        };
        let simple = route.iter().all(|hop| fixed(links[hop.link].1));
        if !simple || flow.relay.is_some() || app.takes.is_some() {
            continue;
        }
        let rate = |hop: &crate::graph::Hop| mean_rate(links[hop.link].1, hop.down);
        let Some(slowest) = route.iter().min_by_key(|hop| rate(hop)) else {
            continue;
        };
        files[slowest.link] += 1;
        let user = app.packet.map_or(1, Size::as_bytes) as u32;
        let segment = user + tcp.header_len();
        let behaviour = match tcp.congestion() {
            CongestionKind::Bbr => Behaviour::Paced,
            _ => Behaviour::File,
        };
        let key = FlowKey::from(header(scenario, index));
        let mut round_trip = Duration::ZERO;
        let hops = route.iter().map(|hop| {
            let (name, link) = links[hop.link];
            let takes = rate(hop).transmission_time(segment as usize);
            round_trip = round_trip + link.delay.down + link.delay.up + takes;
            Hop {
                name,
                link,
                service: service(link, &key, behaviour),
                lossy: [&link.errors.down, &link.errors.up] != [&ErrorModelConfig::None; 2],
                loss: match link.errors.of(hop.down) {
                    ErrorModelConfig::Uniform { rate } => rate.value(),
                    _ => 0.0,
                },
                slowest: hop.link == slowest.link,
                limit: *link.limit().of(hop.down),
            }
        });
        paths.push((
            slowest.link,
            Path {
                flow: &flow.name,
                tcp,
                segment: [user, segment],
                hops: hops.collect(),
                rate: rate(slowest),
                round_trip,
                files: 1,
            },
        ));
    }
    let paths = paths.into_iter();
    paths
        .map(|(slowest, path)| Path {
            files: files[slowest],
            ..path
        })
        .collect()
}

/// The service of a link that a flow's packets get once it has been classified.
fn service<'a>(
    link: &'a LinkConfig,
    key: &FlowKey,
    behaviour: Behaviour,
) -> Option<&'a ServiceConfig> {
    let number = |name: &str| {
        let found = link.services.iter().find(|service| service.name == name);
        found.map(|service| service.number)
    };
    let classes = link.classes.rules(&link.services);
    let number = Classifier::new(&classes, number, 0).classify_as(key, behaviour);
    link.services
        .iter()
        .find(|service| service.number == number)
}

impl Hop<'_> {
    fn repairs_all(&self) -> bool {
        self.service
            .is_some_and(|service| service.scheme.is_reliable())
    }
}

impl Path<'_> {
    /// The first limit that binds.
    fn warning(&self) -> Option<String> {
        self.late_for_a_model().or_else(|| {
            if self.hops.iter().any(|hop| hop.lossy && !hop.repairs_all()) {
                return None;
            }
            let short = self.short_receive_window();
            short
                .or_else(|| self.short_send_window())
                .or_else(|| self.short_queue())
        })
    }

    /// Segments that fill the path.
    fn filling(&self) -> f64 {
        self.rate.as_bps() as f64 * self.round_trip.as_secs_f64()
            / (8.0 * f64::from(self.segment[1]))
    }

    /// A congestion control that models the path takes the time spent on repairs for a longer path. A few losses per
    /// round trip do not matter; from about five on, its rate falls to half or less.
    fn late_for_a_model(&self) -> Option<String> {
        if self.tcp.congestion() != CongestionKind::Bbr {
            return None;
        }
        self.hops.iter().find_map(|hop| {
            let service = hop.service.filter(|service| service.scheme.is_reliable())?;
            let steady = match &service.scheme {
                SchemeConfig::Sr(sr) | SchemeConfig::SrM1(sr) | SchemeConfig::SrM2(sr) => sr.dejitter,
                _ => false,
            };
            if steady || hop.loss * self.filling() < LOSSES {
                return None;
            }
            let live = hop.link.header.unwrap_or_default().is_live();
            Some(format!(
                "flow \"{}\": BBR takes what {} of service \"{}\" on link \"{}\" holds up for the sake of its order for a longer \
                 path, and sends far less than the link carries; write goal = \"paced\" in place of its scheme and rate, and classes = \"behaviour\"{}",
                self.flow,
                service.scheme.kind(),
                service.name,
                hop.name,
                if live { "" } else { " and header = \"live\" at the link" },
            ))
        })
    }

    /// Profiles other than `modern` have the windows of their time.
    fn short_receive_window(&self) -> Option<String> {
        if self.tcp.profile != Profile::Modern {
            return None;
        }
        let (window, need) = (self.tcp.window_of(self.segment[0]), self.filling().ceil());
        if f64::from(window) >= ENOUGH * need {
            return None;
        }
        let write = if f64::from(self.tcp.window) < need {
            format!("window = {need} or more")
        } else if self.tcp.buffer.is_some() {
            format!(
                "buffer = \"{}\" or more",
                Size::from_bytes(need as u64 * u64::from(self.segment[0]))
            )
        } else {
            "window-scaling = true".to_owned()
        };
        Some(format!(
            "flow \"{}\": a window of {window} segments fills {:.0} % of {}; write {write} in its transport",
            self.flow,
            100.0 * f64::from(window) / need,
            self.words()
        ))
    }

    fn words(&self) -> String {
        let round_trip = (1e3 * self.round_trip.as_secs_f64()).round();
        format!("{} over a round trip of {round_trip} ms", self.rate)
    }

    /// Frames that a service may have in flight.
    fn short_send_window(&self) -> Option<String> {
        self.hops.iter().find_map(|hop| {
            let service = hop.service.filter(|service| service.scheme.is_reliable())?;
            let window = service.scheme.window()?;
            let round_trip = (hop.link.delay.down + hop.link.delay.up).as_secs_f64();
            let frame = f64::from(self.segment[1]);
            // A lost frame stays in the window for another round trip.
            let rounds = if hop.lossy { 2.0 } else { 1.0 };
            let need = (rounds * self.rate.as_bps() as f64 * round_trip / (8.0 * frame) + rounds).ceil();
            if f64::from(window) >= ENOUGH * need {
                return None;
            }
            let write = if !hop.link.header.unwrap_or_default().is_live() {
                "header = \"live\" at the link, whose windows are longer".to_owned()
            } else if matches!(service.scheme, SchemeConfig::GsmRlp(_)) {
                "scheme = { kind = \"sr-m2\" }".to_owned()
            } else {
                format!("window = {need} or more in its scheme")
            };
            let repairs = if hop.lossy { " and a repair" } else { "" };
            Some(format!(
                "link \"{}\": service \"{}\" may have {window} frames under way, and {} with its round trip{repairs} takes \
                 {need}; write {write}",
                hop.name,
                service.name,
                self.rate,
            ))
        })
    }

    /// A queue that runs empty after each loss that it causes itself.
    fn short_queue(&self) -> Option<String> {
        let hop = self.hops.iter().find(|hop| hop.slowest)?;
        // With several flows, it is rare that all reduce their windows at once.
        if self.files > 1 {
            return None;
        }
        let limit = match hop.service {
            None if hop.link.services.is_empty() => hop.limit,
            None => return None,
            Some(service) => match service.queue {
                Some(QueueConfig::DropTail { limit }) => limit,
                _ => return None,
            },
        };
        let queue = match limit {
            QueueLimit::Packets(packets) => packets as f64,
            QueueLimit::Bytes(bytes) => bytes as f64 / f64::from(self.segment[1]),
        };
        let (path, window) = (
            self.filling(),
            f64::from(self.tcp.window_of(self.segment[0])),
        );
        // What remains of path and queue after a reduction must fill the path.
        let need = match self.tcp.congestion() {
            CongestionKind::Bbr | CongestionKind::Vegas => return None,
            CongestionKind::Bic => path / 7.0,
            CongestionKind::Cubic => path * 3.0 / 7.0,
            CongestionKind::Reno | CongestionKind::Bsd => path,
        };
        if window <= path + queue || queue >= SHORT * need {
            return None;
        }
        let right = path.ceil();
        let (place, key) = match hop.service {
            None => (String::new(), format!("queue = \"{right} packets\"")),
            Some(service) => (
                format!("service \"{}\": ", service.name),
                format!("queue = {{ kind = \"drop-tail\", limit = \"{right} packets\" }}"),
            ),
        };
        Some(format!(
            "link \"{}\": {place}a queue of {limit} is empty for long after each loss that it causes, at {}; write {key} or more",
            hop.name,
            self.words()
        ))
    }
}
