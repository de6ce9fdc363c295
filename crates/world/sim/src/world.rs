//! Builds the world of a resolved scenario.

use std::collections::BTreeMap;

use airlane_base::{Instant, QueueLimit, Rate, Streams};
use airlane_channel::{Channel, ChannelConfig, ChannelStats, ErrorModel, OutageConfig};
use airlane_link::config::{Pacing, RateLimit, at_end};
use airlane_link::wire::LIVE_HEADER_ROOM;
use airlane_link::{Port, PortConfig};
use airlane_transport::clap::ClapSender;
use airlane_wifi::Radio;

use crate::app::Flow;
use crate::app::bulk::Bulk;
use crate::app::clap::{Clap, File};
use crate::app::conferencing::{Conferencing, Departures};
use crate::app::custom::Custom;
use crate::app::exchange::{Opener, draw_phase};
use crate::app::mail::{Mail, MailCheck};
use crate::app::pages::{Page, Pages};
use crate::app::place::FlowPlace;
use crate::app::progress::Progress;
use crate::app::split::Split;
use crate::app::talk::Talk;
use crate::app::telnet::{Telnet, Typing};
use crate::app::web::{Browsing, Web};
use crate::custom::{AppFactory, ErrorsFactory, Pieces};
use crate::engine::agenda::{Agenda, Move, Policy};
use crate::engine::circuit::Circuit;
use crate::engine::lives::{LiveEnd, Lives, Path, Peer};
use crate::engine::medium::{Air, Direction, Medium, ShrunkLink, StationLink};
use crate::engine::next_hops::{NextHop, NextHops};
use crate::engine::radio::{Attached, RadioEnd, Recorded};
use crate::engine::status::{Daemon, Daemons};
use crate::engine::{Engine, PortEnd, World};
use crate::graph::Step;
use crate::headers::CaptureHeaders;
use crate::hint::flow_hints;
use crate::packet::Packet;
use crate::rfc1144::Compression;
use crate::route::Routes;
use crate::scenario::{
    AppConfig, Completion, Epochs, FlowConfig, HandoffConfig, LinkConfig, Media, PacedBy, PathMtu,
    Ranks, RelayConfig, RequestPackets, Scenario, TransportConfig, WifiConfig, live_key, seed_of,
};
use crate::services::header;

/// Random streams by purpose (docs/spec/multi-service.md, section 1).
#[derive(Clone, Copy, Debug)]
struct Randomness {
    /// Errors and clocks: different in every repetition.
    run: Streams,
    /// Traffic: the same in all repetitions, unless the scenario says otherwise.
    traffic: Streams,
}

/// Builds the world of one repetition. The scenario must be resolved and valid.
pub(crate) fn build(
    scenario: &Scenario,
    epochs: &Epochs,
    seed: u64,
    run: u64,
    mut pieces: Pieces,
) -> Engine {
    let site = Site::new(scenario);
    let randomness = Randomness {
        run: Streams::new(seed, run),
        traffic: scenario.traffic_streams(seed, run),
    };
    let mut radios: Vec<RadioEnd> = scenario
        .wifis()
        .map(|(name, wifi)| radio(&site, name, wifi, randomness.run))
        .collect();
    let mut directions = vec![];
    let mut airs = vec![Air::default(); scenario.media.len()];
    let mut ports = vec![];
    let mut policies = vec![];
    // Fills `ports` link by link, first end first, and notes where each link's ports begin.
    let mut first_port = vec![];
    for (index, (name, link)) in scenario.links.iter().enumerate() {
        let has_ports = !link.services.is_empty();
        first_port.push(has_ports.then_some(ports.len()));
        for down in [true, false] {
            let custom = pieces.errors.remove(&(name.clone(), down));
            let mut direction = direction(&site, name, link, down, randomness.run, custom);
            direction.port = has_ports.then_some(ports.len() as u32 + u32::from(down));
            let near = ports.len() as u32 + u32::from(!down);
            if let Some([radio, from, to]) = site.media.stations(link, down) {
                let end = &mut radios[usize::from(radio)];
                end.attached[usize::from(from)].ports.push(near);
                let frame = link.frame.expect("validated: services have a frame size");
                let mut wifis = scenario.wifis().map(|(_, wifi)| wifi.data_rate());
                let fastest = wifis.nth(radio.into());
                direction.medium = Medium::Station(Box::new(StationLink {
                    near,
                    radio,
                    from,
                    to,
                    longest: frame.as_bytes() as usize + LIVE_HEADER_ROOM,
                    fastest: fastest.expect("found: the link goes through it"),
                    stats: ChannelStats::default(),
                }));
            } else if link.paced_by == Some(PacedBy::Link) {
                direction.medium = direction.medium.driving(near);
            }
            if let Some(air) = site.media.air(link) {
                direction.medium = direction.medium.queued();
                direction.air = Some(air as u32);
                direction.turn = airs[air].attached.len() as u32;
                airs[air].attached.push(directions.len() as u32);
            }
            directions.push(direction);
        }
        if let Some(policy) = pieces.weights.remove(name) {
            let interval = policy.interval();
            policies.push(Policy {
                next: Instant::ORIGIN + interval,
                interval,
                ports: [ports.len(), ports.len() + 1],
                link: name.clone(),
                policy,
            });
        }
        if has_ports {
            for end in 0..2 {
                ports.push(PortEnd {
                    port: port(link, end == 0),
                    node: site.node(&link.ends[end]),
                    out: direction_index(index, end == 0) as u32,
                    driven: link.paced_by == Some(PacedBy::Link),
                });
            }
        }
    }
    let flows = scenario.flows.iter().enumerate();
    let flows = flows.map(|(index, config)| {
        let custom = pieces.applications.remove(&config.name);
        flow(&site, epochs, index, randomness, custom)
    });
    let flows = flows.collect();
    let nodes = scenario.nodes.len();
    let live: Vec<bool> = scenario.links.values().map(LinkConfig::is_live).collect();
    let word = |step| next_hop(step, &first_port, &live);
    let mut tables = epochs
        .iter()
        .map(|epoch| NextHops::new(&epoch.routes, nodes, word));
    let first_hops = tables.next().expect("there is an epoch");
    let moves = epochs
        .windows(2)
        .zip(tables)
        .map(|(epochs, next_hops)| Move {
            at: epochs[1].begin,
            next_hops,
            disconnected: (0..first_port.len())
                .filter(|link| epochs[0].present[*link] && !epochs[1].present[*link])
                .filter_map(|link| first_port[link])
                .flat_map(|first| [first, first + 1])
                .collect(),
            left: handed_over(scenario, |handoff| {
                !handoff.carries && handoff.leaves() == epochs[1].begin
            })
            .map(|[from, _]| from)
            .collect(),
            carried: handed_over(scenario, |handoff| {
                handoff.carries && handoff.joins() == epochs[1].begin
            })
            .collect(),
        });
    let moves = moves.collect();
    let mut hints = vec![];
    let links: Vec<&LinkConfig> = scenario.links.values().collect();
    for (index, config) in scenario.flows.iter().enumerate() {
        if matches!(&config.transport, TransportConfig::Tcp(tcp) if tcp.freeze) {
            hints.extend(flow_hints(&links, index, epochs));
        }
    }
    hints.sort_by_key(|hint| (hint.at, hint.flow, hint.end));
    Engine::new(World {
        daemons: daemons(scenario, &epochs[0].routes, randomness.run),
        lives: lives(&site, randomness.run),
        radios,
        directions,
        airs,
        ports,
        flows,
        agenda: Agenda::new(hints, moves, policies),
        next_hops: first_hops,
    })
}

/// For the selected handoffs: each direction of the link that the node leaves, with that of the link that it joins.
fn handed_over(
    scenario: &Scenario,
    which: impl Fn(&HandoffConfig) -> bool,
) -> impl Iterator<Item = [usize; 2]> {
    let link = |name: &str| scenario.links.keys().position(|link| link == name);
    let handoffs = scenario.handoffs.iter().filter(move |h| which(h));
    let links = handoffs.filter_map(move |h| Some([link(&h.from)?, link(&h.to)?]));
    links.flat_map(|links| [true, false].map(|down| links.map(|link| direction_index(link, down))))
}

fn radio(site: &Site<'_>, name: &str, wifi: &WifiConfig, streams: Streams) -> RadioEnd {
    let (config, stations) = wifi.radio();
    let nodes = wifi.nodes.keys().map(|node| site.node(node));
    let mut radio = Radio::new(config, &stations, streams, &format!("medium.{name}"));
    for errors in &wifi.errors {
        let [a, b] = errors.between.each_ref().map(|name| wifi.station(name));
        let (Some(a), Some(b)) = (a, b) else { continue };
        for (from, to, model) in [(a, b, &errors.model.down), (b, a, &errors.model.up)] {
            let stream = format!("medium.{name}.{from}-{to}");
            let model = ErrorModel::new(model, wifi.data_rate(), streams, &stream);
            radio.set_losses(from, to, Box::new(Recorded(model)));
        }
    }
    RadioEnd {
        radio,
        attached: stations.iter().map(|_| Attached::default()).collect(),
        nodes: nodes.collect(),
        source_header: wifi.source_header.as_bytes() as usize,
    }
}

/// A daemon for each station, if a flow of the world uses status reports.
fn daemons(scenario: &Scenario, routes: &Routes, streams: Streams) -> Daemons {
    let mut common = None;
    let mut begin: BTreeMap<(u16, u16), Vec<u16>> = BTreeMap::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        if let TransportConfig::Clap(clap) = &flow.transport {
            // All have the same interval: validation requires it.
            common = Some(clap.interval);
            if let Some(Step::Radio(hop)) = routes.first(index) {
                let station = begin.entry((hop.radio, hop.from)).or_default();
                station.push(index as u16);
            }
        }
    }
    let Some(interval) = common else {
        return Daemons::default();
    };
    let mut all = vec![];
    for (radio, (name, wifi)) in (0..).zip(scenario.wifis()) {
        for station in 0..wifi.nodes.len() as u16 {
            let flows = begin.remove(&(radio, station)).unwrap_or_default();
            let mut phase = streams.stream(&format!("medium.{name}.{station}.status"));
            let first = Instant::ORIGIN + interval.mul_f64(phase.uniform());
            all.push(Daemon::new([radio, station], first, interval, flows));
        }
    }
    Daemons::new(all)
}

/// The live nodes at the ends of live links.
fn lives(site: &Site<'_>, streams: Streams) -> Lives {
    let scenario = site.scenario;
    let sites = scenario.live_sites(streams);
    let mut near = vec![None; 2 * scenario.links.len()];
    let place = |node: &str| sites.iter().position(|site| site.node == node);
    let mut ends = vec![];
    for (index, live) in sites.iter().enumerate() {
        let seed = seed_of(streams, &format!("node.{}", live.node));
        let node = live.start(Instant::ORIGIN, live_key(streams, &live.node), seed);
        let node = node.expect("validated: the live file works");
        let mut peers = vec![];
        for peer in &live.peers {
            let end =
                place(&peer.node).expect("validated: a live link has a live node at each end");
            let back = sites[end].peers.iter().find(|back| back.node == live.node);
            let others = back.map_or(&[][..], |back| &back.links);
            let paths = peer.links.iter().map(|(link, down, own)| {
                near[direction_index(*link, *down)] = Some([index, peers.len()]);
                let mut others = others.iter().filter(|(other, ..)| other == link);
                let (name, config) = scenario.links.iter().nth(*link).expect("it is one of them");
                Path {
                    direction: direction_index(*link, *down),
                    own: *own,
                    other: others.next().map_or(*own, |(.., other)| *other),
                    absent: scenario.absences(name),
                    mtu: config.mtu.as_ref().map_or(vec![], PathMtu::limits),
                }
            });
            let paths = paths.collect();
            peers.push(Peer {
                link: node
                    .link_to(&peer.name)
                    .expect("the live file names its peers"),
                end,
                paths,
            });
        }
        ends.push(LiveEnd {
            node,
            at: site.node(&live.node),
            listen: live.listen,
            peers,
        });
    }
    let headers = scenario.links.values();
    let headers = headers.map(|link| {
        link.is_live()
            .then(|| CaptureHeaders::of_travelling(scenario))
    });
    Lives::new(ends, near, headers.collect())
}

/// Translates a step into the engine's form.
fn next_hop(step: Step, first_port: &[Option<usize>], live: &[bool]) -> NextHop {
    match step {
        Step::Link(hop) if live[hop.link] => {
            NextHop::Live(direction_index(hop.link, hop.down) as u32)
        }
        Step::Radio(hop) => NextHop::Station([hop.radio, hop.from, hop.to]),
        Step::Link(hop) => match first_port[hop.link] {
            Some(first) => NextHop::Port((first + usize::from(!hop.down)) as u32),
            None => NextHop::Direction(direction_index(hop.link, hop.down) as u32),
        },
    }
}

/// The index of a direction: links in the order of their names, down before up.
pub(crate) fn direction_index(link: usize, down: bool) -> usize {
    2 * link + usize::from(!down)
}

/// A scenario, with the indices of its names.
struct Site<'a> {
    scenario: &'a Scenario,
    nodes: Ranks<'a>,
    media: Media<'a>,
    /// Whether some flow is told about its packets that links have corrupted.
    notified: bool,
}

impl<'a> Site<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let hears = |flow: &FlowConfig| matches!(&flow.transport, TransportConfig::Tcp(tcp) if tcp.loss_memory().is_some());
        Self {
            scenario,
            nodes: Ranks::of(scenario.nodes.keys()),
            media: scenario.media_places(),
            notified: scenario.flows.iter().any(hears),
        }
    }

    fn node(&self, name: &str) -> u16 {
        let index = self.nodes.at(name);
        index.expect("validated: the node exists") as u16
    }
}

fn direction(
    site: &Site<'_>,
    name: &str,
    link: &LinkConfig,
    down: bool,
    streams: Streams,
    custom: Option<ErrorsFactory>,
) -> Direction {
    let (model, stream, to) = if down {
        (
            &link.errors.down,
            format!("link.{name}.down"),
            &link.ends[1],
        )
    } else {
        (&link.errors.up, format!("link.{name}.up"), &link.ends[0])
    };
    let mut config = ChannelConfig {
        rate: mean_rate(link, down),
        delay: *link.delay.of(down),
        queue: *link.limit().of(down),
    };
    let shared = format!("link.{name}");
    let fades = if link.shared_fades { &shared } else { &stream };
    let errors = match custom {
        None => ErrorModel::with_fades(model, config.rate, streams, &stream, fades),
        Some(factory) => {
            let model = factory(streams.stream(&format!("{stream}.errors")));
            ErrorModel::custom(model, streams, &stream)
        }
    };
    let headers = || Compression::new(site.scenario.headers_of_flows().collect());
    let headers = link.header_compression.map(|_| headers());
    let medium = if let Some(gsm) = &link.gsm {
        let limit = config.queue;
        let channel = channel((site, streams), (name, down), config, errors);
        Medium::Circuit(Box::new(Circuit::new(gsm, channel, limit, headers)))
    } else if link.is_live() {
        Medium::Datagrams(channel((site, streams), (name, down), config, errors))
    } else if let Some(headers) = headers {
        let channel = channel((site, streams), (name, down), config, errors);
        Medium::Shrunk(Box::new(ShrunkLink { channel, headers }))
    } else if link.services.is_empty() {
        Medium::Packets(channel((site, streams), (name, down), config, errors))
    } else {
        // The port shapes to the link's rate: frames never wait before the transmitter, unless its rate changes, or
        // is not stated.
        if !link.rate.of(down).varies() && link.rate_limit != Some(RateLimit::Found) {
            config.queue = QueueLimit::Packets(1);
        }
        Medium::Frames(channel((site, streams), (name, down), config, errors))
    };
    Direction {
        medium,
        to: site.node(to),
        port: None,
        air: None,
        turn: 0,
        mark_above: link.mark_above,
    }
}

fn channel<T>(
    (site, streams): (&Site<'_>, Streams),
    (name, down): (&str, bool),
    config: ChannelConfig,
    errors: ErrorModel,
) -> Channel<T> {
    let scenario = site.scenario;
    let link = &scenario.links[name];
    let way = if down { "down" } else { "up" };
    let jitter = link.jitter.and_then(|jitter| jitter.of(down));
    let random = streams.stream(&format!("link.{name}.{way}.jitter"));
    let channel = Channel::new(config, errors)
        .with_rate(link.rate.of(down))
        .with_overhead(scenario.overhead(link))
        .with_outages(OutageConfig::windows(&link.outages))
        .with_police(link.police.and_then(|police| police.of(down)))
        .with_jitter(jitter, random)
        .with_absences(scenario.absences(name));
    match site.notified {
        true => channel.with_destroyed(),
        false => channel,
    }
}

/// The long-term rate of a direction.
pub(crate) fn mean_rate(link: &LinkConfig, down: bool) -> Rate {
    let mean = link.rate.of(down).mean();
    mean.expect("checked: a trace is read before it is used")
}

fn port(link: &LinkConfig, first: bool) -> Port<Packet> {
    let frame = link.frame.expect("validated: services have a frame size");
    // Timers are based on round trips: the delay is half of one.
    let delay = (link.delay.down + link.delay.up) / 2;
    let header = link.header.unwrap_or_default();
    let rate = match link.rate_limit {
        Some(RateLimit::Found) => RateLimit::UNSTATED,
        _ => mean_rate(link, first),
    };
    let config = PortConfig {
        handed_over: link
            .handed_over
            .expect("resolved: services have a hand-over limit"),
        pacing: matches!(link.pacing, Some(Pacing::Nominal | Pacing::Framed))
            .then_some(link.limit().down),
        pacing_overhead: link.pacing_overhead.map_or_else(
            || usize::from(link.pacing == Some(Pacing::Framed)),
            |overhead| overhead.as_bytes() as usize,
        ),
        scheduler: link.scheduler.clone().unwrap_or_default(),
        rates: link.rates.unwrap_or_default(),
        rate_limit: link.rate_limit.unwrap_or_default(),
        services: at_end(&link.services, first),
        classes: link.classes.rules(&link.services),
        ..PortConfig::new(header, rate, delay, frame.as_bytes() as usize)
    };
    Port::new(config).expect("validated: the service table works")
}

fn flow(
    site: &Site<'_>,
    epochs: &Epochs,
    index: usize,
    randomness: Randomness,
    custom: Option<AppFactory>,
) -> Flow {
    let scenario = site.scenario;
    let config = &scenario.flows[index];
    let place = place(site, index);
    let start = Instant::ORIGIN + config.start;
    let packet = config.app.packet().expect("resolved: packets have a size");
    let segment = packet.as_bytes() as u32;
    let name = &config.name;
    let clock = || randomness.run.stream(&format!("flow.{name}.clock"));
    if let Some(factory) = custom {
        let app = factory(randomness.traffic.stream(&format!("flow.{name}.custom")));
        let mut clock = clock();
        let tcp = match &config.transport {
            TransportConfig::Tcp(tcp) => Some((tcp, [0, 1].map(|_| draw_phase(&mut clock, tcp)))),
            TransportConfig::Udp(_) => None,
            TransportConfig::Clap(_) => unreachable!("refused: custom pieces run over TCP or UDP"),
        };
        return Flow::Custom(Box::new(Custom::new(place, start, segment, app, tcp)));
    }
    match (&config.app, &config.transport) {
        (AppConfig::Bulk(app), TransportConfig::Tcp(tcp)) => {
            let bytes = app.size.map(|s| s.as_bytes());
            let level = app.window_level.map(|level| level.as_bytes() as f64);
            let mut clock = clock();
            if let Some(RelayConfig::Split {
                at,
                pool,
                transport,
            }) = &config.relay
            {
                let second = match transport {
                    Some(TransportConfig::Tcp(second)) => second,
                    _ => tcp,
                };
                let legs = [tcp, second];
                let phases = [0, 0, 1, 1].map(|leg: usize| draw_phase(&mut clock, legs[leg]));
                let relay = site.node(at);
                let [from, to] = place.nodes;
                let places = [[from, relay], [relay, to]].map(|nodes| FlowPlace { nodes, ..place });
                let pool = pool.as_bytes();
                let mut split = Split::new(places, start, legs, segment, bytes, pool, phases);
                if app.windows {
                    split.watch(segment, level);
                }
                return Flow::Split(Box::new(split));
            }
            let phases = [0, 1].map(|_| draw_phase(&mut clock, tcp));
            let mut bulk = Bulk::new(place, start, tcp, segment, bytes, app.takes, phases);
            if app.windows {
                bulk.watch(segment, level);
            }
            let progress = config.progress.as_ref();
            let progress = progress.map(|p| Progress::new(p, bytes, Some(tcp.min_rto)));
            bulk.progress = progress.map(Box::new);
            Flow::Bulk(Box::new(bulk))
        }
        (AppConfig::Bulk(app), TransportConfig::Clap(clap)) => {
            let size = app.size.expect("validated: a file over CLAP has a size");
            let size = size.as_bytes();
            let count = size.div_ceil(packet.as_bytes().max(1));
            let file = File {
                size,
                packet: segment,
                count: count as u32,
                header: clap.header_size.as_bytes() as u32,
            };
            let mut clock = clock();
            let [decisions, probes] = [0, 1].map(|_| clap.interval.mul_f64(clock.uniform()));
            let sender = ClapSender::new(clap, file.count, decisions);
            let sender = sender.expect("validated: the file is not too long");
            let mut file = Clap::new(place, start, clap, file, sender, probes);
            let progress = config.progress.as_ref();
            file.progress = progress.map(|p| Box::new(Progress::new(p, Some(size), None)));
            Flow::Clap(Box::new(file))
        }
        (AppConfig::Pages(app), TransportConfig::Tcp(tcp)) => {
            let page = Page {
                request: app.request.as_bytes(),
                reply: app.reply.as_bytes(),
                pause: app.pause,
            };
            let opener = Opener::new(tcp, segment, Completion::Delivered, false, clock());
            let pages = Pages::new(start, page);
            Flow::Pages(Box::new(Talk::new(place, start, opener, app.count, pages)))
        }
        (AppConfig::Web(app), TransportConfig::Tcp(tcp)) => {
            let browsing = Browsing {
                tables: app.tables(),
                files: app.files,
                parallel: app.parallel as usize,
                think: app.think,
                count: app.count,
                bundle: app.bundle,
            };
            let mut opener = Opener::new(tcp, segment, app.completion, app.persistent, clock());
            if app.requests == RequestPackets::One {
                let whole = epochs.smallest_frame(index);
                let whole = whole.map(|_| scenario.usual_packet(index, epochs));
                opener.request = Some(whole.map_or(segment, |size| size.as_bytes() as u32));
            }
            let sizes = randomness.traffic.stream(&format!("flow.{name}.sizes"));
            Flow::Web(Box::new(Web::new(place, start, opener, browsing, sizes)))
        }
        (AppConfig::Telnet(app), TransportConfig::Tcp(tcp)) => {
            let typing = Typing {
                keystroke: app.keystroke.as_bytes(),
                interval: app.interval,
            };
            let opener = Opener::new(tcp, segment, Completion::Delivered, true, clock());
            let keys = randomness.traffic.stream(&format!("flow.{name}.keys"));
            let telnet = Telnet::new(typing, keys);
            Flow::Telnet(Box::new(Talk::new(place, start, opener, app.count, telnet)))
        }
        (AppConfig::Mail(app), TransportConfig::Tcp(tcp)) => {
            let check = MailCheck {
                turns: app.turns,
                command: app.command.as_bytes(),
                response: app.response.as_bytes(),
                messages: app.messages,
                message: app.message.as_bytes(),
                pause: app.pause,
            };
            let opener = Opener::new(tcp, segment, Completion::Delivered, true, clock());
            let sizes = randomness.traffic.stream(&format!("flow.{name}.sizes"));
            let mail = Mail::new(start, check, sizes);
            Flow::Mail(Box::new(Talk::new(place, start, opener, app.count, mail)))
        }
        (AppConfig::Conferencing(app), _) => {
            let departures = Departures::of(config, app, randomness.traffic);
            let mut source = Conferencing::new(place, start, segment, departures);
            let progress = config.progress.as_ref();
            source.progress = progress.map(|p| Box::new(Progress::new(p, None, None)));
            Flow::Conferencing(Box::new(source))
        }
        (_, TransportConfig::Udp(_)) => unreachable!("validated: only conferencing runs over UDP"),
        (_, TransportConfig::Clap(_)) => unreachable!("validated: only files go over CLAP"),
    }
}

fn place(site: &Site<'_>, index: usize) -> FlowPlace {
    let ends = &site.scenario.flows[index].ends;
    FlowPlace {
        flow: index as u16,
        nodes: [0, 1].map(|end| site.node(&ends[end])),
        header: header(site.scenario, index),
    }
}
