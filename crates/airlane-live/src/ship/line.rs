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
    /// The address of this machine that the other end called last.
    from: Option<IpAddr>,
    /// Who called last with other keys.
    stranger: Option<PeerAddress>,
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

    /// Who called with another ticket since the last call of this.
    pub(super) fn take_stranger(&mut self) -> Option<PeerAddress> {
        self.stranger.take()
    }

    /// Calls the other end at another address.
    pub(super) fn seek(&mut self, now: Instant, at: SocketAddr) {
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
        if self.to != Some(sealed.to) && from > 0 {
            let last = self.batch.split_off(from);
            self.flush();
            self.batch.extend_from_slice(&last);
        }
        self.to = Some(sealed.to);
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
                        *stranger = Some(came.from);
                    }
                    Err(_) => {}
                }
                say(secure, udp, came.to);
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
        say(&mut self.secure, &self.udp, None);
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

/// What the session has to say; an answer leaves from the address that was called.
fn say(secure: &mut Secure, udp: &Udp, from: Option<IpAddr>) {
    while let Some(message) = secure.poll_transmit() {
        if let PeerAddress::Udp(to) = message.to {
            // Handshakes are repeated.
            let _sent = udp.send_to(to, from, message.bytes());
        }
    }
}
