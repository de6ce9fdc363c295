//! The encrypted channel to the other end: a UDP socket and its secure session.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use airlane_base::{Duration, Instant};
use airlane_secure::{
    AcceptedDatagram, INITIATION_LEN, Limits, OVERHEAD, PeerAddress, PeerId, PrivateKey, Refused,
    Secure, SecurePeer,
};
use airlane_ship::LONGEST_DATAGRAM;
use rustix::event::{PollFd, PollFlags, poll};

use super::ShipError;
use super::called::Called;
use crate::clock;
use crate::device::DeviceError;
use crate::security::{has_fast_aes, random};
use crate::underlay::udp::{Received, Udp};
use airlane_node::SEND_MAX;

/// Minimum MTU of every path (RFC 8200, section 5).
const LEAST_MTU: usize = 1_280;
/// MTU of most paths.
const USUAL_MTU: usize = 1_500;
/// Receive calls before other work gets its turn.
const RECEIVES_IN_A_ROW: usize = 16;
/// Longest wait for room in the system's buffer.
const FULL: Duration = Duration::from_millis(50);

/// Why a caller was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has another ticket.
    Ticket,
    /// The timestamp of its call is not later than that of the last one, by the callers' wall clocks.
    Clock,
}

impl Refusal {
    /// How it called, for a message.
    pub(super) const fn how(self) -> &'static str {
        match self {
            Self::Ticket => "with another ticket",
            Self::Clock => "with a clock behind that of the last call",
        }
    }
}

/// The channel to the other end.
pub(super) struct Line {
    udp: Udp,
    secure: Secure,
    other: SecurePeer,
    peer: PeerId,
    received: Received,
    /// Sealed datagrams of `size` bytes each (the last may be shorter) that wait for one system call.
    batch: Vec<u8>,
    size: usize,
    to: Option<PeerAddress>,
    /// The address that a sender calls.
    called: Option<Called>,
    /// The local address that the other end called last.
    from: Option<IpAddr>,
    /// The last refused caller, and the reason.
    stranger: Option<(PeerAddress, Refusal)>,
    /// Time of the last authentic datagram.
    heard: Instant,
    /// Source of the last authentic datagram.
    source: Option<PeerAddress>,
    /// Why this machine could not send the last datagram; `None` if it was sent.
    unsent: Option<io::Error>,
    plain: Box<[u8]>,
}

impl Line {
    /// Opens the socket, and calls the other end if its address is known.
    pub(super) fn open(
        listen: SocketAddr,
        private: PrivateKey,
        peer: SecurePeer,
    ) -> Result<Self, ShipError> {
        let udp = Udp::bind(listen)?;
        let seed =
            random().map_err(|error| DeviceError::new("random numbers", "draw a seed", error))?;
        let now = clock::now();
        let called = peer.address.and_then(udp_of);
        let called = called.map(|at| Called::new(now, at));
        let other = peer.clone();
        let mut secure =
            Secure::new(now, private, &[peer], Limits::default(), seed).map_err(input)?;
        secure.set_fast_aes(has_fast_aes());
        let peer = id(&secure, &other)?;
        Ok(Self {
            udp,
            secure,
            other,
            peer,
            received: Received::new(),
            batch: Vec::with_capacity(SEND_MAX),
            size: 0,
            to: None,
            called,
            from: None,
            stranger: None,
            heard: now,
            source: None,
            unsent: None,
            plain: vec![0; 1 << 16].into_boxed_slice(),
        })
    }

    /// The address where it listens.
    pub(super) fn local(&self) -> Result<SocketAddr, ShipError> {
        Ok(self.udp.local()?)
    }

    /// Candidate payload lengths, by the kernel's knowledge of the path.
    pub(super) fn sizes(&self, to: SocketAddr) -> Vec<usize> {
        let headers = headers(to);
        let said = self
            .udp
            .path(to)
            .map_or(USUAL_MTU, |facts| facts.interface.min(facts.said));
        let mtus = [said, USUAL_MTU.min(said), LEAST_MTU];
        mtus.map(|mtu| {
            mtu.max(LEAST_MTU)
                .saturating_sub(headers + OVERHEAD)
                .min(LONGEST_DATAGRAM)
        })
        .into()
    }

    /// Bytes of an IP packet to `to` that are not payload.
    pub(super) fn headers(&self, to: SocketAddr) -> usize {
        headers(to) + OVERHEAD
    }

    pub(super) fn is_established(&self, now: Instant) -> bool {
        self.secure.is_established(now, self.peer)
    }

    /// The last caller refused since the previous call of this function, and the reason.
    pub(super) fn take_stranger(&mut self) -> Option<(PeerAddress, Refusal)> {
        self.stranger.take()
    }

    /// Why this machine could not send the last datagram; `None` if it was sent.
    pub(super) fn unsent(&self) -> Option<String> {
        self.unsent.as_ref().map(io::Error::to_string)
    }

    /// Time of the last authentic datagram.
    pub(super) const fn heard(&self) -> Instant {
        self.heard
    }

    /// Forgets previous calls and their timestamps, as a restart would.
    pub(super) fn forget_calls(&mut self, now: Instant) -> Result<(), ShipError> {
        self.secure.set_peers(now, &[]).map_err(input)?;
        let again = [self.other.clone()];
        self.secure.set_peers(now, &again).map_err(input)?;
        self.peer = id(&self.secure, &self.other)?;
        Ok(())
    }

    /// Calls the other end at another address.
    pub(super) fn seek(&mut self, now: Instant, at: SocketAddr) {
        self.called = Some(Called::new(now, at));
        self.secure.seek(now, self.peer, PeerAddress::Udp(at));
    }

    /// Starts a handshake, in case the other end was restarted without its keys.
    pub(super) fn renew(&mut self, now: Instant) {
        self.secure.rekey(now, self.peer);
    }

    /// Seals a payload and adds it to the batch of its length, which [`Line::flush`] sends at the latest.
    /// Without a session or a route the payload is lost, as on any path.
    pub(super) fn send(&mut self, now: Instant, contents: &[u8]) {
        let len = contents.len() + OVERHEAD;
        if len > self.size
            || self.batch.len() + len > SEND_MAX
            || self.batch.len() / self.size.max(1) >= self.udp.run_max(0)
        {
            self.flush();
        }
        let from = self.batch.len();
        self.batch.resize(from + len, 0);
        let Ok(sealed) = self
            .secure
            .seal(now, self.peer, &[contents], &mut self.batch[from..])
        else {
            self.batch.truncate(from);
            return;
        };
        let called = self.called.map(|called| PeerAddress::Udp(called.at()));
        let to = called.unwrap_or(sealed.to);
        if self.to != Some(to) && from > 0 {
            let last = self.batch.split_off(from);
            self.flush();
            self.batch.extend_from_slice(&last);
        }
        self.to = Some(to);
        if self.size == 0 {
            self.size = len;
        }
        if len < self.size {
            self.flush();
        }
    }

    /// Sends the batch.
    pub(super) fn flush(&mut self) {
        if let Some(PeerAddress::Udp(to)) = self.to.filter(|_| !self.batch.is_empty()) {
            let send = |from| self.udp.send((to, from), &self.batch, self.size, 0);
            // If the retry fails, the batch is lost, as on a path.
            let sent = match send(self.from) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for_room();
                    send(self.from)
                }
                Err(_) if self.from.is_some() => {
                    // The address that was called may be gone.
                    let again = send(None);
                    self.from = None;
                    again
                }
                sent => sent,
            };
            self.unsent = sent.err();
        }
        self.batch.clear();
        self.size = 0;
    }

    fn wait_for_room(&self) {
        let mut fds = [PollFd::new(&self.udp, PollFlags::OUT)];
        let at_most = clock::timeout(Instant::ORIGIN, Instant::ORIGIN + FULL);
        let _woken = poll(&mut fds, Some(&at_most));
    }

    /// Calls `take` with each payload received from the other end.
    pub(super) fn receive<E>(
        &mut self,
        now: Instant,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self {
            udp,
            secure,
            peer,
            received,
            plain,
            from: own,
            stranger,
            called,
            heard,
            source,
            unsent,
            ..
        } = self;
        for _ in 0..RECEIVES_IN_A_ROW {
            if udp.receive(received).is_err() {
                break;
            }
            let mut taken = Ok(());
            received.for_each(|datagram, addressing, _| {
                if taken.is_err() {
                    return;
                }
                let before = secure.counters().established;
                // `Secure` counts what it refuses.
                let accepted = secure.handle_datagram(now, addressing.from, datagram, plain);
                if let (Ok(accepted), Some(called), Some(from)) =
                    (&accepted, called.as_mut(), udp_of(addressing.from))
                {
                    let is_handshake = matches!(accepted, AcceptedDatagram::Handshake { .. });
                    match is_handshake {
                        true if secure.counters().established > before => {
                            called.on_answer(now, from);
                        }
                        // An initiation may be replayed from any address.
                        true => {}
                        false if called.on_heard(now, from) => secure.rekey(now, *peer),
                        false => {}
                    }
                }
                match accepted {
                    Ok(_) => {
                        (*own, *heard) = (addressing.to, now);
                        *source = Some(addressing.from);
                    }
                    Err(Refused::Mac1 | Refused::UnknownKey | Refused::Preshared) => {
                        *stranger = Some((addressing.from, Refusal::Ticket));
                    }
                    // The present sender's own initiation, which the path delivered twice or late.
                    Err(Refused::OldInitiation) if *source == Some(addressing.from) => {}
                    Err(Refused::OldInitiation) => {
                        *stranger = Some((addressing.from, Refusal::Clock))
                    }
                    Err(_) => {}
                }
                say(secure, udp, (called.as_mut(), addressing.to), unsent);
                if let Ok(AcceptedDatagram::Data { len, .. }) = accepted {
                    taken = take(&plain[..len]);
                }
            });
            taken?;
        }
        self.tick(now);
        Ok(())
    }

    /// Handles the timers and messages of the session.
    fn tick(&mut self, now: Instant) {
        if self.secure.poll_timeout().is_some_and(|due| due <= now) {
            self.secure.handle_timeout(now, clock::wall());
        }
        let called = (self.called.as_mut(), None);
        say(&mut self.secure, &self.udp, called, &mut self.unsent);
    }

    /// Waits until something arrives, something is due, or `stop` is readable. Returns whether `stop` is.
    pub(super) fn wait(
        &self,
        now: Instant,
        due: Instant,
        stop: BorrowedFd<'_>,
    ) -> Result<bool, ShipError> {
        let due = self
            .secure
            .poll_timeout()
            .map_or(due, |secure| secure.min(due));
        let mut fds = [
            PollFd::new(&self.udp, PollFlags::IN),
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
        ];
        let timeout = clock::timeout(now, due);
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!fds[1].revents().is_empty()),
            Err(error) => Err(ShipError::waiting(error)),
        }
    }
}

fn input(error: impl std::error::Error) -> ShipError {
    ShipError::Input(error.to_string())
}

fn id(secure: &Secure, peer: &SecurePeer) -> Result<PeerId, ShipError> {
    let id = secure.peer(&peer.key);
    id.ok_or_else(|| ShipError::Input("the other end has no key".to_owned()))
}

fn udp_of(address: PeerAddress) -> Option<SocketAddr> {
    match address {
        PeerAddress::Udp(address) => Some(address),
        PeerAddress::Ethernet(_) => None,
    }
}

/// Sends the session's messages to the called end or the caller. An answer leaves from the address that was called.
fn say(
    secure: &mut Secure,
    udp: &Udp,
    (mut called, from): (Option<&mut Called>, Option<IpAddr>),
    unsent: &mut Option<io::Error>,
) {
    while let Some(message) = secure.poll_transmit() {
        let called = called.as_mut().map(|called| match message.bytes().len() {
            INITIATION_LEN => called.ask(),
            _ => called.at(),
        });
        if let Some(to) = called.or(udp_of(message.to)) {
            // A lost handshake message is repeated.
            *unsent = udp.send_to(to, from, message.bytes()).err();
        }
    }
}

/// Bytes of UDP and IP headers in a packet to this address.
const fn headers(to: SocketAddr) -> usize {
    airlane_node::Underlay::Udp { listen: to }.overhead(None)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::UdpSocket;

    use airlane_secure::is_handshake;

    use super::super::Ticket;
    use super::*;

    /// An attacker on the path may deliver a datagram first, from any address.
    #[test]
    fn a_sender_sends_to_no_address_but_the_one_that_it_called() {
        let [there, elsewhere] = says_from_elsewhere(false, |heard, _, _| heard >= 5);
        assert!(there >= 5);
        assert_eq!(elsewhere, 0);
    }

    /// The other end has moved, and answers from its new address.
    #[test]
    fn a_sender_follows_a_receiver_that_answers_from_a_new_address() {
        let [_, elsewhere] = says_from_elsewhere(true, |_, _, elsewhere| elsewhere >= 20);
        assert!(elsewhere >= 20, "{elsewhere}");
    }

    /// The receiver's datagrams arrive from another address than the one called. If it has `moved`, only that
    /// address reaches it once it has been heard. Each handshake arrives twice. Returns the datagrams sent to
    /// either address, without handshakes, when `enough` returns `true`; `enough` gets the least number of
    /// datagrams that both ends received, and the two counts.
    fn says_from_elsewhere(moved: bool, enough: impl Fn(u32, u32, u32) -> bool) -> [u32; 2] {
        let local = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (middle, elsewhere) = (local(), local());
        for socket in [&middle, &elsewhere] {
            socket.set_nonblocking(true).unwrap();
        }
        let ticket = Ticket::new().unwrap();
        let line = |private, key, address| {
            let preshared = Some(ticket.preshared().clone());
            let peer = SecurePeer {
                key,
                address,
                preshared,
            };
            Line::open("127.0.0.1:0".parse().unwrap(), private, peer).unwrap()
        };
        let receiver = line(ticket.receiver(), ticket.sender().public(), None);
        let at = PeerAddress::Udp(middle.local_addr().unwrap());
        let sender = line(ticket.sender(), ticket.receiver().public(), Some(at));
        let addresses = [&receiver, &sender].map(|line| line.local().unwrap());
        let (mut ends, mut buffer) = ([receiver, sender], [0; 2_000]);
        let (mut heard, mut went) = ([0; 2], [0; 2]);
        let deadline = clock::now() + Duration::from_secs(30);
        while !enough(heard[0].min(heard[1]), went[0], went[1]) && clock::now() < deadline {
            for (end, line) in ends.iter_mut().enumerate() {
                let now = clock::now();
                let Ok(()) = line.receive(now, |_| {
                    heard[end] += 1;
                    Ok::<_, Infallible>(())
                });
                line.send(now, b"something");
                line.flush();
            }
            // The receiver is reached at the called address, or at its new one.
            let is_away = moved && heard[0] > 0;
            for (place, socket) in [&middle, &elsewhere].into_iter().enumerate() {
                while let Ok((len, from)) = socket.recv_from(&mut buffer) {
                    let (socket, to) = match from == addresses[1] {
                        true => {
                            went[place] += u32::from(!is_handshake(&buffer[..len]));
                            if ![!is_away, moved][place] {
                                continue;
                            }
                            (socket, addresses[0])
                        }
                        // The receiver's datagrams arrive from the other address.
                        false => (&elsewhere, addresses[1]),
                    };
                    for _ in 0..=usize::from(is_handshake(&buffer[..len])) {
                        socket.send_to(&buffer[..len], to).unwrap();
                    }
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // A copy of a call is no call with an older clock.
        assert_eq!(ends.map(|mut line| line.take_stranger()), [None; 2]);
        went
    }
}
