//! The sealed way to the other end: a UDP socket and the session over it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use airlane_base::{Duration, Instant};
use airlane_secure::{
    AcceptedDatagram, Limits, OVERHEAD, PeerAddress, PeerId, PrivateKey, Refused, Secure,
    SecurePeer,
};
use airlane_ship::LONGEST_DATAGRAM;
use rustix::event::{PollFd, PollFlags, poll};

use super::ShipError;
use crate::clock;
use crate::device::DeviceError;
use crate::security::{has_fast_aes, random};
use crate::underlay::SEND_MAX;
use crate::underlay::udp::{Received, Udp};

/// Every path carries so many bytes with IP's headers (RFC 8200, section 5).
const LEAST_MTU: usize = 1_280;
/// Frames of most paths carry so many.
const USUAL_MTU: usize = 1_500;
/// Calls to receive before something else has its turn.
const RECEIVES_IN_A_ROW: usize = 16;
/// The system's buffer is full for so long at most.
const FULL: Duration = Duration::from_millis(50);

/// The way to the other end.
pub(super) struct Line {
    udp: Udp,
    secure: Secure,
    peer: PeerId,
    received: Received,
    /// Sealed datagrams of `size` bytes each, the last perhaps shorter, that wait for one call.
    batch: Vec<u8>,
    size: usize,
    to: Option<PeerAddress>,
    /// Where a sender calls. Nothing goes elsewhere, wherever what comes from there seems to come from: who copies a
    /// datagram and is first would lead a flood to any host.
    called: Option<SocketAddr>,
    /// The address of this machine that the other end called last.
    from: Option<IpAddr>,
    /// Who called last and was refused, and why.
    stranger: Option<(PeerAddress, &'static str)>,
    plain: Box<[u8]>,
}

impl Line {
    /// Listens, and calls the other end if it is known where it is.
    pub(super) fn open(
        listen: SocketAddr,
        private: PrivateKey,
        peer: SecurePeer,
    ) -> Result<Self, ShipError> {
        let udp = Udp::bind(listen)?;
        let seed =
            random().map_err(|error| DeviceError::new("random numbers", "draw a seed", error))?;
        let called = peer.address.and_then(udp_of);
        let key = peer.key;
        let refused = |error: airlane_secure::PeersError| ShipError::Input(error.to_string());
        let mut secure = Secure::new(clock::now(), private, &[peer], Limits::default(), seed)
            .map_err(refused)?;
        secure.set_fast_aes(has_fast_aes());
        let peer = secure
            .peer(&key)
            .ok_or_else(|| ShipError::Input("the other end has no key".to_owned()))?;
        Ok(Self {
            udp,
            secure,
            peer,
            received: Received::new(),
            batch: Vec::with_capacity(SEND_MAX),
            size: 0,
            to: None,
            called,
            from: None,
            stranger: None,
            plain: vec![0; 1 << 16].into_boxed_slice(),
        })
    }

    /// Where it listens.
    pub(super) fn local(&self) -> Result<SocketAddr, ShipError> {
        Ok(self.udp.local()?)
    }

    /// Lengths of contents that the path may carry, by what the kernel knows of it.
    pub(super) fn sizes(&self, to: SocketAddr) -> Vec<usize> {
        let headers = self.udp.overhead(Some(to));
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

    /// Bytes of an IP packet to there beside the contents.
    pub(super) fn headers(&self, to: SocketAddr) -> usize {
        self.udp.overhead(Some(to)) + OVERHEAD
    }

    pub(super) fn is_established(&self, now: Instant) -> bool {
        self.secure.is_established(now, self.peer)
    }

    /// Who was refused since the last call of this, and why.
    pub(super) fn take_stranger(&mut self) -> Option<(PeerAddress, &'static str)> {
        self.stranger.take()
    }

    /// Calls the other end at another address.
    pub(super) fn seek(&mut self, now: Instant, at: SocketAddr) {
        self.called = Some(at);
        self.secure.seek(now, self.peer, PeerAddress::Udp(at));
    }

    /// Asks the other end for new keys: it may have been started anew, and know none.
    pub(super) fn renew(&mut self, now: Instant) {
        self.secure.rekey(now, self.peer);
    }

    /// Seals contents. They leave with others of their length, at the latest with [`Line::flush`]. Whatever there is no
    /// session for, or no way, is lost as on any path.
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
        let to = self.called.map_or(sealed.to, PeerAddress::Udp);
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

    /// What waits leaves.
    pub(super) fn flush(&mut self) {
        if let Some(PeerAddress::Udp(to)) = self.to.filter(|_| !self.batch.is_empty()) {
            let send = |from| self.udp.send((to, from), &self.batch, self.size, 0);
            let sent = send(self.from);
            // Whatever the second says, the path has lost it.
            match sent {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for_room();
                    let _again = send(self.from);
                }
                Err(_) if self.from.is_some() => {
                    // The address that was called may be gone.
                    let _again = send(None);
                    self.from = None;
                }
                Err(_) => {}
            }
        }
        self.batch.clear();
        self.size = 0;
    }

    fn wait_for_room(&self) {
        let mut fds = [PollFd::new(&self.udp, PollFlags::OUT)];
        let at_most = clock::timeout(Instant::ORIGIN, Instant::ORIGIN + FULL);
        let _woken = poll(&mut fds, Some(&at_most));
    }

    /// Gives `take` the contents of all that came from the other end.
    pub(super) fn receive<E>(
        &mut self,
        now: Instant,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self {
            udp,
            secure,
            received,
            plain,
            from: own,
            stranger,
            called,
            ..
        } = self;
        for _ in 0..RECEIVES_IN_A_ROW {
            if udp.receive(received).is_err() {
                break;
            }
            let mut taken = Ok(());
            received.for_each(|datagram, came, _| {
                if taken.is_err() {
                    return;
                }
                // Secure counts what it refuses.
                let accepted = secure.handle_datagram(now, came.from, datagram, plain);
                match accepted {
                    Ok(_) => *own = came.to,
                    Err(Refused::Mac1 | Refused::UnknownKey | Refused::Preshared) => {
                        *stranger = Some((came.from, "with another ticket"));
                    }
                    Err(Refused::OldInitiation) => {
                        *stranger = Some((came.from, "with a clock behind that of the last call; set it, or start this end again"));
                    }
                    Err(_) => {}
                }
                say(secure, udp, (*called, came.to));
                if let Ok(AcceptedDatagram::Data { len, .. }) = accepted {
                    taken = take(&plain[..len]);
                }
            });
            taken?;
        }
        self.tick(now);
        Ok(())
    }

    /// What the session has to do and to say.
    fn tick(&mut self, now: Instant) {
        if self.secure.poll_timeout().is_some_and(|due| due <= now) {
            self.secure.handle_timeout(now, clock::wall());
        }
        say(&mut self.secure, &self.udp, (self.called, None));
    }

    /// Waits until something comes, something is due, or somebody asks for the end: whether somebody does.
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

fn udp_of(address: PeerAddress) -> Option<SocketAddr> {
    match address {
        PeerAddress::Udp(address) => Some(address),
        PeerAddress::Ethernet(_) => None,
    }
}

/// What the session has to say, to the end that is called or whoever called; an answer leaves from the address that was
/// called.
fn say(secure: &mut Secure, udp: &Udp, (called, from): (Option<SocketAddr>, Option<IpAddr>)) {
    while let Some(message) = secure.poll_transmit() {
        if let Some(to) = called.or(udp_of(message.to)) {
            // Handshakes are repeated.
            let _sent = udp.send_to(to, from, message.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::UdpSocket;

    use super::super::Ticket;
    use super::*;

    /// Someone on the path may deliver a datagram first, from any address.
    #[test]
    fn a_sender_sends_to_no_address_but_the_one_that_it_called() {
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
        let (mut heard, mut strayed) = ([0; 2], 0);
        let deadline = clock::now() + Duration::from_secs(20);
        while heard.iter().any(|heard| *heard < 5) && clock::now() < deadline {
            for (end, line) in ends.iter_mut().enumerate() {
                let now = clock::now();
                let Ok(()) = line.receive(now, |_| {
                    heard[end] += 1;
                    Ok::<_, Infallible>(())
                });
                line.send(now, b"something");
                line.flush();
            }
            while let Ok((len, from)) = middle.recv_from(&mut buffer) {
                let (socket, to) = match from == addresses[1] {
                    true => (&middle, addresses[0]),
                    // What the receiver says comes from elsewhere.
                    false => (&elsewhere, addresses[1]),
                };
                socket.send_to(&buffer[..len], to).unwrap();
            }
            while elsewhere.recv_from(&mut buffer).is_ok() {
                strayed += 1;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(heard.iter().all(|heard| *heard >= 5), "{heard:?}");
        assert_eq!(strayed, 0);
    }
}
