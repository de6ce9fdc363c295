//! From a file and what the system knows of the paths to a node.

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

/// Smallest buffer: a hello with its table fits in any case.
const BUFFER: usize = 2048;
/// Free buffers kept, 8 MB of the usual size.
const BUFFERS: usize = 4096;
/// What all packets may take of memory, whatever the queues of services admit: a quarter of what `airlane@.service` gives.
const MOST_MEMORY: usize = 512 << 20;

/// What a node begins with.
#[derive(Debug)]
pub struct Start<'a> {
    /// The file.
    pub config: &'a LiveConfig,
    /// What its datagrams travel in.
    pub underlay: Underlay,
    /// What is known of the paths to its peers, in the file's order.
    pub paths: &'a [PathFacts],
    /// Its keys; none with `security = "none"`.
    pub secrets: Option<&'a Secrets>,
    /// What its random numbers are drawn from. Nobody else may know it.
    pub seed: [u8; 32],
}

impl Node {
    /// A node that has sent nothing yet.
    ///
    /// # Errors
    /// If too little is left of a path, or a key or the service table does not work.
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

    /// Limits the memory of all packets, bytes; 512 MB by default.
    pub const fn set_most_memory(&mut self, bytes: usize) {
        self.most_memory = bytes;
    }

    /// A link with a peer, to which the kernel knows this of the path.
    ///
    /// # Errors
    /// If that is too little, or the service table does not work.
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

    /// Takes a new link in, at a number that is free. The indices are the caller's business.
    pub(crate) fn add_link(&mut self, mut link: PeerLink) {
        link.to.link = self.links.free_number();
        link.to.session = self.session_of(&link.config);
        self.shared.set_weight(link.to.link, link.config.weight);
        self.bottlenecks.forget(link.to.link);
        self.links.all.insert(link.to.link, link);
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
