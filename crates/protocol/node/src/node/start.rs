//! Creates a node from a file and the system's knowledge of the paths.

use std::collections::VecDeque;

use airlane_base::Instant;
use airlane_link::pack::contents::{FRAGMENT_HEAD, MOST_FRAGMENTS};
use airlane_link::{Bottlenecks, Codec, SharedLink};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::Node;
use super::below::Below;
use super::error::NodeError;
use super::guard::{Guard, Secrets};
use super::link::{LATE, PeerLink, Sizes, who};
use super::links::Links;
use super::path::Path;
use super::plane::StatusPlane;
use super::quiet::Quiet;
use super::share::Pressure;
use super::transmit::TransmitBatch;
use crate::config::{IPV4_MIN_MTU, IPV6_MIN_MTU, LiveConfig, Mtu, PeerConfig, USUAL_PACKET};
use crate::packet::Pool;
use crate::{PathFacts, Underlay};

/// Smallest buffer, bytes: a hello with the service table fits.
const BUFFER: usize = 2048;
/// Free buffers kept: 8 MB at the usual size.
const BUFFERS: usize = 4096;
/// Memory limit of all packets, above the limits of the services' queues: a quarter of the limit in
/// `airlane@.service`.
const MOST_MEMORY: usize = 512 << 20;

/// The inputs to [`Node::new`].
#[derive(Debug)]
pub struct Start<'a> {
    /// The file.
    pub config: &'a LiveConfig,
    /// What carries its datagrams.
    pub underlay: Underlay,
    /// The paths to its peers, in the file's order.
    pub paths: &'a [PathFacts],
    /// Its keys; `None` with `security = "none"`.
    pub secrets: Option<&'a Secrets>,
    /// Seed of its random numbers. It must be secret.
    pub seed: [u8; 32],
}

impl Node {
    /// Creates a node.
    ///
    /// # Errors
    /// If a path leaves too little for a packet, or a key or the service table is invalid.
    pub fn new(now: Instant, start: Start<'_>) -> Result<Self, NodeError> {
        let Start {
            config,
            underlay,
            secrets,
            seed,
            ..
        } = start;
        let (link, peers) = (&config.link, config.peers());
        let mut random = ChaCha12Rng::from_seed(seed);
        let mut own = [0; 32];
        random.fill_bytes(&mut own);
        let guard = secrets
            .map(|secrets| Guard::new(now, secrets, &peers, underlay.anyone(), own))
            .transpose()?;
        let path = |at: usize| start.paths.get(at).copied().unwrap_or(PathFacts::UNKNOWN);
        let paths: Vec<PathFacts> = (0..peers.len()).map(path).collect();
        let mut below = Below::new(underlay, guard, link.outer);
        let routes = config.routes();
        let v6 = config.tun.addresses.iter().chain(&routes);
        let v6 = v6.into_iter().any(|cidr| cidr.address.is_ipv6());
        let least = if v6 { IPV6_MIN_MTU } else { IPV4_MIN_MTU };
        for (peer, facts) in peers.iter().zip(&paths) {
            let left = below.left(link, peer.fixed_address(), facts.interface);
            check_path(config, peer, (facts.interface, left, least))?;
        }
        // All peers share the interface's MTU, so the widest path decides; packets for the others are fragmented.
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
            pool: Pool::new(buffer, BUFFERS * BUFFER / buffer),
            most_memory: MOST_MEMORY,
            pressure: Pressure::default(),
            below,
            links: Links::default(),
            shared: SharedLink::new(link.rate, LATE),
            bottlenecks: Bottlenecks::default(),
            below_ports: Vec::with_capacity(SharedLink::PORTS),
            journals: None,
            port_since: now,
            port_said: Quiet::NEW,
            swallowed_said: Quiet::NEW,
            plane: StatusPlane::new(),
            delivered: VecDeque::new(),
            random,
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
        };
        for (peer, facts) in peers.iter().zip(paths) {
            let link = node.new_link(now, peer, facts, config)?;
            node.add_link(link);
        }
        node.links.index();
        node.follow_paths(now);
        Ok(node)
    }

    /// Limits the memory of all packets, bytes; the default is 512 MB.
    pub const fn set_most_memory(&mut self, bytes: usize) {
        self.most_memory = bytes;
    }

    /// Creates a link with a peer, given the kernel's knowledge of the path.
    ///
    /// # Errors
    /// If the path leaves too little for a packet, or the service table is invalid.
    pub(crate) fn new_link(
        &mut self,
        now: Instant,
        peer: &PeerConfig,
        facts: PathFacts,
        file: &LiveConfig,
    ) -> Result<PeerLink, NodeError> {
        let to = peer.fixed_address();
        let left = self.below.left(&file.link, to, facts.interface);
        check_path(file, peer, (facts.interface, left, self.mtu_range.0))?;
        // The buffers were sized for the widest path at the start.
        let sizes = Sizes {
            left: left.min(self.sizes.left),
            frame_overhead: self.below.underlay.wire_overhead(to) + self.below.sealing(),
            ..self.sizes
        };
        let path = match self.below.underlay.is_routed() {
            true => {
                // The file allows no longer datagrams than this.
                let fragment = file.link.fragment;
                let most = fragment.map_or(self.widest, |f| f.datagram(self.widest));
                Path::probed(now, facts, most, self.draw())
            }
            false => Path::of_interface(now, facts),
        };
        let drawn = [self.draw(), self.draw()];
        PeerLink::new(now, peer, file, sizes, path, drawn)
    }

    /// The secure session with a peer.
    pub(crate) fn session_of(&self, peer: &PeerConfig) -> Option<airlane_secure::PeerId> {
        self.below.guard.as_ref()?.peer(peer.key.as_ref()?)
    }

    /// Adds a new link under a free number. The caller must rebuild the indices.
    pub(crate) fn add_link(&mut self, mut link: PeerLink) {
        link.to.link = self.links.free_number();
        link.to.session = self.session_of(&link.config);
        self.shared.set_weight(link.to.link, link.config.weight);
        self.bottlenecks.forget(link.to.link);
        self.links.all.insert(link.to.link, link);
    }
}

/// The interface's MTU where the paths leave at least `left` bytes.
fn interface_mtu(config: &LiveConfig, left: usize) -> usize {
    match config.tun.mtu {
        Mtu::Auto if config.link.fragment.is_some() => USUAL_PACKET,
        // The largest MTU of an interface, even over the loopback.
        Mtu::Auto => left.min(65_000),
        Mtu::Fixed(size) => size.as_bytes() as usize,
    }
}

/// Checks that packets fit the path, whole or fragmented.
fn check_path(
    config: &LiveConfig,
    peer: &PeerConfig,
    (path_mtu, left, least): (usize, usize, usize),
) -> Result<(), NodeError> {
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
        false => Err(NodeError::PathTooNarrow {
            peer: who(&peer.name, peer.address.as_ref()),
            path_mtu,
            left,
            need,
        }),
    }
}
