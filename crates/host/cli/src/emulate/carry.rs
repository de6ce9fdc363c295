//! What of a scenario runs in the kernel: the emulator's file, those of live nodes, and flows.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlane_base::config::{Problems, Validate as _, key};
use airlane_emulate::flow::{App, Flow, Tcp};
use airlane_live::air::AirConfig;
use airlane_live::config::{LiveConfig, PeerEndpoint, Security, UnderlayConfig};
use airlane_live::netlink::Cidr;
use airlane_live::security::new_key;
use airlane_sim::scenario::{AppConfig, FlowConfig, LinkConfig};
use airlane_sim::{Prepared, Scenario};
use anyhow::Context as _;
use toml::{Table, Value};

use super::refuse::{ecn_of, notes_of, refuse, setting};
use crate::explain::to_toml;
use crate::fault::BadInput;
use crate::output;

/// The hosts on the wire, first end first.
const WIRE: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
/// The emulator's interfaces, and the keys of a link that its file has, too.
const INTERFACES: [&str; 2] = ["to-left", "to-right"];
const SHARED: [&str; 7] = [
    "rate", "delay", "jitter", "queue", "errors", "outages", "police",
];
/// Bytes of timestamps, which the kernel counts to its segments.
const TIMESTAMPS: u64 = 12;
/// A scenario that can be emulated.
#[derive(Debug)]
pub(super) struct Carriage {
    air: AirConfig,
    /// What live nodes run at the ends, if they do.
    live: Option<[LiveConfig; 2]>,
    /// Which end of the link is the first end of each flow, and what its TCP is given.
    flows: Vec<(usize, Option<Tcp>)>,
    until: Option<usize>,
    ecn: bool,
    notes: Vec<String>,
}

impl Carriage {
    /// Reads what runs in the kernel out of a scenario whose files are in `folder`, an absolute path.
    ///
    /// # Errors
    /// Everything that cannot be emulated, by name.
    pub(super) fn of(scenario: &Scenario, folder: &Path) -> Result<Self, Problems> {
        let resolved = scenario.resolved();
        let mut problems = Problems::new();
        refuse(&resolved, &mut problems);
        let (Some((name, link)), true) = (scenario.links.first_key_value(), problems.is_empty())
        else {
            return Err(problems);
        };
        let is_live = link.node.is_some();
        let at = format!("links.{}", key(name));
        let made = resolved.links.get(name).context("the link is there");
        let made = made.and_then(|resolved| air(name, resolved, folder));
        let made =
            made.and_then(|air| Ok((air, is_live.then(|| live(scenario, link)).transpose()?)));
        let (air, live) = match made {
            Ok(made) => made,
            Err(error) => {
                problems.add(&at, format!("this link cannot be emulated: {error}"), "");
                return Err(problems);
            }
        };
        problems.within(&at, |problems| air.validate(problems));
        if !problems.is_empty() {
            return Err(problems);
        }
        // The kernel finds what the path takes, unless the scenario says less.
        let is_stated = |flow: &FlowConfig| flow.app.packet().is_some() || link.frame.is_some();
        let flows = scenario
            .flows
            .iter()
            .zip(&resolved.flows)
            .map(|(flow, resolved)| {
                let from = usize::from(flow.ends[0] != link.ends[0]);
                let packet = resolved.app.packet().filter(|_| is_stated(flow));
                let tcp = setting(&flow.transport, "congestion").map(|congestion| Tcp {
                    congestion,
                    segment: packet.map(|packet| (packet.as_bytes() + TIMESTAMPS) as u32),
                });
                (from, tcp)
            });
        let until = scenario.until.as_ref();
        let until = until.and_then(|name| scenario.flows.iter().position(|f| f.name == *name));
        Ok(Self {
            flows: flows.collect(),
            until,
            ecn: scenario.flows.iter().any(|flow| ecn_of(flow) == Some(true)),
            live,
            air,
            notes: scenario.flows.iter().filter_map(notes_of).collect(),
        })
    }

    /// What the kernel does otherwise.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) const fn is_live(&self) -> bool {
        self.live.is_some()
    }

    pub(super) const fn ecn(&self) -> bool {
        self.ecn
    }

    pub(super) const fn until(&self) -> Option<usize> {
        self.until
    }

    /// Checks that the kernel has all congestion controls.
    pub(super) fn check_kernel(&self) -> anyhow::Result<()> {
        let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let has = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        let mut wanted = self.flows.iter().filter_map(|(_, tcp)| tcp.as_ref());
        match wanted.find(|tcp| !has.split_whitespace().any(|name| name == tcp.congestion)) {
            None => Ok(()),
            Some(Tcp { congestion, .. }) => Err(BadInput(format!(
                "this kernel has no congestion control {congestion}: `modprobe tcp_{congestion}`, or one of {}",
                has.trim().replace(' ', ", ")
            ))
            .into()),
        }
    }

    /// The emulator's file.
    pub(super) fn air(&self) -> anyhow::Result<String> {
        to_toml(&self.air)
    }

    /// The hosts' addresses on the path of the flows.
    pub(super) fn addresses(&self) -> [Ipv4Addr; 2] {
        match &self.live {
            None => WIRE,
            Some(live) => [0, 1].map(|end| inside(&live[end]).unwrap_or(WIRE[end])),
        }
    }

    /// Writes keys and files of live nodes, if there are any.
    pub(super) fn live_files(&self, folder: &Path) -> anyhow::Result<Option<[PathBuf; 2]>> {
        let Some(live) = &self.live else {
            return Ok(None);
        };
        let keys = ["left.key", "right.key"].map(|name| folder.join(name));
        let public = [new_key(&keys[0])?, new_key(&keys[1])?];
        let mut files = Vec::new();
        for end in [0, 1] {
            let mut config = live[end].clone();
            if let Some(Security::Keys(own)) = &mut config.link.security {
                own.private_key.clone_from(&keys[end]);
                if own.peer_key.is_some() {
                    own.peer_key = Some(public[1 - end]);
                }
            }
            for peer in &mut config.peers {
                if peer.key.is_some() {
                    peer.key = Some(public[1 - end]);
                }
            }
            let file = folder.join(["left.toml", "right.toml"][end]);
            output::write(&to_toml(&config)?, Some(&file))?;
            files.push(file);
        }
        Ok(files.try_into().ok())
    }

    /// The flows of a run.
    pub(super) fn flows(&self, world: &Prepared, seed: u64) -> Vec<Flow> {
        let all = world.scenario().flows.iter().zip(&self.flows).enumerate();
        all.map(|(i, (flow, (from, tcp)))| Flow {
            name: flow.name.clone(),
            from: *from,
            start: std(flow.start),
            tos: u32::from(flow.dscp.value()) << 2,
            port: flow.port.unwrap_or_default(),
            app: self.app(world, seed, i, tcp.as_ref()),
        })
        .collect()
    }

    fn app(&self, world: &Prepared, seed: u64, index: usize, tcp: Option<&Tcp>) -> App {
        let flow = &world.scenario().flows[index];
        match (&flow.app, tcp) {
            (AppConfig::Bulk(app), Some(tcp)) => App::File {
                tcp: tcp.clone(),
                size: app.size.map(|size| size.as_bytes()),
                back: std(*self.air.delay.of(self.flows[index].0 == 1)),
            },
            (AppConfig::Pages(app), Some(tcp)) => App::Pages {
                tcp: tcp.clone(),
                request: app.request.as_bytes() as usize,
                reply: app.reply.as_bytes() as usize,
                pause: std(app.pause),
                count: app.count,
            },
            _ => {
                let start = airlane_base::Instant::ORIGIN + flow.start;
                let all = world.departures(index, seed, 0).into_iter();
                App::Datagrams {
                    length: flow
                        .app
                        .packet()
                        .map_or(0, |packet| packet.as_bytes() as usize),
                    departures: all.map(|at| std(at.saturating_since(start))).collect(),
                }
            }
        }
    }
}

fn std(time: airlane_base::Duration) -> Duration {
    Duration::from_nanos(time.as_nanos())
}

/// The emulator's file of a link: the keys that both know. Files are named from the root on.
fn air(name: &str, link: &LinkConfig, folder: &Path) -> anyhow::Result<AirConfig> {
    let mut link = Table::try_from(link)?;
    link.retain(|name, _| SHARED.contains(&name));
    link.insert("schema".to_owned(), Value::Integer(1));
    link.insert("name".to_owned(), name.into());
    link.insert("interfaces".to_owned(), INTERFACES.to_vec().into());
    let mut air = Value::Table(link);
    name_from_root(&mut air, folder);
    Ok(air.try_into()?)
}

/// Makes each `file` of a table absolute.
fn name_from_root(value: &mut Value, folder: &Path) {
    for (name, value) in value.as_table_mut().into_iter().flatten() {
        match value.as_str().filter(|_| name == "file") {
            Some(file) => *value = folder.join(file).display().to_string().into(),
            None => name_from_root(value, folder),
        }
    }
}

/// What the ends of a live link run, first end first: the addresses are those of the wire, the keys come later.
fn live(scenario: &Scenario, link: &LinkConfig) -> anyhow::Result<[LiveConfig; 2]> {
    let mut files = scenario.live_files();
    let mut take = |end| {
        files
            .remove(end)
            .context("an end of the link runs no live node")
    };
    let [first, second] = link.ends.each_ref();
    let mut ends = [take(first)?, take(second)?];
    let listening = [0, 1].map(|end| match &mut ends[end].link.underlay {
        UnderlayConfig::Udp { listen, .. } => {
            listen.set_ip(WIRE[end].into());
            listen.to_string()
        }
        UnderlayConfig::Ethernet { .. } => String::new(),
    });
    let addresses = ends.each_ref().map(inside);
    for (end, config) in ends.iter_mut().enumerate() {
        config.tun.name = "air0".to_owned();
        let other = addresses[1 - end].map(|address| Cidr {
            address: address.into(),
            prefix: 32,
        });
        config.tun.routes = other.into_iter().collect();
        // Every end has a socket of its own.
        config.control.group = None;
        let far: PeerEndpoint = listening[1 - end].parse().map_err(BadInput)?;
        if let UnderlayConfig::Udp {
            peer: Some(peer), ..
        } = &mut config.link.underlay
        {
            *peer = far.clone();
        }
        for peer in config
            .peers
            .iter_mut()
            .filter_map(|peer| peer.address.as_mut())
        {
            *peer = far.clone();
        }
    }
    Ok(ends)
}

/// The address of a node inside its link.
fn inside(config: &LiveConfig) -> Option<Ipv4Addr> {
    config
        .tun
        .addresses
        .iter()
        .find_map(|own| match own.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        })
}

#[cfg(test)]
mod tests {
    use airlane_base::config::load;

    use super::*;

    const SCENARIO: &str = r#"
schema = 1
name = "all that both know"
duration = "3 s"
until = "page"
[nodes.b]
[nodes.a.live]
link = { services = [{ number = 1, name = "call", goal = "voice" }] }
[links.radio]
ends = ["b", "a"]
rate = { down = "10 Mbit/s", up = { kind = "steps", every = "1 s", rates = ["1 Mbit/s", "2 Mbit/s"] } }
delay = { down = "20 ms", up = "5 ms" }
jitter = { spread = "1 ms" }
queue = "30 packets"
errors = { kind = "blocks", file = "car.blocks" }
outages = [{ from = "1 s", to = "2 s" }]
police = { rate = "5 Mbit/s", burst = "20 kB" }
node = "live"
[[flows]]
name = "call"
ends = ["a", "b"]
start = "1 s"
dscp = "EF"
transport = { kind = "udp" }
app = { kind = "cbr", packet = "160 B", rate = "64 kbit/s", lasts = "100 ms" }
[[flows]]
name = "page"
ends = ["b", "a"]
start = "75 ms"
transport = { kind = "tcp", congestion = "reno", ecn = false }
app = { kind = "pages", request = "100 B", reply = "1 kB", packet = "1000 B", count = 3 }
"#;

    fn carriage(text: &str) -> (Carriage, Scenario) {
        let scenario = Scenario::from_toml(text, "x.toml").unwrap();
        let Ok(carriage) = Carriage::of(&scenario, Path::new("/there")) else {
            panic!("refused");
        };
        (carriage, scenario)
    }

    #[test]
    fn the_emulator_gets_what_it_knows_of_a_link() {
        let (carriage, scenario) = carriage(SCENARIO);
        let air: AirConfig = load(&carriage.air().unwrap(), "air.toml").unwrap();
        let link = &scenario.links["radio"];
        assert_eq!((&*air.name, &air.delay), ("radio", &link.delay));
        assert_eq!((&air.rate, &air.jitter), (&link.rate, &link.jitter));
        assert_eq!((Some(air.queue), air.police), (link.queue, link.police));
        assert_eq!(air.outages, link.outages);
        let text = carriage.air().unwrap();
        assert!(text.contains("\"/there/car.blocks\""), "{text}");
        // What a scenario does not say is what the simulator takes.
        let unsaid = SCENARIO.replace("queue = \"30 packets\"\n", "");
        let text = self::carriage(&unsaid).0.air().unwrap();
        assert!(text.contains("50 packets"), "{text}");
    }

    #[test]
    fn live_ends_know_each_other_and_their_services() {
        let (carriage, _) = carriage(SCENARIO);
        let folder = tempfile::tempdir().unwrap();
        let files = carriage.live_files(folder.path()).unwrap().unwrap();
        let read = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).unwrap();
            load::<LiveConfig>(&text, "end.toml").unwrap()
        };
        // The first end of the link is on the left.
        let [first, second] = files.each_ref().map(read);
        assert_eq!(first.tun.addresses, second.tun.routes);
        assert_eq!(
            carriage.addresses(),
            [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1)]
        );
        let peers = [&first, &second].map(|end| end.link.underlay.peer().unwrap().to_string());
        assert_eq!(peers, ["192.0.2.2:7007", "192.0.2.1:7007"]);
        assert_eq!(second.link.services[0].name, "call");
        let Some(Security::Keys(keys)) = &first.link.security else {
            panic!("no keys");
        };
        let far = airlane_live::security::read_key(&folder.path().join("right.key")).unwrap();
        assert_eq!(keys.peer_key, Some(far.public()));
        // Without live ends the flows use the wire.
        let bare = SCENARIO
            .replace("node = \"live\"", "")
            .replace("nodes.a.live]", "nodes.a]");
        let bare = bare.replace(
            "link = { services = [{ number = 1, name = \"call\", goal = \"voice\" }] }\n",
            "",
        );
        let (bare, _) = self::carriage(&bare);
        assert!(!bare.is_live() && bare.addresses() == WIRE);
    }

    #[test]
    fn flows_have_the_times_sizes_and_sockets_of_the_scenario() {
        let (carriage, mut scenario) = carriage(SCENARIO);
        // The file of blocks does not exist.
        for link in scenario.links.values_mut() {
            link.errors = Default::default();
        }
        let flows = carriage.flows(&Prepared::new(&scenario).unwrap(), 1);
        let [call, page] = &flows[..] else {
            panic!("{flows:?}");
        };
        assert_eq!((call.from, page.from, carriage.until()), (1, 0, Some(1)));
        assert_eq!(
            (call.start, call.tos, call.port),
            (Duration::from_secs(1), 0xb8, 5004)
        );
        let App::Datagrams {
            length: 160,
            departures,
        } = &call.app
        else {
            panic!("{call:?}");
        };
        let every_20_ms = (0..5).map(|n| Duration::from_millis(20 * n));
        assert_eq!(*departures, every_20_ms.collect::<Vec<_>>());
        let App::Pages {
            tcp,
            reply: 1000,
            count: Some(3),
            ..
        } = &page.app
        else {
            panic!("{page:?}");
        };
        assert_eq!((&*tcp.congestion, tcp.segment), ("reno", Some(1_012)));
    }
}
