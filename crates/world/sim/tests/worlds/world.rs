//! Random worlds: a tree of nodes, a link for each branch, stations around its root, applications anywhere.

use std::fmt::Write as _;

use airlane_sim::Scenario;
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) seed: u32,
    pub(crate) seconds: u32,
    pub(crate) drain_ms: u32,
    /// Link `i` connects node `i + 1` to an earlier one.
    pub(crate) links: Vec<Link>,
    pub(crate) air: Option<Air>,
    pub(crate) flows: Vec<Flow>,
}

#[derive(Clone, Debug)]
pub(crate) struct Link {
    attach: usize,
    pub(crate) rates_kbps: [u32; 2],
    /// Downlink sending opportunities: milliseconds from one to the next.
    pub(crate) opportunities_ms: Option<Vec<u32>>,
    delay_ms: u32,
    frame: u32,
    queue: u32,
    errors: String,
    outage_ms: Option<[u32; 2]>,
    police_kbps: Option<u32>,
    medium: &'static str,
    pub(crate) served: Option<Served>,
}

#[derive(Clone, Debug)]
pub(crate) struct Served {
    schemes: Vec<&'static str>,
    scheduler: &'static str,
    pub(crate) header: &'static str,
    handed_over: &'static str,
    queue: &'static str,
    by_link: bool,
    /// For services that may give up.
    budget: bool,
}

/// Stations `w0` and so on within range of node `n0`, which is a station, too.
#[derive(Clone, Debug)]
pub(crate) struct Air {
    stations: usize,
    retries: &'static str,
    noise: f64,
    /// A link with services between the first of them and the root.
    served: Option<Served>,
}

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    ends: [usize; 2],
    pub(crate) app: &'static str,
    /// Nanoseconds.
    pub(crate) start: u32,
    split: bool,
}

/// The file from which a link with opportunities reads its times.
pub(crate) fn trace_file(link: usize) -> String {
    format!("l{link}.trace")
}

const SCHEMES: [&str; 9] = [
    "{ kind = \"default\" }",
    "{ kind = \"sr-m2\" }",
    "{ kind = \"sr-m2\", window = 3, timers = \"relaxed\", timer-origin = \"hand-over\" }",
    "{ kind = \"rlp\", retries = 2, timers = \"tight\" }",
    "{ kind = \"rlp-oos\", window = 8 }",
    "{ kind = \"gbn\" }",
    "{ kind = \"sr\" }",
    "{ kind = \"sr-bitmap\" }",
    "{ kind = \"xor\", block = 4 }",
];
const QUEUES: [&str; 4] = [
    "",
    "queue = { kind = \"drop-tail\", limit = \"20 packets\" }\n",
    "queue = { kind = \"fq-codel\" }\n",
    "queue = { kind = \"drop-tail\", limit = \"9 packets\" }\n",
];
const MEDIA: [&str; 3] = ["", "medium = \"half\"\n", "medium = \"full\"\n"];
/// All but the last can start anywhere; the last starts at a station.
pub(crate) const APPS: [&str; 16] = [
    "dscp = \"EF\"\ntransport = { kind = \"udp\" }\n\
     app = { kind = \"conferencing\", rate = \"32 kbit/s\", packet = \"80 B\", talk = \"1 s\", silence = \"0.5 s\" }\n",
    "transport = { kind = \"udp\" }\n\
     app = { kind = \"conferencing\", rate = \"700 kbit/s\", talk = \"900000000 s\", silence = \"0 s\" }\n",
    "dscp = \"EF\"\ntransport = { kind = \"udp\" }\n\
     app = { kind = \"conferencing\", rate = \"64 kbit/s\", packet = \"80 B\", talk = \"900000000 s\", silence = \"0 s\", lasts = \"3 s\" }\n",
    "transport = { kind = \"tcp\" }\napp = { kind = \"bulk\" }\n",
    "transport = { kind = \"tcp\", profile = \"ns2-1999\", window = 7 }\napp = { kind = \"bulk\", size = \"20 kB\" }\n",
    "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\napp = { kind = \"bulk\" }\n",
    "transport = { kind = \"tcp\", profile = \"bsd-1997\", header-size = \"40 B\" }\napp = { kind = \"bulk\" }\n",
    "transport = { kind = \"tcp\", congestion = \"bbr\" }\napp = { kind = \"bulk\" }\n",
    "transport = { kind = \"tcp\" }\napp = { kind = \"bulk\", size = \"30 kB\", takes = \"50 kbit/s\" }\n",
    "transport = { kind = \"tcp\" }\n\
     app = { kind = \"pages\", request = \"200 B\", reply = \"1 kB\", pause = \"20 ms\" }\n",
    "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\napp = { kind = \"web\" }\n",
    "transport = { kind = \"tcp\" }\n\
     app = { kind = \"web\", parallel = 2, persistent = true, completion = \"delivered\", \
     files = \"total\", think = \"20 ms\" }\n",
    "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\n\
     app = { kind = \"telnet\", interval = \"50 ms\", keystroke = \"40 B\" }\n",
    "transport = { kind = \"tcp\" }\napp = { kind = \"mail\", pause = \"0 s\" }\n",
    "encrypted = true\ntransport = { kind = \"tcp\", freeze = true }\napp = { kind = \"bulk\" }\n",
    "transport = { kind = \"clap\" }\napp = { kind = \"bulk\", size = \"20 kB\" }\n",
];

fn errors() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{ kind = \"none\" }".to_owned()),
        (0.0..=1.0).prop_map(uniform),
        (0.0..0.1).prop_map(uniform),
        Just(uniform(1.0)),
        (1u32..3_000, 1u32..1_000, 0.0..0.02).prop_map(|(good, bad, ber)| {
            format!(
                "{{ kind = \"two-state-arrival\", good = \"{good} ms\", bad = \"{bad} ms\", ber_good = 1e-6, ber_bad = {ber:?} }}"
            )
        }),
        (0.0..=1.0, 0.01..=1.0, 0.0..0.1, 0.0..=1.0).prop_map(|(worse, better, good, bad)| {
            format!(
                "{{ kind = \"gilbert-elliott\", good_to_bad = {worse:?}, bad_to_good = {better:?}, \
                 loss_good = {good:?}, loss_bad = {bad:?} }}"
            )
        }),
        (500u32..100_000).prop_map(|mean| format!("{{ kind = \"byte-exponential\", mean = \"{mean} B\" }}")),
    ]
}

fn uniform(rate: f64) -> String {
    format!("{{ kind = \"uniform\", rate = {rate:?} }}")
}

prop_compose! {
    fn served()(
        schemes in prop::collection::vec(prop::sample::select(&SCHEMES[..]), 1..4),
        scheduler in prop::sample::select(&["scfq", "fifo"][..]),
        header in prop::sample::select(&["study", "live"][..]),
        handed_over in prop::sample::select(&["1", "3", "\"unlimited\""][..]),
        queue in prop::sample::select(&QUEUES[..]),
        by_link in any::<bool>(),
        budget in any::<bool>(),
    ) -> Served {
        Served { schemes, scheduler, header, handed_over, queue, by_link, budget }
    }
}

prop_compose! {
    fn link()(
        attach in 0usize..4,
        down_kbps in 10u32..2_000,
        up_kbps in 10u32..2_000,
        opportunities_ms in prop::option::weighted(0.2, prop::collection::vec(0u32..200, 1..20)),
        delay_ms in 0u32..200,
        // An acknowledgment of modern TCP has up to 80 bytes.
        frame in 80u32..1_500,
        queue in 0u32..60,
        errors in errors(),
        outage_ms in prop::option::weighted(0.2, [0u32..8_000, 1u32..4_000]),
        police_kbps in prop::option::weighted(0.1, 5u32..1_000),
        medium in prop::sample::select(&MEDIA[..]),
        served in prop::option::of(served()),
    ) -> Link {
        // The sum of the times is the length of a round, which must not be 0.
        let opportunities_ms = opportunities_ms.map(|mut times| { times.push(1); times });
        let medium = if opportunities_ms.is_some() { "" } else { medium };
        Link {
            attach, rates_kbps: [down_kbps, up_kbps], opportunities_ms, delay_ms, frame, queue, errors, outage_ms,
            police_kbps, medium, served,
        }
    }
}

prop_compose! {
    fn air()(
        stations in 1usize..4,
        retries in prop::sample::select(&["on", "off", "unlimited"][..]),
        noise in prop_oneof![Just(0.0), 0.0..=1.0],
        served in prop::option::weighted(0.3, served()),
    ) -> Air {
        Air { stations, retries, noise, served }
    }
}

prop_compose! {
    fn flow()(
        ends in [0usize..64, 0usize..64],
        app in prop::sample::select(&APPS[..]),
        start in prop_oneof![Just(0), 0u32..1_000_000_000, 0u32..3_000_000_000],
        split in prop::bool::weighted(0.3),
    ) -> Flow {
        Flow { ends, app, start, split }
    }
}

prop_compose! {
    pub(crate) fn any_world()(
        seed in 0u32..100_000,
        seconds in 1u32..20,
        drain_ms in prop_oneof![Just(0), 0u32..2_000, Just(30_000)],
        links in prop::collection::vec(link(), 1..4),
        air in prop::option::weighted(0.3, air()),
        flows in prop::collection::vec(flow(), 1..5),
    ) -> World {
        World { seed, seconds, drain_ms, links, air, flows }
    }
}

impl World {
    /// Names of the nodes: those of the tree, then the stations.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let stations = self.air.as_ref().map_or(0, |air| air.stations);
        let tree = (0..=self.links.len()).map(|n| format!("n{n}"));
        tree.chain((0..stations).map(|w| format!("w{w}"))).collect()
    }

    pub(crate) fn parent(&self, link: usize) -> usize {
        self.links[link].attach % (link + 1)
    }

    /// The nodes at the ends of a flow.
    pub(crate) fn ends(&self, flow: &Flow) -> [usize; 2] {
        let nodes = self.nodes().len();
        let stations = nodes - 1 - self.links.len();
        let [from, to] = flow.ends;
        // CLAP starts at a station, and its reports do not fit into small frames.
        if stations > 0 && flow.app == APPS[15] {
            return [nodes - 1 - from % stations, 0];
        }
        let from = from % nodes;
        [from, (from + 1 + to % (nodes - 1)) % nodes]
    }

    /// The nodes on the path from one to another, both included.
    pub(crate) fn way(&self, [from, to]: [usize; 2]) -> Vec<usize> {
        let to_root = |mut node: usize| {
            let mut way = vec![node];
            while node > 0 {
                let in_tree = node <= self.links.len();
                node = if in_tree { self.parent(node - 1) } else { 0 };
                way.push(node);
            }
            way
        };
        let (mut up, mut down) = (to_root(from), to_root(to));
        // The paths to the root meet at the last node that both contain.
        while up.len() > 1 && down.len() > 1 && up[up.len() - 2] == down[down.len() - 2] {
            up.pop();
            down.pop();
        }
        // Stations are within range of each other.
        let station = |node: usize| node > self.links.len();
        if station(from) && station(to) {
            return vec![from, to];
        }
        down.pop();
        up.extend(down.into_iter().rev());
        up
    }

    /// Whether packets between these nodes go over the radio without a link.
    pub(crate) fn is_air(&self, ends: [usize; 2]) -> bool {
        ends.iter().any(|node| *node > self.links.len())
    }

    /// The application of a flow: CLAP needs a station as its sender.
    pub(crate) fn app(&self, flow: &Flow) -> &'static str {
        let stations = self.air.as_ref().filter(|air| air.served.is_none());
        match flow.app {
            app if app == APPS[15] && stations.is_none() => APPS[4],
            app => app,
        }
    }

    /// The node of the relay, if the flow has one.
    pub(crate) fn relay(&self, flow: &Flow) -> Option<usize> {
        let way = self.way(self.ends(flow));
        let app = self.app(flow);
        let tcp = app.starts_with("transport = { kind = \"tcp\"") && app.contains("\"bulk\"");
        let splits = flow.split && tcp && !app.contains("takes") && way.len() > 2;
        splits.then(|| way[1])
    }

    /// The scenario file, with `name` for the names of the flows, in the order of `order`.
    pub(crate) fn toml(&self, order: &[usize], name: &dyn Fn(usize) -> String) -> String {
        let mut text = String::new();
        self.write(&mut text, order, name).expect("text grows");
        text
    }

    fn write(
        &self,
        text: &mut String,
        order: &[usize],
        name: &dyn Fn(usize) -> String,
    ) -> std::fmt::Result {
        let Self {
            seed,
            seconds,
            drain_ms,
            ..
        } = self;
        write!(
            text,
            "schema = 1\nname = \"random\"\nseed = {seed}\nduration = \"{seconds} s\"\ndrain = \"{drain_ms} ms\"\n\
             [media.half]\nkind = \"half-duplex\"\noverhead = \"1 ms\"\n\
             [media.full]\nkind = \"full-duplex\"\noverhead = \"1 ms\"\n"
        )?;
        let nodes = self.nodes();
        nodes
            .iter()
            .try_for_each(|n| writeln!(text, "[nodes.{n}]"))?;
        if let Some(air) = &self.air {
            write!(
                text,
                "[media.air]\nkind = \"wifi\"\nretries = \"{}\"\nnoise = [{{ loss = {:?}, on = \"70 ms\", off = \"30 ms\" }}]\n\
                 [media.air.nodes]\nn0 = [0, 0]\n",
                air.retries, air.noise
            )?;
            (0..air.stations).try_for_each(|w| writeln!(text, "w{w} = [{}, 3]", w * 2))?;
        }
        for (i, link) in self.links.iter().enumerate() {
            link.write(text, i, self.parent(i))?;
        }
        if let Some(served) = self.air.as_ref().and_then(|air| air.served.as_ref()) {
            write!(
                text,
                "[links.w]\nends = [\"n0\", \"w0\"]\nmedium = \"air\"\nrate = \"5 Mbit/s\"\ndelay = \"1 ms\"\nframe = \"1000 B\"\n"
            )?;
            served.write(text, "w", false)?;
        }
        for index in order {
            let flow = &self.flows[*index];
            let [a, b] = self.ends(flow);
            write!(
                text,
                "[[flows]]\nname = \"{}\"\nends = [\"{}\", \"{}\"]\nstart = \"{} ns\"\n",
                name(*index),
                nodes[a],
                nodes[b],
                flow.start
            )?;
            if let Some(at) = self.relay(flow) {
                writeln!(
                    text,
                    "relay = {{ kind = \"split\", at = \"{}\" }}",
                    nodes[at]
                )?;
            }
            // There is no frame size between two stations.
            let app = self.app(flow);
            let way = self.way([a, b]);
            let framed = way.iter().any(|node| (1..=self.links.len()).contains(node));
            match app
                .strip_suffix(" }\n")
                .filter(|_| !framed && !app.contains("packet = "))
            {
                Some(app) => writeln!(text, "{app}, packet = \"500 B\" }}")?,
                None => text.push_str(app),
            }
        }
        Ok(())
    }

    /// The scenario of this file, with its traces.
    pub(crate) fn load(&self, text: &str) -> Scenario {
        let mut scenario =
            Scenario::from_toml(text, "random.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let loaded = scenario.load_traces(|file| {
            let file = file.to_string_lossy();
            let link = (0..self.links.len()).find(|link| trace_file(*link) == file);
            let times = link.and_then(|link| self.links[link].trace());
            times.ok_or_else(|| format!("no {file}"))
        });
        loaded.unwrap_or_else(|e| panic!("{e}\n{text}"));
        scenario
    }

    /// The scenario with the flows' own order and names.
    pub(crate) fn scenario(&self) -> (Scenario, String) {
        let order: Vec<usize> = (0..self.flows.len()).collect();
        let text = self.toml(&order, &|index| format!("f{index}"));
        (self.load(&text), text)
    }
}

impl Flow {
    /// Replaced by a call, which draws only its talk time, and talks longer than any run.
    pub(crate) fn drawing_nothing(&self) -> Self {
        let calls = [APPS[1], APPS[2]];
        let app = calls[self.start as usize % calls.len()];
        let split = false;
        Self {
            app,
            split,
            ..self.clone()
        }
    }
}

impl Air {
    /// Whether the radio channel carries a link with services.
    pub(crate) fn is_served(&self) -> bool {
        self.served.is_some()
    }
}

impl Link {
    pub(crate) fn is_half_duplex(&self) -> bool {
        self.medium == MEDIA[1]
    }

    /// The file of its opportunities.
    pub(crate) fn trace(&self) -> Option<Vec<u8>> {
        let mut ms = 0;
        let lines = self.opportunities_ms.as_ref()?.iter().map(|step| {
            ms += step;
            format!("{ms}\n")
        });
        Some(lines.collect::<String>().into_bytes())
    }

    fn write(&self, text: &mut String, number: usize, parent: usize) -> std::fmt::Result {
        let Self {
            rates_kbps: [down, up],
            delay_ms,
            frame,
            queue,
            errors,
            medium,
            ..
        } = self;
        let down = match self.opportunities_ms {
            Some(_) => format!(
                "{{ kind = \"opportunities\", file = \"{}\" }}",
                trace_file(number)
            ),
            None => format!("\"{down} kbit/s\""),
        };
        write!(
            text,
            "[links.l{number}]\nends = [\"n{parent}\", \"n{}\"]\nrate = {{ down = {down}, up = \"{up} kbit/s\" }}\n\
             delay = \"{delay_ms} ms\"\nframe = \"{frame} B\"\nqueue = \"{queue} packets\"\nerrors = {errors}\n{medium}",
            number + 1
        )?;
        if let Some([from, lasts]) = self.outage_ms {
            let to = from + lasts;
            writeln!(
                text,
                "outages = [{{ from = \"{from} ms\", to = \"{to} ms\" }}]"
            )?;
        }
        if let Some(kbps) = self.police_kbps {
            writeln!(
                text,
                "police = {{ rate = \"{kbps} kbit/s\", burst = \"4 kB\" }}"
            )?;
        }
        match &self.served {
            Some(served) => served.write(text, &format!("l{number}"), medium.is_empty()),
            None => Ok(()),
        }
    }
}

impl Served {
    /// Whether its queue hashes flows.
    pub(crate) fn hashes_flows(&self) -> bool {
        self.queue == QUEUES[2] || (self.queue == QUEUES[0] && self.header == "live")
    }

    fn write(&self, text: &mut String, link: &str, paced: bool) -> std::fmt::Result {
        write!(
            text,
            "scheduler = {{ kind = \"{}\" }}\nheader = \"{}\"\nhanded-over = {}\n",
            self.scheduler, self.header, self.handed_over
        )?;
        if paced && self.by_link {
            writeln!(text, "paced-by = \"link\"")?;
        }
        for (s, scheme) in self.schemes.iter().enumerate() {
            let number = s + 1;
            write!(
                text,
                "[[links.{link}.services]]\nnumber = {number}\nname = \"s{number}\"\nrate = 0.{number}\n\
                 scheme = {scheme}\n{}",
                self.queue
            )?;
            if self.budget && scheme.contains("rlp") {
                writeln!(text, "budget = \"300 ms\"")?;
            }
        }
        write!(
            text,
            "[[links.{link}.classes]]\nmatch = {{ protocol = \"tcp\" }}\nservice = \"s1\"\n\
             [[links.{link}.classes]]\nmatch = {{ dscp = \"EF\" }}\nservice = \"s{}\"\n",
            self.schemes.len()
        )
    }
}
