//! One end: a node, its file and keys, its clock and its address.

use std::net::{Ipv4Addr, SocketAddr};

use airlane_base::{Duration, Instant};
use airlane_node::config::LiveConfig;
use airlane_node::packet::ecn::Ecn;
use airlane_node::{DatagramAddresses, Node, PathFacts, Request, Secrets, Start, Underlay};
use airlane_secure::{PeerAddress, PrivateKey, Wall};

use crate::draw::Draw;
use crate::files::{file, public};

/// Approximate wall clock time of all nodes, ns since 1970.
const WALL: u64 = 1_800_000_000_000_000_000;

/// A clock that differs from the world's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Offset, ns.
    ahead: u64,
    /// Drift, ppm.
    ppm: i64,
}

impl Clock {
    pub(crate) fn draw(draw: &mut Draw) -> Self {
        Self {
            ahead: draw.ms(1, 100_000_000),
            ppm: draw.within(0, 401) as i64 - 200,
        }
    }

    pub(crate) const fn at(self, world: u64) -> Instant {
        let drift = world as i64 / 1_000_000 * self.ppm;
        Instant::from_nanos((world + self.ahead).saturating_add_signed(drift))
    }

    /// The earliest world time at which this clock shows `instant`.
    pub(crate) fn world(self, instant: Instant) -> u64 {
        let own = instant.saturating_since(Instant::ORIGIN).as_nanos();
        let about = own.saturating_sub(self.ahead);
        let mut world = about.saturating_add_signed(-(about as i64 / 1_000_000 * self.ppm));
        while self.at(world) < instant {
            world += 1_000;
        }
        world
    }
}

/// A node, and what it takes to restart it.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) config: LiveConfig,
    key: PrivateKey,
    pub(crate) clock: Clock,
    /// The address where it listens, and the one that others see.
    pub(crate) listen: SocketAddr,
    pub(crate) public: SocketAddr,
    pub(crate) address: Ipv4Addr,
    /// None while it is off.
    pub(crate) node: Option<Node>,
    /// Until when it is suspended, ns.
    pub(crate) sleeps: u64,
    /// Whether its interface is up.
    pub(crate) is_wired: bool,
    /// Turns at the same time that only its deadline caused.
    pub(crate) idle_turns: u32,
    /// When it is woken next, ns.
    pub(crate) wake: u64,
}

impl End {
    pub(crate) fn new(
        config: LiveConfig,
        key: PrivateKey,
        (listen, address): (SocketAddr, Ipv4Addr),
        clock: Clock,
    ) -> Self {
        Self {
            config,
            key,
            clock,
            listen,
            public: listen,
            address,
            node: None,
            sleeps: 0,
            is_wired: true,
            idle_turns: 0,
            wake: u64::MAX,
        }
    }

    /// Ends with these keys: the first is a peer of all others, each of the others only of the first.
    pub(crate) fn all(
        keys: Vec<PrivateKey>,
        rate: &str,
        services: &str,
        draw: &mut Draw,
    ) -> Result<Vec<Self>, String> {
        let publics: Vec<String> = keys.iter().map(|key| key.public().to_string()).collect();
        let ends = keys.into_iter().enumerate().map(|(end, key)| {
            let peers: Vec<(usize, String)> = match end {
                0 => (1..publics.len())
                    .map(|peer| (peer, publics[peer].clone()))
                    .collect(),
                _ => vec![(0, publics[0].clone())],
            };
            let config = file(end, rate, services, &peers)?;
            let address = Ipv4Addr::new(10, 7, 0, end as u8 + 1);
            let clock = Clock::draw(draw);
            Ok(Self::new(config, key, (public(end), address), clock))
        });
        ends.collect()
    }

    /// Starts the node, without any of its previous state.
    pub(crate) fn start(&mut self, world: u64, seed: [u8; 32]) -> Result<(), String> {
        let secrets = self.secrets();
        let paths = vec![PathFacts::UNKNOWN; self.config.peers().len()];
        let start = Start {
            config: &self.config,
            underlay: Underlay::Udp {
                listen: self.listen,
            },
            paths: &paths,
            secrets: Some(&secrets),
            seed,
        };
        let node = Node::new(self.clock.at(world), start).map_err(|error| error.to_string())?;
        self.node = Some(node);
        self.idle_turns = 0;
        Ok(())
    }

    pub(crate) fn secrets(&self) -> Secrets {
        Secrets {
            private: self.key.clone(),
            preshared: std::collections::BTreeMap::new(),
            fast_aes: false,
        }
    }

    /// Whether it is running.
    pub(crate) fn is_awake(&self, world: u64) -> bool {
        self.node.is_some() && self.sleeps <= world
    }

    pub(crate) fn handle_datagram(&mut self, world: u64, from: SocketAddr, bytes: &[u8]) {
        let (now, to) = (self.clock.at(world), Some(self.listen.ip()));
        if let Some(node) = &mut self.node {
            let addressing = DatagramAddresses {
                from: PeerAddress::Udp(from),
                to,
            };
            node.begin_datagrams();
            node.handle_datagram(now, bytes, addressing, Ecn::NotEct);
            node.end_datagrams(1);
        }
    }

    pub(crate) fn handle_packet(&mut self, world: u64, packet: &[u8]) {
        let now = self.clock.at(world);
        if let Some(node) = &mut self.node {
            node.handle_packet(now, packet);
        }
    }

    pub(crate) fn handle_timeout(&mut self, world: u64) {
        let now = self.clock.at(world);
        let wall = Wall::from_unix(Duration::from_nanos(WALL + world));
        if let Some(node) = &mut self.node {
            node.handle_timeout(now, wall);
        }
    }

    /// Handles the node's requests; `said` is the path MTU that a router reported, if any.
    pub(crate) fn answer(&mut self, world: u64, said: Option<usize>) {
        let now = self.clock.at(world);
        let listen = self.listen;
        let Some(node) = &mut self.node else { return };
        while let Some(request) = node.poll_request() {
            match request {
                Request::Path { link, .. } => {
                    let mut facts = PathFacts::UNKNOWN;
                    facts.said = said.unwrap_or(facts.said);
                    node.handle_path(now, link, facts);
                }
                Request::Mtu(mtu) => node.handle_mtu(now, mtu),
                Request::Port(port) => {
                    // Zero asks for any free port: the next one.
                    let port = if port == 0 {
                        self.listen.port() + 1
                    } else {
                        port
                    };
                    let at = SocketAddr::new(listen.ip(), port);
                    // A NAT assigns a port of its own to each.
                    let own = self.public == self.listen;
                    let public = if own { port } else { self.public.port() + 1 };
                    self.public.set_port(public);
                    self.listen = at;
                    node.handle_port(now, Ok(at));
                }
                Request::LookUp(host) => {
                    node.handle_name(now, &host, Err("there are no names".to_owned()));
                }
            }
        }
    }

    /// When it is to be woken, in world time.
    pub(crate) fn deadline(&self, world: u64) -> u64 {
        let Some(node) = &self.node else {
            return u64::MAX;
        };
        let due = node.poll_timeout(self.clock.at(world));
        match due == Instant::FAR_FUTURE {
            true => u64::MAX,
            false => self.clock.world(due),
        }
    }
}
