//! The raw Ethernet underlay: one `AF_PACKET` socket, one EtherType, one interface, peers on the same
//! segment. Frames are sent and received in batches, with one system call each.
//!
//! The kernel writes and strips the Ethernet header (`SOCK_DGRAM`); `parts` describes the payload. The kernel
//! passes on only frames of our EtherType (the socket's protocol) to this interface's address, or to a group
//! address (a filter), so frames of other VLANs and for other machines never arrive.
//!
//! Frames pass the interface's queueing discipline (no `PACKET_QDISC_BYPASS`): when the interface is busy
//! they wait there and the socket's buffer fills up, which stops the port; without it they would be lost. The
//! port paces itself, so that queue is short.
//!
//! An interface that is down or gone loses frames as a radio does. It is searched for by its name, and may
//! come back with another index.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use airlane_base::{Duration, Instant};
use airlane_secure::{EthernetAddress, PeerAddress};
use rustix::net::SocketType;

use super::parts::{self, Assembly, LONGEST, Read, WHOLE};
use crate::af_packet::{BATCH, Batch, Destination, PacketSocket};
use crate::device::{DeviceError, says_interface_is_away};
use crate::netlink::Interface;
use crate::status::InterfaceReport;
use airlane_node::{EtherType, PathFacts};

/// Requested socket buffer in each direction, bytes: half a second at 64 Mbit/s.
const SOCKET_BUFFER: usize = 4 << 20;
/// Interval of searches for a lost interface.
const LOOK: Duration = Duration::from_millis(250);

/// A socket for one EtherType of one interface.
#[derive(Debug)]
pub struct Ethernet {
    socket: PacketSocket,
    interface: String,
    ether_type: EtherType,
    facts: Cell<Interface>,
    /// Whether frames may be split to fit the interface, and the number of the next one that is.
    parts: Cell<bool>,
    number: Cell<u16>,
    /// Whether the last call found the interface down or gone.
    away: Cell<bool>,
    /// Time of the loss and of the next search, if the loss was noticed.
    search: Option<(Instant, Instant)>,
    losses: u64,
    missed: Cell<u64>,
}

/// Messages received with one system call.
#[derive(Debug)]
pub(crate) struct Received {
    batch: Batch,
    assembly: Assembly,
}

impl Received {
    pub(super) fn new() -> Self {
        Self {
            batch: Batch::new(),
            assembly: Assembly::new(),
        }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    /// Malformed messages are passed on as empty datagrams, which the node counts as drops.
    pub(super) fn for_each(&mut self, mut take: impl FnMut(&[u8], PeerAddress)) {
        for (message, slot) in self.batch.messages() {
            let source = PeerAddress::Ethernet(slot.source);
            match self.assembly.read(slot.source, message) {
                Read::Frame(frame) => take(frame, source),
                Read::Part => {}
                Read::Nothing => take(&[], source),
            }
        }
    }
}

impl Ethernet {
    /// The address for a peer whose own address is unknown.
    pub const ANYONE: PeerAddress = PeerAddress::Ethernet(EthernetAddress::BROADCAST);
    /// Bytes of the MTU before a frame.
    pub(super) const OVERHEAD: usize = WHOLE;
    pub(super) const RUN_MAX: usize = BATCH;

    /// Opens `interface`, which must be an Ethernet interface and up.
    ///
    /// # Errors
    /// If it is not, or the kernel refuses; needs `CAP_NET_RAW`.
    pub fn open(interface: &str, ether_type: EtherType) -> Result<Self, DeviceError> {
        let facts = Interface::usable(interface)?;
        let ethernet = Self::over(interface, ether_type, facts)?;
        ethernet.attach(facts)?;
        Ok(ethernet)
    }

    /// Opens an interface that may be down or missing, and treats it as a lost one.
    ///
    /// # Errors
    /// If it is not an Ethernet interface, or the kernel refuses; needs `CAP_NET_RAW`.
    pub(super) fn open_early(
        now: Instant,
        interface: &str,
        ether_type: EtherType,
    ) -> Result<Self, DeviceError> {
        let facts = match Interface::ask(interface) {
            Ok(facts) if facts.up => return Self::open(interface, ether_type),
            Ok(facts) => facts,
            Err(error) if says_interface_is_away(&error.source) => Interface {
                index: 0,
                up: false,
                carrier: false,
                mtu: PathFacts::UNKNOWN.interface,
                address: EthernetAddress([0; 6]),
                is_port: false,
            },
            Err(error) => return Err(error),
        };
        let mut ethernet = Self::over(interface, ether_type, facts)?;
        let why = "it is down or missing; looking for it";
        tracing::warn!(interface, why, "the interface is not there yet");
        ethernet.away.set(true);
        ethernet.search = Some((now, now + LOOK));
        Ok(ethernet)
    }

    fn over(interface: &str, ether_type: EtherType, facts: Interface) -> Result<Self, DeviceError> {
        let failed = |call| move |source: io::Error| DeviceError::new(interface, call, source);
        let socket =
            PacketSocket::open(SocketType::DGRAM).map_err(failed("open a packet socket"))?;
        socket
            .size_buffers(SOCKET_BUFFER)
            .map_err(failed("size the socket buffers"))?;
        Ok(Self {
            socket,
            interface: interface.to_owned(),
            ether_type,
            facts: Cell::new(facts),
            parts: Cell::new(false),
            number: Cell::new(0),
            away: Cell::new(false),
            search: None,
            losses: 0,
            missed: Cell::new(0),
        })
    }

    /// Receives our frames at this interface, and at no other, from now on.
    fn attach(&self, facts: Interface) -> Result<(), DeviceError> {
        let failed = |call| move |e: io::Error| DeviceError::new(&self.interface, call, e);
        self.socket
            .filter(&ours(facts.index))
            .map_err(failed("filter frames"))?;
        self.socket
            .bind(facts.index, self.ether_type.0)
            .map_err(failed("bind to the interface"))?;
        self.facts.set(facts);
        Ok(())
    }

    /// Checks that a peer is not this end itself.
    ///
    /// # Errors
    /// If it is.
    pub(super) fn refuse_self(&self, peer: EthernetAddress) -> Result<(), DeviceError> {
        if peer != self.local() {
            return Ok(());
        }
        let why = "the peer's address is that of this interface itself; give that of the other end";
        let error = io::Error::other(why);
        Err(DeviceError::new(&self.interface, "check the peer", error))
    }

    /// The name of the interface.
    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    /// The interface's address.
    pub fn local(&self) -> EthernetAddress {
        self.facts.get().address
    }

    pub(super) fn receive(&self, received: &mut Received) -> io::Result<()> {
        let outcome = self.socket.receive(&mut received.batch);
        self.watch(outcome).map_err(|error| {
            // The socket reports this once, and no data were lost.
            match says_interface_is_away(&error) {
                true => io::ErrorKind::WouldBlock.into(),
                false => error,
            }
        })
    }

    /// Records whether the result means that the interface is away.
    fn watch<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.as_ref().is_err_and(says_interface_is_away) {
            self.away.set(true);
        }
        outcome
    }

    pub(super) fn send(
        &self,
        to: EthernetAddress,
        contents: &[u8],
        size: usize,
    ) -> io::Result<usize> {
        let size = size.min(contents.len());
        if size == 0 {
            return self.send_to(to, &[]).map(|()| 1);
        }
        let room = self.facts.get().mtu.min(LONGEST + WHOLE);
        if size + WHOLE > room {
            self.send_parts(to, &contents[..size])?;
            return Ok(1);
        }
        let mut lengths = [[0; WHOLE]; BATCH];
        let mut batch = [[IoSlice::new(&[]); 2]; BATCH];
        let mut count = 0;
        for ((frame, length), parts) in contents.chunks(size).zip(&mut lengths).zip(&mut batch) {
            *length = parts::whole(frame.len());
            *parts = [IoSlice::new(length), IoSlice::new(frame)];
            count += 1;
        }
        self.send_batch(to, &batch[..count])
    }

    /// Sends a frame that exceeds the interface's MTU.
    fn send_parts(&self, to: EthernetAddress, frame: &[u8]) -> io::Result<()> {
        let too_long = || io::Error::from_raw_os_error(libc::EMSGSIZE);
        if !self.parts.get() {
            return Err(too_long());
        }
        let number = self.number.get();
        self.number.set((number + 1) % 4096);
        let send = |parts: &[[IoSlice<'_>; 2]]| match self.send_batch(to, parts)? {
            sent if sent == parts.len() => Ok(()),
            // Retry the whole frame later.
            _ => Err(io::ErrorKind::WouldBlock.into()),
        };
        parts::cut(frame, self.facts.get().mtu, number, send).ok_or_else(too_long)?
    }

    fn send_batch(&self, to: EthernetAddress, batch: &[[IoSlice<'_>; 2]]) -> io::Result<usize> {
        if self.away.get() {
            return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
        }
        let destination = Destination {
            index: self.facts.get().index,
            ether_type: self.ether_type.0,
            to,
        };
        let outcome = self.watch(self.socket.send_batch(destination, batch));
        if outcome
            .as_ref()
            .is_err_and(|e| e.raw_os_error() == Some(libc::EMSGSIZE))
        {
            // The MTU has become smaller; the next attempt uses the new one.
            let _best_effort = self.path_mtu();
        }
        outcome
    }

    pub(super) fn send_to(&self, to: EthernetAddress, datagram: &[u8]) -> io::Result<()> {
        let length = parts::whole(datagram.len().min(LONGEST));
        let message = [IoSlice::new(&length), IoSlice::new(datagram)];
        self.send_batch(to, &[message]).map(drop)
    }

    pub(super) fn allow_parts(&self, allow: bool) {
        self.parts.set(allow);
    }

    /// The present MTU of the interface.
    pub(super) fn path_mtu(&self) -> Result<usize, DeviceError> {
        let facts = Interface::usable(&self.interface)?;
        if facts.index == self.facts.get().index {
            self.facts.set(facts);
        }
        Ok(facts.mtu.min(LONGEST + WHOLE))
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        match (self.away.get(), self.search) {
            (false, _) => Instant::FAR_FUTURE,
            (true, None) => Instant::ORIGIN,
            (true, Some((_, next))) => next,
        }
    }

    /// Searches for a lost interface. Returns whether it is back.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        if now < self.poll_timeout() {
            return false;
        }
        let interface = self.interface.as_str();
        let (since, _) = *self.search.get_or_insert_with(|| {
            self.losses += 1;
            tracing::warn!(
                interface,
                why = "it is down or gone; looking for it",
                "interface lost"
            );
            (now, now)
        });
        let found = Interface::usable(interface).and_then(|facts| self.attach(facts));
        if found.is_err() {
            self.search = Some((since, now + LOOK));
            return false;
        }
        self.search = None;
        self.away.set(false);
        let after = now.saturating_since(since);
        let address = self.local();
        tracing::info!(interface, %address, %after, "interface back");
        true
    }

    pub(super) fn report(&self) -> InterfaceReport {
        let facts = Interface::ask(&self.interface).ok();
        self.missed.set(self.missed.get() + self.socket.missed());
        InterfaceReport {
            name: self.interface.clone(),
            ether_type: self.ether_type.to_string(),
            up: facts.is_some_and(|facts| facts.up),
            carrier: facts.is_some_and(|facts| facts.up && facts.carrier),
            losses: self.losses,
            missed_frames: self.missed.get(),
        }
    }
}

impl AsFd for Ethernet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A filter that accepts untagged frames that arrive at this interface for its own address or a group address.
///
/// Frames of a VLAN reach our socket too. The kernel has already passed them to the VLAN's own interface, or,
/// if there is none, marked them as for another host.
fn ours(index: u32) -> [libc::sock_filter; 6] {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const IF_GREATER: u32 = libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    const ALL: u32 = u32::MAX;
    /// The last packet type of `linux/if_packet.h` that is for us, after host and broadcast.
    const PACKET_MULTICAST: u32 = 2;
    let step = |code: u32, k: u32, jt, jf| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let about = |what: libc::c_int| (libc::SKF_AD_OFF + what) as u32;
    [
        step(LOAD, about(libc::SKF_AD_IFINDEX), 0, 0),
        step(IF_EQUAL, index, 0, 3),
        step(LOAD, about(libc::SKF_AD_PKTTYPE), 0, 0),
        step(IF_GREATER, PACKET_MULTICAST, 1, 0),
        step(RETURN, ALL, 0, 0),
        step(RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_testkit::netns::{Namespace, can_run};
    use std::time::Duration as Wait;

    const ONE: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 1]);
    const TWO: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 2]);

    /// Runs `work` in a namespace with a veth pair whose ends have these addresses.
    fn with_cable<T: Send>(test: &str, work: impl FnOnce(&Namespace) -> T + Send) -> Option<T> {
        if !can_run(test) {
            return None;
        }
        let namespace = Namespace::new("ether").unwrap();
        namespace.join("one", &namespace, "two").unwrap();
        for (name, address) in [("one", ONE), ("two", TWO)] {
            let address = address.to_string();
            namespace
                .ip(&["link", "set", name, "address", &address])
                .unwrap();
        }
        Some(namespace.run(|| work(&namespace)).unwrap())
    }

    /// The datagrams that have arrived, with their senders.
    fn heard(ethernet: &Ethernet) -> Vec<(Vec<u8>, PeerAddress)> {
        std::thread::sleep(Wait::from_millis(20));
        let (mut received, mut all) = (Received::new(), Vec::new());
        while ethernet.receive(&mut received).is_ok() {
            received.for_each(|datagram, source| all.push((datagram.to_vec(), source)));
        }
        all
    }

    /// Sends a raw frame with this EtherType and payload.
    fn send_raw(socket: &PacketSocket, to: EthernetAddress, content: &[u8]) {
        let frame = [&to.0, &ONE.0, content].concat();
        socket.send(&frame).unwrap();
    }

    #[test]
    fn frames_of_any_length_arrive_unchanged() {
        with_cable("frames_come_as_they_were_sent", |_| {
            let [one, two] =
                ["one", "two"].map(|name| Ethernet::open(name, EtherType(0x88b6)).unwrap());
            assert_eq!((one.local(), two.local()), (ONE, TWO));
            // A run of more datagrams than one call takes, the last one shorter.
            let contents: Vec<u8> = (0..40 * 100 - 30).map(|i: usize| (i / 100) as u8).collect();
            let mut sent = 0;
            while sent * 100 < contents.len() {
                sent += one.send(TWO, &contents[sent * 100..], 100).unwrap();
            }
            one.send_to(TWO, &[]).unwrap();
            one.send_to(TWO, &[9; 1498]).unwrap();
            let error = one.send(TWO, &[9; 1499], 1499).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
            one.allow_parts(true);
            assert_eq!(one.send(TWO, &[8; 2 * 5000], 5000).unwrap(), 1);
            let expected: Vec<_> = contents
                .chunks(100)
                .chain([&[][..], &[9; 1498], &[8; 5000]])
                .map(|datagram| (datagram.to_vec(), PeerAddress::Ethernet(ONE)))
                .collect();
            assert_eq!(heard(&two), expected);
            assert_eq!(heard(&one), []);
        });
    }

    #[test]
    fn padding_is_removed_and_foreign_frames_are_ignored() {
        with_cable("what_is_filled_up_is_cut", |namespace| {
            let two = Ethernet::open("two", EtherType::default()).unwrap();
            let one = PacketSocket::open(SocketType::RAW).unwrap();
            let index = Interface::ask("one").unwrap().index;
            one.bind(index, 0).unwrap();
            // Padded to 60 bytes, as a network card does.
            let mut short = vec![0x88, 0xb5, 0, 3, 7, 8, 9];
            short.resize(60 - 12, 0xee);
            send_raw(&one, TWO, &short);
            send_raw(&one, EthernetAddress::BROADCAST, &short);
            let ours = (vec![7, 8, 9], PeerAddress::Ethernet(ONE));
            assert_eq!(heard(&two), [ours.clone(), ours.clone()]);
            // A priority tag is not a VLAN tag.
            let tagged = |vlan: [u8; 2]| [&[0x81, 0], &vlan[..], &short].concat();
            send_raw(&one, TWO, &tagged([0xe0, 0]));
            assert_eq!(heard(&two), std::slice::from_ref(&ours));
            // A frame of a VLAN without an interface here, one for another machine, and one of another EtherType.
            send_raw(&one, TWO, &tagged([0, 5]));
            send_raw(&one, EthernetAddress([2; 6]), &short);
            let mut other = short.clone();
            other[1] = 0xb6;
            send_raw(&one, TWO, &other);
            assert_eq!(heard(&two), []);
            // Malformed frames are counted as empty datagrams.
            short[2..4].copy_from_slice(&[0, 45]);
            send_raw(&one, TWO, &short);
            short[2..4].copy_from_slice(&[0xff, 3]);
            send_raw(&one, TWO, &short);
            let nothing = (vec![], PeerAddress::Ethernet(ONE));
            assert_eq!(heard(&two), [nothing.clone(), nothing]);
            // Frames of a VLAN are only for its own interface, if the kernel supports VLANs.
            let add = "link add link two name two.6 type vlan id 6";
            let add: Vec<_> = add.split(' ').collect();
            if namespace.ip(&add).is_ok() {
                namespace.ip(&["link", "set", "two.6", "up"]).unwrap();
                let six = Ethernet::open("two.6", EtherType::default()).unwrap();
                short[2..4].copy_from_slice(&[0, 3]);
                send_raw(&one, TWO, &[&[0x81, 0, 0, 6], &short[..]].concat());
                assert_eq!(heard(&two), []);
                assert_eq!(heard(&six), [ours]);
            }
        });
    }

    #[test]
    fn a_lost_interface_is_found_again_by_its_name() {
        with_cable("a_lost_interface_is_found_again", |namespace| {
            let ip = |command: &str| {
                let words: Vec<_> = command.split(' ').collect();
                namespace.ip(&words).unwrap();
            };
            let mut one = Ethernet::open("one", EtherType::default()).unwrap();
            let mut now = Instant::ORIGIN;
            assert_eq!(one.poll_timeout(), Instant::FAR_FUTURE);
            ip("link set one down");
            // The next call of either kind reports it, and from then on frames are refused.
            let error = one.send(TWO, &[1], 1).unwrap_err();
            assert!(says_interface_is_away(&error), "{error}");
            assert_eq!(heard(&one), []);
            assert_eq!(one.poll_timeout(), Instant::ORIGIN);
            assert!(!one.handle_timeout(now));
            assert_eq!(one.poll_timeout(), now + LOOK);
            ip("link del one");
            now += LOOK;
            assert!(!one.handle_timeout(now));
            assert!(!one.report().up);
            let before = one.facts.get().index;
            namespace.join("one", namespace, "two").unwrap();
            ip("link set two address 02:00:00:00:00:02");
            // No search before it is due.
            assert!(!one.handle_timeout(now + LOOK / 2));
            assert!(one.handle_timeout(now + LOOK));
            assert_eq!(one.poll_timeout(), Instant::FAR_FUTURE);
            assert_ne!(one.facts.get().index, before);
            let two = Ethernet::open("two", EtherType::default()).unwrap();
            one.send(TWO, &[1, 2], 2).unwrap();
            assert_eq!(heard(&two)[0].0, [1, 2]);
            two.send(one.local(), &[3], 1).unwrap();
            assert_eq!(heard(&one)[0].0, [3]);
            assert_eq!(one.report().losses, 1);
            // A loss that only the receiver notices.
            ip("link set one down");
            assert_eq!(heard(&one), []);
            assert_eq!(one.poll_timeout(), Instant::ORIGIN);
        });
    }
}
