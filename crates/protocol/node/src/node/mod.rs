//! The node, its inputs and its outputs.
//!
//! Invariants: after every input the ports are drained before anything leaves; no error of a single packet or
//! datagram ends the node; an unknown sender causes no allocation and no change of state.
//!
//! Left out: more than one thread. A port never uses more than a part of one core.

mod about;
mod below;
mod bottlenecks;
mod debounced;
mod differences;
mod drops;
mod error;
mod event_log;
mod guard;
mod link;
mod links;
mod lookup;
mod names;
mod path;
mod plane;
mod port;
mod quiet;
mod receive;
mod recording;
mod refused_callers;
mod reload;
mod report;
mod request;
mod services;
mod share;
mod shared_key;
mod start;
mod status_plane;
mod tap;
mod transmit;
mod tunnel_loop;

use std::collections::VecDeque;

use airlane_base::Instant;
use airlane_link::{Below as PortBelow, Bottlenecks, ServiceStatus, SharedLink};
use airlane_secure::Wall;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::PathFacts;
use crate::config::LiveConfig;
use crate::packet::{LivePacket, Pool};
pub use airlane_secure::PeersError;
use below::Below;
pub use drops::{Drops, Reason};
pub use error::NodeError;
pub use guard::{Guard, Opened, Secrets};
pub use link::KEEPALIVE;
use link::{PeerLink, Sizes};
use links::Links;
use plane::StatusPlane;
pub use quiet::Quiet;
pub use recording::Recorded;
pub use refused_callers::RefusedCallers;
pub use reload::ReloadError;
pub use request::Request;
pub use services::{AddServices, ServiceChange, ServiceError};
pub use share::BATCH;
use share::Pressure;
pub use start::Start;
pub use tap::{Journals, Tap};
use transmit::SendFate;
pub use transmit::{Datagram, Outlet, Run, SEND_MAX, SendError};

/// One end of one or several links.
#[derive(Debug)]
pub struct Node {
    name: String,
    /// The running configuration: the resolved file, and what commands changed since.
    config: LiveConfig,
    /// The resolved file that was read last.
    file: LiveConfig,
    below: Below,
    links: Links,
    /// Gives the links' ports their turns.
    shared: SharedLink,
    /// Links that share a bottleneck, and what each port sees of it, by link number and weight.
    bottlenecks: Bottlenecks,
    below_ports: Vec<PortBelow>,
    plane: StatusPlane,
    /// Packets for the kernel that were taken from the ports before it asked, each with its link.
    delivered: VecDeque<(u8, LivePacket)>,
    /// Creates the ports' journals, if they are wanted.
    journals: Option<Box<dyn Journals>>,
    /// Start of the present port's use, and when the log last mentioned a change of port.
    port_since: Instant,
    port_said: Quiet,
    swallowed_said: Quiet,
    /// Source of random numbers.
    random: ChaCha12Rng,
    pool: Pool,
    /// Memory limit of all packets, bytes.
    most_memory: usize,
    pressure: Pressure,
    /// Sizes of the widest path at the start, and its MTU.
    sizes: Sizes,
    widest: usize,
    started: Instant,

    /// Whether the MTU follows the paths.
    auto_mtu: bool,
    mtu: usize,
    /// Limits of the MTU: not lower, so that IPv6 keeps working, and not higher than the ports' frames allow.
    mtu_range: (usize, usize),

    packets_read: u64,
    read_bytes: u64,
    packets_written: u64,
    written_bytes: u64,
    mss_clamped: u64,
}

impl Node {
    /// Time at which [`Node::handle_timeout`] must be called in the absence of other input.
    pub fn poll_timeout(&self, now: Instant) -> Instant {
        let Self {
            below,
            links,
            shared,
            ..
        } = self;
        let guard = below.guard.as_ref().and_then(Guard::poll_timeout);
        // A turn is of no use while the socket is full.
        let shared_free = shared.poll_timeout();
        let shared_free = shared_free.filter(|_| !below.transmit.is_blocked());
        links
            .iter()
            .map(|link| link.poll_timeout(now, below, shared))
            .chain(guard)
            .chain(shared_free)
            .chain(links.iter().map(|link| link.path.poll_timeout()))
            .chain(
                links
                    .iter()
                    .filter_map(|link| Some(link.lookup.as_ref()?.poll_timeout())),
            )
            .fold(Instant::FAR_FUTURE, Instant::min)
            .min(self.plane.poll_timeout())
    }

    /// Handles what is due at `now`. `wall` is the wall-clock time, which handshakes need because they
    /// compare the times of two machines.
    pub fn handle_timeout(&mut self, now: Instant, wall: Wall) {
        if self.below.handle_timeout(now, wall) {
            self.links.send_session(now, &mut self.below, None);
        }
        for link in self.links.iter_mut() {
            link.on_time(now, &mut self.below);
            link.mention_no_way(&self.config);
        }
        self.share_bottlenecks(now);
        self.drain(now);
        self.watch_status(now);
        self.check_paths(now);
        self.look_up(now);
        self.leave_port(now);
    }

    /// The next request to the driver, in order.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.below.requests.pop_front()
    }

    /// Takes frames from the ports while there is room for them.
    fn drain(&mut self, now: Instant) {
        let Self {
            below,
            links,
            shared,
            ..
        } = self;
        for link in links.iter() {
            link.offer(now, below, shared);
        }
        while !below.transmit.is_blocked() && !below.transmit.is_full() {
            let Some(turn) = shared.next(now) else {
                break;
            };
            match links.get_mut(turn) {
                Some(link) => link.take_turn(now, below, shared),
                None => shared.skip(),
            }
        }
    }

    /// Sends the frames of the ports and the messages of the sessions until the socket is full.
    pub fn transmit(&mut self, now: Instant, outlet: &mut impl Outlet) {
        loop {
            let Self { below, links, .. } = self;
            links.flush(now, below, outlet);
            if self.below.transmit.is_blocked() {
                return;
            }
            self.drain(now);
            if !self.below.has_datagrams() {
                return;
            }
        }
    }

    /// The next datagram, for a driver that sends them one by one.
    pub fn poll_datagram(&mut self, now: Instant) -> Option<Datagram<'_>> {
        if !self.below.has_datagrams() {
            self.below.transmit.forget_polled();
            self.drain(now);
        }
        let Self { below, links, .. } = self;
        let aside = below.aside.pop_front();
        let (link, datagram) = match aside {
            Some(aside) => {
                let aside = below.leaving.insert(aside);
                (aside.probes, aside.datagram())
            }
            None => {
                let (link, datagram) = below.transmit.poll()?;
                (Some(link), datagram)
            }
        };
        let (datagrams, bytes) = (1, datagram.bytes.len() as u64);
        below.datagrams_sent += datagrams;
        below.bytes_sent += bytes;
        if let Some(link) = link.and_then(|link| links.get_mut(link)) {
            link.on_fate(now, SendFate::Sent { datagrams, bytes });
        }
        Some(datagram)
    }

    /// Whether datagrams wait because the socket is full.
    pub fn is_blocked(&self) -> bool {
        self.below.transmit.is_blocked()
    }

    /// The interface below was lost and is back.
    pub fn handle_interface_back(&mut self, now: Instant) {
        // Meanwhile the peers' addresses, and ours, may have changed. Peers without an address in the file
        // are sought as at the start, and seek this end likewise.
        let Self { below, links, .. } = self;
        for link in links.iter_mut() {
            if let (Some(guard), Some(session)) = (&mut below.guard, link.to.session)
                && link.config.address.is_none()
            {
                guard.forget_address(session);
                link.to.address = None;
            }
            link.path.ask(now);
        }
    }

    /// Discards all keys and draws new ones from `seed`. After a suspend, or in a copy of a virtual machine,
    /// another host may have the same keys.
    pub fn renew_keys(&mut self, now: Instant, seed: [u8; 32]) {
        self.random = ChaCha12Rng::from_seed(seed);
        if let Some(guard) = &mut self.below.guard {
            let mut own = [0; 32];
            self.random.fill_bytes(&mut own);
            guard.renew(now, own);
        }
    }

    /// Whether the node has keys.
    pub const fn has_keys(&self) -> bool {
        self.below.guard.is_some()
    }

    /// Checks the paths: each at its own interval, however often another peer moves.
    fn check_paths(&mut self, now: Instant) {
        let Self { below, links, .. } = self;
        let mut any = false;
        for link in links.iter_mut() {
            any |= link.watch_path(now, below);
        }
        if any {
            self.follow_paths(now);
        }
    }

    /// Sets the interface's MTU to that of the widest path, as there is one MTU for all peers. The links of
    /// narrower paths fragment what is too long for them.
    fn follow_paths(&mut self, now: Instant) {
        let Self { below, links, .. } = self;
        let file = &self.config.link;
        let left = |link: &PeerLink| below.left(file, link.to.address, link.path.mtu());
        if self.auto_mtu && file.fragment.is_none() {
            let widest = links.iter().map(left).max();
            let widest = widest.unwrap_or(self.mtu);
            let mtu = widest.clamp(self.mtu_range.0, self.mtu_range.1);
            if mtu != self.mtu {
                below.requests.push_back(Request::Mtu(mtu));
            }
        }
        self.follow_mtu(now);
    }

    /// The interface has this MTU from now on.
    pub fn handle_mtu(&mut self, now: Instant, mtu: usize) {
        let (was, why) = (self.mtu, "the path MTU changed");
        if was != mtu {
            tracing::info!(was, mtu, why, "MTU changed");
            self.mtu = mtu;
            self.follow_mtu(now);
        }
    }

    fn follow_mtu(&mut self, now: Instant) {
        let Self { below, links, .. } = self;
        let file = &self.config.link;
        for link in links.iter_mut() {
            let room = below.left(file, link.to.address, link.path.mtu());
            link.to.longest = below.longest(link.to.address, link.path.mtu());
            let narrow = self.auto_mtu && file.fragment.is_none() && room < self.mtu;
            let cuts = file.fragment.is_some() || narrow && file.cuts();
            link.set_room(now, cuts.then_some(room), narrow.then_some(room));
        }
    }

    /// Memory in use by packets, bytes.
    pub fn memory_bytes(&self) -> usize {
        self.pool.taken_bytes()
    }

    /// The number of the link with the peer of this name.
    pub fn link_to(&self, peer: &str) -> Option<u8> {
        self.links.named(peer).map(|link| link.to.link)
    }

    /// The services of a link on this end, with their ledgers; none if there is no such link.
    pub fn services(&self, link: u8) -> impl Iterator<Item = ServiceStatus> + '_ {
        let link = self.links.all.get(&link).into_iter();
        link.flat_map(|link| link.port.services())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The running configuration: the file, and what commands changed since.
    pub const fn config(&self) -> &LiveConfig {
        &self.config
    }

    /// The interface's MTU.
    pub const fn mtu(&self) -> usize {
        self.mtu
    }

    /// The peers as the log names them, each with its path MTU.
    pub fn peers(&self) -> impl Iterator<Item = (String, usize)> + '_ {
        self.links.iter().map(|link| (link.who(), link.path.mtu()))
    }

    /// Takes the kernel's answer about the path to a peer.
    pub fn handle_path(&mut self, now: Instant, link: u8, facts: PathFacts) {
        if let Some(link) = self.links.get_mut(link) {
            link.path.follow(now, facts);
        }
        self.check_paths(now);
    }

    fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.random.fill_bytes(&mut seed);
        seed
    }

    fn draw(&mut self) -> u64 {
        self.random.next_u64()
    }
}
