//! The live nodes of a world: their places, their peers, and the bytes that stand for each packet.

mod numbers;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use airlane_base::Instant;
use airlane_channel::Count;
use airlane_link::ServiceStatus;
use airlane_node::Node;
use airlane_node::status::Status;

use crate::headers::CaptureHeaders;
use numbers::Numbers;

/// A live node, and its node in the world.
#[derive(Debug)]
pub(crate) struct LiveEnd {
    pub(crate) node: Node,
    /// The node of the world.
    pub(crate) at: u16,
    /// Where it listens, and where peers find it unless it moves.
    pub(crate) listen: SocketAddr,
    pub(crate) peers: Vec<Peer>,
}

/// A live node's view of one of its peers.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The number that the node gave the link.
    pub(crate) link: u8,
    /// The live node at the other end.
    pub(crate) end: usize,
    pub(crate) paths: Vec<Path>,
}

/// A path to a peer.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) direction: usize,
    /// Addresses of both ends on it.
    pub(crate) own: Ipv4Addr,
    pub(crate) other: Ipv4Addr,
    /// When it does not exist.
    pub(crate) absent: Vec<[Instant; 2]>,
    /// Its MTU in bytes, and since when, in order of time.
    pub(crate) mtu: Vec<(Instant, usize)>,
}

impl Path {
    pub(super) fn is_there(&self, now: Instant) -> bool {
        let absent = |[from, to]: &[Instant; 2]| *from <= now && now < *to;
        !self.absent.iter().any(absent)
    }

    pub(super) fn takes(&self, now: Instant, len: usize) -> bool {
        let limit = self.mtu.iter().rev().find(|(from, _)| *from <= now);
        limit.is_none_or(|(_, most)| len <= *most)
    }
}

/// All live nodes of a world.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    pub(crate) ends: Vec<LiveEnd>,
    /// By direction of a link: the live node at its near end and the index of the peer at its far end.
    pub(super) near: Vec<Option<[usize; 2]>>,
    /// By link: builds the headers of packets there.
    pub(super) headers: Vec<Option<CaptureHeaders>>,
    pub(super) numbers: Numbers,
    /// Unused buffers.
    pub(super) buffers: Vec<Vec<u8>>,
    /// By direction: datagrams longer than its MTU.
    pub(super) too_long: Vec<Count>,
}

impl Lives {
    pub(crate) fn new(
        ends: Vec<LiveEnd>,
        near: Vec<Option<[usize; 2]>>,
        headers: Vec<Option<CaptureHeaders>>,
    ) -> Self {
        Self {
            ends,
            too_long: vec![Count::default(); near.len()],
            near,
            headers,
            ..Self::default()
        }
    }

    /// Datagrams longer than the MTU of a direction.
    pub(crate) fn too_long(&self, direction: usize) -> Count {
        self.too_long.get(direction).copied().unwrap_or_default()
    }

    /// The path of a datagram from an end to an address.
    pub(super) fn way(&self, now: Instant, end: usize, to: IpAddr) -> Option<&Path> {
        let end = &self.ends[end];
        let paths = end.peers.iter().flat_map(|peer| &peer.paths);
        let exact = |path: &&Path| IpAddr::V4(path.other) == to;
        let found = paths.clone().find(|path| exact(path) && path.is_there(now));
        let found = found.or_else(|| {
            let mut peers = end.peers.iter();
            let peer = peers.find(|peer| self.ends[peer.end].listen.ip() == to)?;
            let mut there = peer.paths.iter().filter(|path| path.is_there(now));
            there.next().or(peer.paths.first())
        });
        // A datagram to a former address of a peer is lost on the old path.
        found.or_else(|| paths.clone().find(exact))
    }

    /// The status of each live node, in the order of their nodes.
    pub(crate) fn status(&self, now: Instant) -> impl Iterator<Item = (u16, Status)> + '_ {
        self.ends
            .iter()
            .map(move |end| (end.at, end.node.status(now)))
    }

    /// The services at both ends of a direction, matched by number, the sender's first.
    pub(crate) fn services(&self, direction: usize) -> Vec<[ServiceStatus; 2]> {
        let of = |direction: usize| {
            let [end, peer] = self.near.get(direction).copied().flatten()?;
            let end = &self.ends[end];
            let all: Vec<_> = end.node.services(end.peers[peer].link).collect();
            Some(all)
        };
        // The two directions of a link have adjacent indices.
        let (Some(near), Some(far)) = (of(direction), of(direction ^ 1)) else {
            return Vec::new();
        };
        let pair = |sender: ServiceStatus| {
            let receiver = far.iter().find(|far| far.number == sender.number)?.clone();
            Some([sender, receiver])
        };
        near.into_iter().filter_map(pair).collect()
    }
}
