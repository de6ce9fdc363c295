//! The node, its inputs and its outputs.
//!
//! Invariants: after every input the ports are drained before anything leaves; no error of a single packet or
//! datagram ends anything; a sender that is not known allocates and changes nothing.
//!
//! Left out: more than one thread. A port never has more than a part of one core.

mod about;
mod below;
mod bottlenecks;
mod callers;
mod differences;
mod drops;
mod error;
mod guard;
mod link;
mod links;
mod lookup;
mod names;
mod own;
mod path;
mod plane;
mod port;
mod quiet;
mod receive;
mod recording;
mod reload;
mod report;
mod request;
mod rivals;
mod services;
mod share;
mod start;
mod status_plane;
mod steady;
mod tap;
mod told;
mod transmit;

use std::collections::VecDeque;

use airlane_base::Instant;
use airlane_link::{Below as PortBelow, Bottlenecks, ServiceStatus, SharedLink};
use airlane_secure::Wall;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::PathFacts;
use crate::config::LiveConfig;
use crate::packet::{LivePacket, Pool};
use below::Below;
pub use callers::Callers;
pub use drops::{Drops, Reason};
pub use error::NodeError;
pub use guard::{Guard, Opened, Secrets};
pub use link::KEEPALIVE;
use link::{PeerLink, Sizes};
use links::Links;
use plane::StatusPlane;
pub use quiet::Quiet;
pub use recording::Recorded;
pub use reload::ReloadError;
pub use request::Request;
pub use services::{AddServices, ServiceChange, ServiceError};
pub use share::BATCH;
use share::Pressure;
pub use start::Start;
pub use tap::{Journals, Tap};
use transmit::SendFate;
pub use transmit::{Datagram, Outlet, Run, SEND_MAX, SendError};

/// One end of a link, or of several.
#[derive(Debug)]
pub struct Node {
    name: String,
    /// How it runs: the file, every default filled in, and what commands changed since.
    config: LiveConfig,
    /// The file that was read last, every default filled in.
    file: LiveConfig,
    below: Below,
    links: Links,
    /// Gives the links' ports their turns.
    shared: SharedLink,
    /// Which of them have one bottleneck below, and what each sees of it, by number and weight.
    bottlenecks: Bottlenecks,
    below_ports: Vec<PortBelow>,
    plane: StatusPlane,
    /// Packets for the kernel that the ports had to give before it asked, and the link of each.
    delivered: VecDeque<(u8, LivePacket)>,
    /// Where ports keep journals, if they do.
    journals: Option<Box<dyn Journals>>,
    /// Since when there is the present port, and when the log spoke of another.
    port_since: Instant,
    port_said: Quiet,
    swallowed_said: Quiet,
    /// Where random numbers come from.
    random: ChaCha12Rng,
    pool: Pool,
    /// What all packets may take of memory, bytes.
    most_memory: usize,
    pressure: Pressure,
    /// Sizes of the widest path at the start, and what that takes.
    sizes: Sizes,
    widest: usize,
    started: Instant,

    /// Whether the MTU follows the paths.
    auto_mtu: bool,
    mtu: usize,
    /// The MTU is neither lower, so that IPv6 goes on, nor higher, as the ports' frames end there.
    mtu_range: (usize, usize),

    packets_read: u64,
    read_bytes: u64,
    packets_written: u64,
    written_bytes: u64,
    mss_clamped: u64,
}

impl Node {
    /// When [`Node::handle_timeout`] wants to be called without any input.
    pub fn poll_timeout(&self, now: Instant) -> Instant {
        let Self {
            below,
            links,
            shared,
            ..
        } = self;
        let guard = below.guard.as_ref().and_then(Guard::poll_timeout);
        // With a full socket a turn is of no use.
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

    /// Does what is due at `now`; `wall` is what the clock on the wall says, for handshakes, which compare machines.
    pub fn handle_timeout(&mut self, now: Instant, wall: Wall) {
        if self.below.handle_timeout(now, wall) {
            self.links.send_session(now, &mut self.below, None);
        }
        for link in self.links.iter_mut() {
            link.on_time(now, &mut self.below);
        }
        self.share_bottlenecks(now);
        self.drain(now);
        self.watch_status(now);
        self.check_paths(now);
        self.look_up(now);
        self.leave_port(now);
    }

    /// What the node wants from its driver, in order.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.below.requests.pop_front()
    }

    /// Has the ports give frames, as long as there is room for them.
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

    /// Sends what the ports and sessions have to say, as long as the socket takes it.
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

    /// Whether datagrams wait for a socket that is full.
    pub fn is_blocked(&self) -> bool {
        self.below.transmit.is_blocked()
    }

    /// The interface below was lost and is there again.
    pub fn handle_interface_back(&mut self, now: Instant) {
        // While it was away peers may have got other addresses, and ours be another by now. Those whose
        // place the file does not say are sought as at the start, and seek us.
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

    /// Somebody else may have the keys by now, as the machine has slept or is a copy: forgets them, and draws new ones
    /// from this seed.
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

    /// Looks at the paths: each by itself, however often another peer moves.
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

    /// Has the interface follow the widest path, as it has one MTU for all, and the links of narrower ones
    /// cut what is too long for them.
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

    /// What packets take of memory, bytes.
    pub fn memory_bytes(&self) -> usize {
        self.pool.taken_bytes()
    }

    /// The number of the link with the peer of this name.
    pub fn link_to(&self, peer: &str) -> Option<u8> {
        self.links.named(peer).map(|link| link.to.link)
    }

    /// The services of a link as this end has them, with their ledgers; none if there is no such link.
    pub fn services(&self, link: u8) -> impl Iterator<Item = ServiceStatus> + '_ {
        let link = self.links.all.get(&link).into_iter();
        link.flat_map(|link| link.port.services())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it runs: the file, and what commands changed since.
    pub const fn config(&self) -> &LiveConfig {
        &self.config
    }

    /// The interface's MTU.
    pub const fn mtu(&self) -> usize {
        self.mtu
    }

    /// The peers for the log, each with what its path takes.
    pub fn peers(&self) -> impl Iterator<Item = (String, usize)> + '_ {
        self.links.iter().map(|link| (link.who(), link.path.mtu()))
    }

    /// The system knows this of the path to a peer.
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
