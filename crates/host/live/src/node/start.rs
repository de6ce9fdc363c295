//! From a file to a running node.

use airlane_base::Instant;
use airlane_link::pack::contents::{FRAGMENT_HEAD, MOST_FRAGMENTS};
use airlane_link::{Bottlenecks, Codec, SharedLink};
use airlane_secure::PeerAddress;

use super::Node;
use super::below::Below;
use super::guard::Guard;
use super::lineage::Lineage;
use super::link::{LATE, PeerLink, Sizes, who};
use super::links::Links;
use super::path::Path;
use super::plane::StatusPlane;
use super::quiet::Quiet;
use super::share::Pressure;
use super::transmit::TransmitBatch;
use super::up_error::UpError;
use super::ways::RESTORE;
use crate::clock;
use crate::config::{IPV4_MIN_MTU, IPV6_MIN_MTU, LiveConfig, Mtu, PeerConfig, USUAL_PACKET};
use crate::control::Server;
use crate::metrics::exporter::Exporter;
use crate::netlink::Netlink;
use crate::offload::join::Joiner;
use crate::packet::Pool;
use crate::reverse_path;
use crate::security::{NoSecurity, Security, random_number};
use crate::tun::{READ_MAX, Tun};
use crate::underlay::{PathFacts, Underlay};

/// Smallest buffer: a hello with its table fits in any case.
const BUFFER: usize = 2048;
/// Free buffers kept, 8 MB of the usual size.
const BUFFERS: usize = 4096;
/// What all packets may take of memory, whatever the queues of services admit: a quarter of what `airlane@.service` gives.
const MOST_MEMORY: usize = 512 << 20;

impl Node {
    /// Opens everything that the file asks for: interface, underlay and control socket.
    ///
    /// # Errors
    /// If the operating system refuses something, or the path to the peer is of no use; that there is none
    /// yet is no reason. Nothing is left behind then.
    pub fn start(config: &LiveConfig) -> Result<Self, UpError> {
        if !matches!(config.link.security, Some(Security::Keys(_))) {
            tracing::warn!(
                "security = \"none\": frames are neither encrypted nor authenticated; use it on \
                 links that you trust"
            );
        }
        for unreached in config.link.unreached() {
            tracing::warn!("{unreached}");
        }
        let control = Server::bind(&config.socket(), config.control.group.as_deref())?;
        let mut underlay = Underlay::open_early(clock::now(), &config.link.underlay)?;
        let tun = Tun::create(&config.tun.name)?;
        underlay.go_past(tun.index(), config.mark())?;
        let mut node = Self::with_devices(config, tun, underlay)?;
        node.control = Some(control);
        node.exporter = match config.metrics {
            Some(address) => Some(Exporter::start(address, config.socket())?),
            None => None,
        };
        node.tun
            .configure(node.mtu, &config.tun.addresses, &node.routes())?;
        if config.mark() != 0 {
            for interface in reverse_path::strict() {
                tracing::warn!(
                    interface,
                    help = reverse_path::HELP,
                    "{}",
                    reverse_path::WHY
                );
            }
        }
        for peer in config.peers() {
            node.refuse_loop(&peer)?;
        }
        tracing::info!(
            node = node.name,
            tun = node.tun.name(),
            mtu = node.mtu,
            rate = config.link.said(config.link.rate),
            rate_limit = ?config.link.rate_limit,
            listen = %node.listen,
            "up"
        );
        for link in node.links.iter() {
            let (peer, path_mtu) = (link.who(), link.path.mtu());
            tracing::info!(%peer, path_mtu, "calling the peer, or waiting for its call");
        }
        if let Some(exporter) = &node.exporter {
            tracing::info!(address = %exporter.address(), "metrics can be scraped");
        }
        Ok(node)
    }

    /// A node over devices that exist already: in tests a socket pair and the loopback. Addresses,
    /// routes and the control socket are not touched.
    ///
    /// # Errors
    /// If too little is left of a path, or the service table does not work.
    pub fn with_devices(
        config: &LiveConfig,
        tun: Tun,
        underlay: Underlay,
    ) -> Result<Self, UpError> {
        let link = &config.link;
        let now = clock::now();
        let peers = config.peers();
        let guard = match &link.security {
            Some(Security::Keys(keys)) => Some(Guard::new(now, keys, &peers, underlay.anyone())?),
            Some(Security::Word(NoSecurity::None)) | None => None,
        };
        let paths: Vec<PathFacts> = peers
            .iter()
            .map(|peer| match underlay.path(peer.fixed_address()) {
                Ok(facts) => facts,
                Err(error) => {
                    let peer = who(&peer.name, peer.address.as_ref());
                    tracing::warn!(%peer, %error, "there is no way to the peer yet; trying on");
                    PathFacts::UNKNOWN
                }
            })
            .collect();
        let listen = underlay.local()?;
        let mut below = Below::new(underlay, guard, link.outer);
        let routes = config.routes();
        let v6 = config.tun.addresses.iter().chain(&routes);
        let v6 = v6.into_iter().any(|cidr| cidr.address.is_ipv6());
        let least = if v6 { IPV6_MIN_MTU } else { IPV4_MIN_MTU };
        for (peer, facts) in peers.iter().zip(&paths) {
            let left = below.left(link, peer.fixed_address(), facts.interface);
            check_path(config, peer, (facts.interface, left, least))?;
        }
        // The interface has one MTU for all, so the widest path decides; on others packets are cut.
        let lefts = || {
            let paths = peers.iter().zip(&paths);
            paths.map(|(peer, facts)| below.left(link, peer.fixed_address(), facts.interface))
        };
        let widest = paths.iter().map(|facts| facts.interface).max();
        let (left, most) = (lefts().min(), lefts().max());
        let (left, most) = (left.unwrap_or_default(), most.unwrap_or_default());
        let mtu = interface_mtu(config, most);
        let auto_mtu = config.tun.mtu == Mtu::Auto;
        if mtu > left && link.fragment.is_none() && !auto_mtu {
            tracing::warn!(
                mtu,
                left,
                "tun.mtu is more than the path takes: large frames travel in fragments"
            );
        }
        let header_max = Codec::new(link.header()).header_max();
        let buffer = (mtu.max(most) + header_max + below.sealing()).max(BUFFER);
        below.transmit = TransmitBatch::new(buffer);
        let sizes = Sizes {
            max_payload: mtu,
            left: most,
            frame_overhead: below.underlay.wire_overhead(None) + below.sealing(),
        };
        let mut node = Self {
            name: config.name().to_owned(),
            config: config.resolve(),
            file: config.resolve(),
            listen,
            control: None,
            lineage: below
                .guard
                .as_ref()
                .map(|_| Lineage::new(now, clock::awake())),
            exporter: None,
            resolver: None,
            journals: None,
            pool: Pool::new(buffer, BUFFERS * BUFFER / buffer),
            most_memory: MOST_MEMORY,
            received: Some(Box::new(below.underlay.room())),
            pressure: Pressure::default(),
            below,
            links: Links::default(),
            shared: SharedLink::new(link.rate, LATE),
            bottlenecks: Bottlenecks::default(),
            below_ports: Vec::with_capacity(SharedLink::PORTS),
            restore: now + RESTORE,
            restore_said: Quiet::NEW,
            port_since: now,
            port_said: Quiet::NEW,
            plane: StatusPlane::new(),
            read: vec![0; READ_MAX].into_boxed_slice(),
            joiner: Joiner::new(tun.offloads()),
            sizes,
            widest: widest.unwrap_or_default(),
            started: now,
            auto_mtu,
            mtu,
            mtu_range: (least, mtu),
            packets_read: 0,
            read_bytes: 0,
            packets_written: 0,
            written_bytes: 0,
            mss_clamped: 0,
            tun,
        };
        for (peer, facts) in peers.iter().zip(paths) {
            let link = node.new_link(now, peer, facts, config)?;
            node.add_link(link);
        }
        node.links.index();
        node.follow_paths(now);
        Ok(node)
    }

    /// Limits the memory of all packets, bytes; 512 MB by default.
    pub fn set_most_memory(&mut self, bytes: usize) {
        self.most_memory = bytes;
    }

    /// A link with a peer, to which the kernel knows this of the path.
    ///
    /// # Errors
    /// If that is too little, or the service table does not work.
    pub(super) fn new_link(
        &self,
        now: Instant,
        peer: &PeerConfig,
        facts: PathFacts,
        file: &LiveConfig,
    ) -> Result<PeerLink, UpError> {
        let to = peer.fixed_address();
        let left = self.below.left(&file.link, to, facts.interface);
        check_path(file, peer, (facts.interface, left, self.mtu_range.0))?;
        // Buffers are for the widest path of the start.
        let sizes = Sizes {
            left: left.min(self.sizes.left),
            frame_overhead: self.below.underlay.wire_overhead(to) + self.below.sealing(),
            ..self.sizes
        };
        let path = match self.below.underlay.is_routed() {
            true => {
                // No longer datagrams than these are of use.
                let fragment = file.link.fragment;
                let most = fragment.map_or(self.widest, |f| f.datagram(self.widest));
                Path::probed(now, facts, most, random_number()?)
            }
            false => Path::of_interface(now, facts),
        };
        PeerLink::new(now, peer, file, sizes, path)
    }

    /// The secure session with a peer.
    pub(super) fn session_of(&self, peer: &PeerConfig) -> Option<airlane_secure::PeerId> {
        self.below.guard.as_ref()?.peer(peer.key.as_ref()?)
    }

    /// Takes a new link in, at a number that is free. The indices are the caller's business.
    pub(super) fn add_link(&mut self, mut link: PeerLink) {
        link.to.link = self.links.free_number();
        link.to.session = self.session_of(&link.config);
        self.shared.set_weight(link.to.link, link.config.weight);
        self.bottlenecks.forget(link.to.link);
        self.links.all.insert(link.to.link, link);
    }

    /// Makes sure that frames go to the peer, neither into the tunnel that they carry nor to ourselves.
    pub(super) fn refuse_loop(&self, peer: &PeerConfig) -> Result<(), UpError> {
        let address = peer.fixed_address();
        address.map_or(Ok(()), |address| self.refuse_loop_to(address))
    }

    /// Makes sure that frames for an address go there.
    pub(super) fn refuse_loop_to(&self, address: PeerAddress) -> Result<(), UpError> {
        self.below.underlay.refuse_self(address)?;
        let Some(peer) = address.ip() else {
            return Ok(());
        };
        let mark = self.below.underlay.mark();
        let way = Netlink::open().and_then(|mut netlink| netlink.way_of(peer, mark));
        // Where there is no way yet, none leads into the tunnel.
        if way.is_ok_and(|way| Some(way) == self.tun.index()) {
            return Err(UpError::Loop {
                peer,
                tun: self.tun.name().to_owned(),
            });
        }
        Ok(())
    }
}

/// The interface's MTU where paths leave so much at least.
fn interface_mtu(config: &LiveConfig, left: usize) -> usize {
    match config.tun.mtu {
        Mtu::Auto if config.link.fragment.is_some() => USUAL_PACKET,
        // An interface takes no more than this, whatever the loopback offers.
        Mtu::Auto => left.min(65_000),
        Mtu::Fixed(size) => size.as_bytes() as usize,
    }
}

/// Makes sure that packets fit a path, which leaves so much, whole or in parts.
fn check_path(
    config: &LiveConfig,
    peer: &PeerConfig,
    (path_mtu, left, least): (usize, usize, usize),
) -> Result<(), UpError> {
    let mtu = interface_mtu(config, left);
    let parts = mtu.div_ceil(left.saturating_sub(FRAGMENT_HEAD).max(1));
    let (fits, need) = match config.link.fragment {
        None => (mtu >= least, least),
        Some(_) => (
            left > FRAGMENT_HEAD && parts <= MOST_FRAGMENTS,
            mtu.div_ceil(MOST_FRAGMENTS) + FRAGMENT_HEAD,
        ),
    };
    match fits {
        true => Ok(()),
        false => Err(UpError::PathTooNarrow {
            peer: who(&peer.name, peer.address.as_ref()),
            path_mtu,
            left,
            need,
        }),
    }
}
