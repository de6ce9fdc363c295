//! Checks that need more than one key: names that must exist, combinations that are impossible.

use std::collections::{BTreeMap, BTreeSet};

use airlane_base::config::{Problems, Validate, key};
use airlane_base::{Duration, Size};
use airlane_channel::{ErrorModelConfig, ErrorsConfig};

use airlane_link::config::{self, Pacing, Viewpoint};

use super::ranks::one_of;
use super::{
    AppConfig, BulkConfig, ConferencingConfig, Epochs, FlowConfig, LONGEST_RUN, LinkConfig,
    MediumConfig, PacedBy, RelayConfig, SCHEMA, Scenario, TransportConfig,
};

/// Packets and events number nodes, links, media and flows with 16 bits.
const MOST: usize = 1 << 16;
/// Nodes, links and flows, times the number of route changes: memory holds a word or two for each.
const MOST_CHANGES: usize = 1 << 22;
/// Each handoff is checked against all before it.
const MOST_HANDOFFS: usize = 10_000;
/// The largest IP packet.
const MAX_PACKET: u64 = 65_535;
/// TOML integers have 63 bits and a sign.
const MAX_INTEGER: u64 = i64::MAX as u64;
/// A shorter talk period would end before time advances.
const SHORTEST_TALK: Duration = Duration::from_micros(1);
impl Validate for Scenario {
    fn validate(&self, problems: &mut Problems) {
        if self.schema != SCHEMA {
            problems.add(
                "schema",
                format!("schema {} is not known", self.schema),
                format!("this version reads schema = {SCHEMA}"),
            );
        }
        for (path, value, least) in [
            ("duration", self.duration, Duration::from_nanos(1)),
            ("drain", self.drain, Duration::ZERO),
        ] {
            if value < least || value > LONGEST_RUN {
                problems.add(
                    path,
                    format!("{path} = \"{value}\" cannot be simulated"),
                    format!("more than zero and at most \"{LONGEST_RUN}\""),
                );
            }
        }
        if self.seed > MAX_INTEGER {
            problems.add(
                "seed",
                format!("a seed of {} has no place in a file", self.seed),
                format!("at most {MAX_INTEGER}"),
            );
        }
        if self.is_too_large(problems) {
            return;
        }
        self.check_nodes(problems);
        for (name, link) in &self.links {
            problems.within(&format!("links.{}", key(name)), |p| {
                self.check_link(link, p)
            });
        }
        self.check_live(problems);
        self.check_wifis(problems);
        self.check_handoffs(problems);
        for (name, retrace) in &self.retraces {
            if let Some((setting, wrong, right)) = retrace.problem(self.duration) {
                problems.add(&format!("retraces.{}.{setting}", key(name)), wrong, right);
            }
        }
        let epochs = self.epochs();
        let mut names = BTreeSet::new();
        for (i, flow) in self.flows.iter().enumerate() {
            problems.within(&format!("flows[{i}]"), |p| {
                if !names.insert(&flow.name) {
                    p.add(
                        "name",
                        format!("two flows are called \"{}\"", flow.name),
                        "results go by the flow's name; give each its own",
                    );
                }
                self.check_flow(i, &epochs, p);
            });
        }
        self.check_intervals(problems);
        self.check_until(problems);
    }

    fn entries() -> Option<(&'static str, &'static str)> {
        Some(("links", "ends"))
    }
}

impl Scenario {
    /// Whether a count exceeds its limit; nothing else is checked then.
    fn is_too_large(&self, problems: &mut Problems) -> bool {
        let (nodes, links, flows) = (self.nodes.len(), self.links.len(), self.flows.len());
        let counts = [
            ("nodes", nodes),
            ("links", links),
            ("media", self.media.len()),
            ("flows", flows),
        ];
        let mut too_large = false;
        for (what, count) in counts.into_iter().filter(|(_, count)| *count > MOST) {
            too_large = true;
            problems.add(
                what,
                format!("{count} {what} are too many"),
                format!("at most {MOST}: packets and events have 16 bits for their number"),
            );
        }
        let most = (MOST_CHANGES / (nodes + links + flows).max(1)).min(MOST_HANDOFFS);
        if !too_large && !self.handoffs.is_empty() && self.epoch_begins().len() > most {
            too_large = true;
            problems.add(
                "handoffs",
                format!(
                    "{} handoffs are too many for {nodes} nodes, {links} links and {flows} flows",
                    self.handoffs.len()
                ),
                format!("routes change at most {most} times in a world of this size"),
            );
        }
        too_large
    }

    fn check_nodes(&self, problems: &mut Problems) {
        // A scenario of only retraces needs no nodes and links.
        if self.nodes.is_empty() && self.links.is_empty() && !self.retraces.is_empty() {
            return;
        }
        if self.nodes.len() < 2 {
            problems.add(
                "nodes",
                format!("{} nodes make no world", self.nodes.len()),
                "at least 2, each as a table: [nodes.server]",
            );
        }
        let stations = self.wifis().flat_map(|(_, wifi)| wifi.nodes.keys());
        let links = self.links.values().flat_map(|link| &link.ends);
        let linked: BTreeSet<&String> = links.chain(stations).collect();
        for name in self.nodes.keys().filter(|name| !linked.contains(name)) {
            problems.add(
                &format!("nodes.{}", key(name)),
                format!("no link ends at \"{name}\""),
                "leave the node out, or give it a link: [links.<name>], ends = [..]",
            );
        }
        let mut seen = BTreeMap::new();
        for (name, node) in &self.nodes {
            let Some(address) = node.address else {
                continue;
            };
            if let Some(other) = seen.insert(address, name) {
                problems.add(
                    &format!("nodes.{}.address", key(name)),
                    format!("{address} is the address of \"{other}\" already"),
                    "give each node its own address",
                );
            }
        }
    }

    pub(super) fn known_node(&self, path: &str, name: &str, problems: &mut Problems) {
        if !self.nodes.contains_key(name) {
            let help = one_of(self.nodes.keys());
            problems.add(path, format!("there is no node \"{name}\""), help);
        }
    }

    fn check_ends(&self, ends: &[String; 2], problems: &mut Problems) {
        self.known_node("ends[0]", &ends[0], problems);
        self.known_node("ends[1]", &ends[1], problems);
        if ends[0] == ends[1] {
            problems.add(
                "ends",
                format!("both ends are \"{}\"", ends[0]),
                "two different nodes",
            );
        }
    }

    fn check_link(&self, link: &LinkConfig, problems: &mut Problems) {
        self.check_ends(&link.ends, problems);
        if let Some(frame) = link.frame
            && !(1..=MAX_PACKET).contains(&frame.as_bytes())
        {
            problems.add(
                "frame",
                format!("a frame of {frame} cannot be"),
                format!("\"1 B\" to \"{MAX_PACKET} B\""),
            );
        }
        if link.delay.down.max(link.delay.up) > LONGEST_RUN {
            problems.add(
                "delay",
                format!("a delay of {} is longer than any run", link.delay),
                format!("at most \"{LONGEST_RUN}\""),
            );
        }
        for down in [true, false] {
            let errors = if down {
                &link.errors.down
            } else {
                &link.errors.up
            };
            let two_state = matches!(errors, ErrorModelConfig::TwoState { .. });
            if two_state && link.rate.of(down).varies() {
                problems.add(
                    "errors",
                    "errors of kind \"two-state\" count the bits of a constant rate",
                    "kind = \"two-state-arrival\": the state at that time decides",
                );
                break;
            }
        }
        let both = link.errors.down == link.errors.up;
        let two_state = matches!(
            link.errors.down,
            ErrorModelConfig::TwoState { .. } | ErrorModelConfig::TwoStateLoss { .. }
        );
        if link.shared_fades && !(both && two_state) {
            problems.add(
                "shared-fades",
                "only errors that run in real time, the same in both directions, can be shared",
                "errors = { kind = \"two-state\", ... } or no shared-fades",
            );
        }
        if link.paced_by.is_some() && link.services.is_empty() {
            problems.add(
                "paced-by",
                "without services there is no port to pace",
                "add [[links.<name>.services]], or leave out paced-by",
            );
        }
        if let Some(gsm) = &link.gsm {
            let paced = [true, false].map(|down| link.rate.of(down).varies());
            if !link.services.is_empty() || link.medium.is_some() || paced != [false; 2] {
                problems.add(
                    "gsm",
                    "a GSM circuit repairs its frames itself, on the grid of its own blocks",
                    "a rate, and no services and no medium beside it",
                );
            }
            gsm.check(problems);
        }
        link.check_header_compression(self, problems);
        if let Some(medium) = &link.medium {
            self.check_medium(medium, link, problems);
        }
        for (i, outage) in link.outages.iter().enumerate() {
            if outage.from >= outage.to || outage.to > LONGEST_RUN {
                problems.add(
                    &format!("outages[{i}]"),
                    format!("nothing lasts from {} to {}", outage.from, outage.to),
                    format!("`to` is later than `from`, and at most \"{LONGEST_RUN}\""),
                );
            }
        }
        let longest = link.payload().map_or(1, |frame| frame.as_bytes());
        if let Some(burst) = link.police.and_then(|police| police.too_short(longest)) {
            problems.add(
                "police",
                format!("no frame of {longest} B ever passes a bucket of {burst}"),
                format!("a burst of at least \"{longest} B\", and several times that as a rule"),
            );
        }
        if let Some([wrong, right]) = link.jitter.and_then(|jitter| jitter.problem()) {
            problems.add("jitter", wrong, right);
        }
        let ErrorsConfig { down, up } = &link.errors;
        if let Err(e) = down.validate().and_then(|()| up.validate()) {
            problems.add("errors", e.to_string(), "");
        }
        if link.services.is_empty() {
            if !link.classes.is_empty() {
                problems.add(
                    "classes",
                    "there are classes, but no services for them",
                    "add [[links.<name>.services]]",
                );
            }
            return;
        }
        if link.mark_above.is_some() && !link.services.is_empty() {
            problems.add(
                "mark-above",
                "the queues of services mark nothing",
                "a link without services, or no mark-above",
            );
        }
        if link.limit().down != link.limit().up {
            problems.add(
                "queue",
                "services are the same at both ends, and so is the queue in front of them",
                "one queue for both directions, or queue = { kind = ..., ... } at each service",
            );
        }
        if link.pacing_overhead.is_some() && link.pacing.unwrap_or_default() == Pacing::Off {
            problems.add(
                "pacing-overhead",
                "nothing is paced",
                "leave it out, or write pacing = \"nominal\" as well",
            );
        }
        let header = link.header.unwrap_or_default();
        let classes = link.classes.rules(&link.services);
        let mut wrong = config::check(header, &link.services, &classes);
        wrong.extend(link.classes.check(&link.services));
        wrong.extend(config::check_ends(Viewpoint::World, &link.services));
        let rate_limit = link.rate_limit.unwrap_or_default();
        wrong.extend(rate_limit.check(header));
        for wrong in wrong {
            problems.add(&wrong.path, wrong.problem, wrong.help);
        }
        for (i, service) in link.services.iter().enumerate() {
            let shares = service.aggregate.is_some_and(|a| a.options().is_some());
            if shares && header.is_live() {
                problems.add(
                    &format!("services[{i}].aggregate"),
                    "simulated packets stand for bytes and cannot share a frame",
                    "leave it out; live links do it",
                );
            }
        }
    }

    fn check_medium(&self, medium: &str, link: &LinkConfig, problems: &mut Problems) {
        if !self.media.contains_key(medium) {
            problems.add(
                "medium",
                format!("there is no medium \"{medium}\""),
                match self.media.is_empty() {
                    true => format!("[media.{}] with its kind", key(medium)),
                    false => one_of(self.media.keys()),
                },
            );
        }
        if let Some(MediumConfig::Wifi(wifi)) = self.media.get(medium) {
            self.check_air_link(wifi, link, problems);
        }
        if link.rate.down.varies() || link.rate.up.varies() {
            problems.add(
                "medium",
                "a link whose rate changes cannot wait for its turn on a shared medium",
                "one rate, or no medium",
            );
        }
        if link.paced_by == Some(PacedBy::Port) {
            problems.add(
                "paced-by",
                "only a shared medium itself knows when it is free",
                "paced-by = \"link\", or leave it out",
            );
        }
    }

    fn check_flow(&self, index: usize, epochs: &Epochs, problems: &mut Problems) {
        let flow = &self.flows[index];
        if flow.name.is_empty() {
            problems.add("name", "a flow needs a name", "results go by it");
        }
        self.check_ends(&flow.ends, problems);
        let known = flow.ends.iter().all(|n| self.nodes.contains_key(n));
        if !known || flow.ends[0] == flow.ends[1] {
            return;
        }
        if !epochs.joins(index) {
            problems.add(
                "ends",
                format!(
                    "no links join \"{}\" and \"{}\"",
                    flow.ends[0], flow.ends[1]
                ),
                "add links, put stations of a radio channel within each other's `receive-range-m`, or choose ends that are joined",
            );
            return;
        }
        if let Some(relay) = &flow.relay {
            self.check_relay(flow, relay, problems);
        }
        if let AppConfig::Bulk(app) = &flow.app
            && app.window_level.is_some()
            && !app.windows
        {
            problems.add(
                "app.window-level",
                "without windows = true no congestion window is measured",
                "add windows = true, or leave window-level out",
            );
        }
        if let Some(progress) = &flow.progress {
            let measured = matches!(flow.app, AppConfig::Bulk(_) | AppConfig::Conferencing(_));
            if !measured || flow.relay.is_some() {
                problems.add(
                    "progress",
                    "only a file and conferencing, from end to end, are measured so",
                    "leave progress out",
                );
            }
            problems.within("progress", |p| progress.check(self.duration, p));
        }
        if let TransportConfig::Clap(clap) = &flow.transport {
            self.check_clap(index, clap, epochs, problems);
        }
        self.check_packet(index, epochs, problems);
        let packet = flow.app.packet();
        let packet = packet.unwrap_or_else(|| self.usual_packet(index, epochs));
        check_app(flow, packet, problems);
    }

    fn check_relay(&self, flow: &FlowConfig, relay: &RelayConfig, problems: &mut Problems) {
        let RelayConfig::Split {
            at,
            pool,
            transport,
        } = relay;
        self.known_node("relay.at", at, problems);
        if flow.ends.contains(at) {
            problems.add(
                "relay.at",
                format!("\"{at}\" is an end of the flow"),
                "a node between the ends",
            );
        }
        let tcp = |transport: &TransportConfig| matches!(transport, TransportConfig::Tcp(_));
        let both = tcp(&flow.transport) && transport.as_ref().is_none_or(tcp);
        if !both || !matches!(flow.app, AppConfig::Bulk(_)) {
            problems.add(
                "relay",
                "only bulk transfers over TCP can be split",
                "app = { kind = \"bulk\" } and transport = { kind = \"tcp\" }, or no relay",
            );
        }
        if let AppConfig::Bulk(BulkConfig { takes: Some(_), .. }) = flow.app {
            problems.add(
                "app.takes",
                "behind a relay the receiving application takes all at once",
                "takes or relay, not both",
            );
        }
        if flow.encrypted {
            problems.add(
                "encrypted",
                "a relay cannot end a connection that it cannot read",
                "encrypted or relay, not both",
            );
        }
        if pool.as_bytes() == 0 {
            problems.add(
                "relay.pool",
                "a relay without room passes nothing on",
                "\"1 B\" or more, such as \"64 kB\"",
            );
        }
    }

    fn check_packet(&self, index: usize, epochs: &Epochs, problems: &mut Problems) {
        let flow = &self.flows[index];
        if let Some(packet) = flow.app.packet()
            && !(1..=MAX_PACKET).contains(&packet.as_bytes())
        {
            problems.add(
                "app.packet",
                format!("a packet of {packet} cannot be"),
                format!("\"1 B\" to \"{MAX_PACKET} B\""),
            );
        }
        let mut fits = |what: &str, at: &str, size: Size| {
            for (link, frame) in epochs.frames(index).filter(|(_, frame)| size > *frame) {
                if let Some(name) = self.links.keys().nth(link) {
                    problems.add(
                        at,
                        format!("{what} of {size} does not fit the link \"{name}\""),
                        format!("its frames take at most \"{frame}\""),
                    );
                }
            }
        };
        if let Some(packet) = flow.app.packet() {
            let whole = packet.as_bytes() + u64::from(flow.transport.header_len());
            fits("a packet", "app.packet", Size::from_bytes(whole));
        }
        if let TransportConfig::Tcp(tcp) = &flow.transport {
            fits("an acknowledgment", "transport.ack-size", tcp.longest_ack());
        }
        if let TransportConfig::Clap(clap) = &flow.transport {
            fits("a report", "transport", clap.longest_report());
        }
    }

    fn check_until(&self, problems: &mut Problems) {
        let Some(until) = &self.until else { return };
        match self.flows.iter().find(|f| &f.name == until) {
            Some(flow) if flow.app.ends() => {}
            Some(_) => problems.add(
                "until",
                format!("the flow \"{until}\" never ends"),
                "a bulk transfer with a size, or another application with a count",
            ),
            None => {
                let flows: Vec<&str> = self.flows.iter().map(|f| f.name.as_str()).collect();
                problems.add(
                    "until",
                    format!("there is no flow \"{until}\""),
                    format!("one of: {}", flows.join(", ")),
                );
            }
        }
    }
}

fn check_app(flow: &FlowConfig, packet: Size, problems: &mut Problems) {
    let tcp = matches!(flow.transport, TransportConfig::Tcp(_));
    let clap = matches!(flow.transport, TransportConfig::Clap(_));
    let conferencing = matches!(flow.app, AppConfig::Conferencing(_));
    let file = matches!(flow.app, AppConfig::Bulk(_));
    if (!clap && tcp == conferencing) || (clap && !file) {
        problems.add(
            "transport.kind",
            format!(
                "{} does not run over {}",
                flow.app.kind(),
                flow.transport.kind()
            ),
            if conferencing { "\"udp\"" } else { "\"tcp\"" },
        );
    }
    if let TransportConfig::Tcp(config) = &flow.transport
        && let Err(reason) = config.validate()
    {
        problems.add("transport", reason, "");
    }
    match flow.app.count() {
        Some(0) => problems.add("app.count", "app.count is zero", "at least 1"),
        Some(MAX_INTEGER..) => problems.add(
            "app.count",
            "so many have no place in a file",
            format!("at most {MAX_INTEGER}"),
        ),
        _ => {}
    }
    let mut at_least_one = |path: &str, value: Option<u64>, what: &str| {
        if value == Some(0) {
            problems.add(path, format!("{path} is zero"), format!("at least {what}"));
        }
    };
    match &flow.app {
        AppConfig::Bulk(app) => {
            at_least_one("app.size", app.size.map(|s| s.as_bytes()), "\"1 B\"");
        }
        AppConfig::Web(app) => app.check(problems),
        AppConfig::Telnet(app) => app.check(packet, problems),
        AppConfig::Mail(app) => app.check(problems),
        AppConfig::Pages(app) => {
            at_least_one("app.request", Some(app.request.as_bytes()), "\"1 B\"");
            at_least_one("app.reply", Some(app.reply.as_bytes()), "\"1 B\"");
        }
        AppConfig::Conferencing(app) => check_conferencing(app, packet, problems),
    }
}

fn check_conferencing(app: &ConferencingConfig, packet: Size, problems: &mut Problems) {
    if app.talk < SHORTEST_TALK {
        problems.add(
            "app.talk",
            format!("a talk period of {} holds no packet", app.talk),
            format!("at least \"{SHORTEST_TALK}\""),
        );
    }
    if app.rate.transmission_time(packet.as_bytes() as usize) < SHORTEST_TALK {
        problems.add(
            "app.rate",
            format!("{} makes more than a million packets a second", app.rate),
            "a lower rate, or larger packets",
        );
    }
}
