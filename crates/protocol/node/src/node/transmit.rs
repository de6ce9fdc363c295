//! Batches of frames for the underlay. Frames are written, or sealed, one after the other; each run of
//! datagrams of one length to one address leaves with one system call, in order.

use std::net::IpAddr;

use airlane_secure::PeerAddress;

use super::drops::Reason;

/// Most bytes in one system call: UDP's limit, less room for IP options.
pub const SEND_MAX: usize = 65_000;

/// Most datagrams in a batch.
const BATCH: usize = 256;

/// Datagrams that wait for the underlay.
#[derive(Debug)]
pub(crate) struct TransmitBatch {
    bytes: Box<[u8]>,
    /// In order, without gaps.
    waiting: Vec<Waiting>,
    /// Datagrams that were polled one by one, and where they end.
    polled: (usize, usize),
    /// Room to keep for the next datagram, bytes.
    longest: usize,
    /// The underlay's buffer is full. Nothing is added until it has room.
    blocked: bool,
}

/// Datagrams that can leave with one system call.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Destination.
    pub to: PeerAddress,
    /// Local address that they leave from, if chosen.
    pub from: Option<IpAddr>,
    /// The datagrams one after the other, each of `size` bytes; the last may be shorter.
    pub bytes: &'a [u8],
    /// Length of each, bytes.
    pub size: usize,
    /// Their traffic class byte.
    pub mark: u8,
    /// Whether they may be fragmented on the path.
    pub fragments: bool,
}

/// Why a socket did not send a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// Its buffer is full.
    Full,
    /// The call was interrupted; retry.
    Interrupted,
    /// Nothing can be sent from that local address, or not to that destination.
    NoSource,
    /// The datagram exceeds the interface's MTU.
    TooLong,
    /// Another error.
    Refused(Reason),
}

impl SendError {
    /// The reason that it is counted under.
    pub(crate) const fn reason(self) -> Reason {
        match self {
            Self::TooLong => Reason::TooBig,
            Self::Refused(reason) => reason,
            Self::Full | Self::Interrupted | Self::NoSource => Reason::NotSent,
        }
    }
}

/// A socket for datagrams.
pub trait Outlet {
    /// Most datagrams of a traffic class in one system call.
    fn run_max(&self, mark: u8) -> usize;

    /// Sends a run. Returns how many of its datagrams were sent, at least one.
    ///
    /// # Errors
    /// The error of the first datagram; nothing was sent then.
    fn send(&mut self, run: &Run<'_>) -> Result<usize, SendError>;
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Destination.
    pub to: PeerAddress,
    /// Local address that it leaves from, if chosen.
    pub from: Option<IpAddr>,
    /// Its payload.
    pub bytes: &'a [u8],
    /// Its traffic class byte.
    pub mark: u8,
    /// Whether it may be fragmented on the path.
    pub fragments: bool,
}

/// A datagram that bypasses the batch: a handshake, or a probe of the path.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    /// The link whose path it probes, if it is a probe.
    pub(crate) probes: Option<u8>,
    pub(crate) to: PeerAddress,
    pub(crate) from: Option<IpAddr>,
    pub(crate) bytes: Vec<u8>,
}

impl Aside {
    /// Its fields as a datagram.
    pub(crate) fn datagram(&self) -> Datagram<'_> {
        Datagram {
            to: self.to,
            from: self.from,
            bytes: &self.bytes,
            mark: 0,
            fragments: false,
        }
    }

    /// Sends it, if necessary from an address that the kernel chooses.
    pub(crate) fn send(&self, outlet: &mut impl Outlet) -> Result<(), SendError> {
        let mut run = Run {
            to: self.to,
            from: self.from,
            bytes: &self.bytes,
            size: self.bytes.len(),
            mark: 0,
            fragments: false,
        };
        match outlet.send(&run) {
            Err(_) if run.from.take().is_some() => outlet.send(&run).map(|_one| ()),
            sent => sent.map(|_one| ()),
        }
    }
}

/// A datagram of a batch.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Its end in the batch.
    end: usize,
    /// Its traffic class byte.
    mark: u8,
    /// The number of its link.
    link: u8,
    to: PeerAddress,
    /// Local address that it leaves from, if chosen.
    from: Option<IpAddr>,
    /// Whether it fits the interface's MTU. One built before the MTU became smaller is sent in fragments.
    fits: bool,
}

impl Waiting {
    /// Whether both can leave with one system call.
    fn joins(&self, other: &Self) -> bool {
        let all = |waiting: &Self| (waiting.mark, waiting.to, waiting.from, waiting.fits);
        all(self) == all(other)
    }
}

/// Result of sending a link's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendFate {
    /// They were sent.
    Sent { datagrams: u64, bytes: u64 },
    /// The path MTU has become smaller than one of them.
    Narrowed,
    /// The local address that the peer called is gone; the kernel chooses from now on.
    SourceGone,
    /// One was dropped.
    Dropped(Reason),
}

impl TransmitBatch {
    /// Creates a batch for datagrams of up to `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            bytes: vec![0; BATCH * longest.min(2048) + longest].into_boxed_slice(),
            waiting: Vec::with_capacity(BATCH),
            polled: (0, 0),
            longest,
            blocked: false,
        }
    }

    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether the batch may lack room for the next datagram.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= BATCH || self.bytes.len() - self.end() < self.longest
    }

    /// Adds a datagram of a link with this traffic class; `write` writes it and returns its length.
    ///
    /// # Errors
    /// The errors of `write`; nothing is added then.
    pub(crate) fn push<E>(
        &mut self,
        link: u8,
        (to, from): (PeerAddress, Option<IpAddr>),
        mark: u8,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let start = self.end();
        let length = write(&mut self.bytes[start..])?;
        let end = start + length;
        self.waiting.push(Waiting {
            end,
            mark,
            link,
            to,
            from,
            fits: true,
        });
        Ok(())
    }

    /// Where the next datagram begins.
    fn end(&self) -> usize {
        self.waiting.last().map_or(0, |last| last.end)
    }

    /// Number of datagrams from the one at `first` on that can leave together, and where they end: all have
    /// the same length, address and traffic class, except that the last may be shorter.
    fn run(&self, first: usize, start: usize, most: usize) -> (usize, usize) {
        let head = self.waiting[first];
        let size = head.end - start;
        let (mut count, mut end) = (1, head.end);
        while let Some(next) = self.waiting.get(first + count) {
            let length = next.end - end;
            let other = length > size || !next.joins(&head);
            if count >= most || other || length == 0 || next.end - start > SEND_MAX {
                break;
            }
            (count, end) = (count + 1, next.end);
            if length < size {
                break;
            }
        }
        (count, end)
    }

    /// Records that the underlay is full.
    pub(crate) const fn block(&mut self) {
        self.blocked = true;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.len() == self.polled.0
    }

    /// Makes room again, once all datagrams were polled.
    pub(crate) fn forget_polled(&mut self) {
        let (done, start) = self.polled;
        self.forget(done, start);
    }

    /// The next datagram alone, and its link.
    pub(crate) fn poll(&mut self) -> Option<(u8, Datagram<'_>)> {
        self.blocked = false;
        let (done, start) = self.polled;
        let next = *self.waiting.get(done)?;
        self.polled = (done + 1, next.end);
        let datagram = Datagram {
            to: next.to,
            from: next.from,
            bytes: &self.bytes[start..next.end],
            mark: next.mark,
            fragments: !next.fits,
        };
        Some((next.link, datagram))
    }

    /// Sends the batch in order, and reports the results to each link.
    pub(crate) fn flush(&mut self, outlet: &mut impl Outlet, tell: &mut dyn FnMut(u8, SendFate)) {
        self.blocked = false;
        let (mut done, mut start) = self.polled;
        // Lowered after a run was refused.
        let mut most = usize::MAX;
        while let Some(&head) = self.waiting.get(done) {
            let together = match head.fits {
                true => most.min(outlet.run_max(head.mark)),
                false => 1,
            };
            let (count, end) = self.run(done, start, together);
            let size = head.end - start;
            let run = Run {
                to: head.to,
                from: head.from,
                bytes: &self.bytes[start..end],
                size,
                mark: head.mark,
                fragments: !head.fits,
            };
            let reason = match outlet.send(&run) {
                Ok(sent) => {
                    // All datagrams of a run but its last have the same length.
                    let end = end.min(start + sent * size);
                    let (datagrams, bytes) = (sent as u64, (end - start) as u64);
                    tell(head.link, SendFate::Sent { datagrams, bytes });
                    (done, start) = (done + sent, end);
                    continue;
                }
                Err(SendError::Full) => {
                    self.blocked = true;
                    break;
                }
                Err(SendError::Interrupted) => continue,
                Err(SendError::NoSource) if head.from.is_some() => {
                    for waiting in &mut self.waiting[done..] {
                        waiting.from = waiting.from.filter(|from| Some(*from) != head.from);
                    }
                    tell(head.link, SendFate::SourceGone);
                    continue;
                }
                // One of them is at fault, or the device cannot send runs: retry one by one.
                Err(_) if count > 1 => {
                    most = 1;
                    continue;
                }
                // The interface's MTU has become smaller.
                Err(SendError::TooLong) if head.fits => {
                    tell(head.link, SendFate::Narrowed);
                    self.waiting[done].fits = false;
                    continue;
                }
                Err(error) => error.reason(),
            };
            tell(head.link, SendFate::Dropped(reason));
            (done, start) = (done + 1, end);
        }
        self.forget(done, start);
    }

    /// Removes the first `done` datagrams, which end at `start`.
    fn forget(&mut self, done: usize, start: usize) {
        self.polled = (0, 0);
        if done == self.waiting.len() {
            self.waiting.clear();
            return;
        }
        let end = self.end();
        self.bytes.copy_within(start..end, 0);
        self.waiting.drain(..done);
        for datagram in &mut self.waiting {
            datagram.end -= start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(port: u16) -> PeerAddress {
        let ip = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        PeerAddress::Udp(std::net::SocketAddr::new(ip, port))
    }
    const FARM: PeerAddress = at(1);

    fn push(transmit: &mut TransmitBatch, length: usize) {
        let written = transmit.push(0, (FARM, None), 0, |room| {
            room[..length].fill(length as u8);
            Ok::<_, ()>(length)
        });
        written.unwrap();
    }

    #[test]
    fn a_run_ends_at_another_length() {
        let mut transmit = TransmitBatch::new(1500);
        for length in [100, 100, 40, 100, 200, 200] {
            push(&mut transmit, length);
        }
        assert_eq!(transmit.run(0, 0, 64), (3, 240));
        assert_eq!(transmit.run(0, 0, 2), (2, 200));
        assert_eq!(transmit.run(3, 240, 64), (1, 340));
        assert_eq!(transmit.run(4, 340, 64), (2, 740));
    }

    #[test]
    fn a_run_ends_at_another_traffic_class() {
        let mut transmit = TransmitBatch::new(1500);
        for mark in [0, 0, 46 << 2, 46 << 2, 46 << 2] {
            let written = transmit.push(0, (FARM, None), mark, |_| Ok::<_, ()>(100));
            written.unwrap();
        }
        assert_eq!(transmit.run(0, 0, 64), (2, 200));
        assert_eq!(transmit.run(2, 200, 64), (3, 500));
        transmit.forget(2, 200);
        assert_eq!(transmit.run(0, 0, 64), (3, 300));
    }

    #[test]
    fn a_run_ends_at_another_address() {
        let mut transmit = TransmitBatch::new(1500);
        let mill = at(2);
        for (link, to) in [(0, FARM), (0, FARM), (1, mill), (0, FARM)] {
            let written = transmit.push(link, (to, None), 0, |_| Ok::<_, ()>(100));
            written.unwrap();
        }
        assert_eq!(transmit.run(0, 0, 64), (2, 200));
        assert_eq!(transmit.run(2, 200, 64), (1, 300));
    }

    #[test]
    fn a_run_is_never_longer_than_a_datagram_may_be() {
        let mut transmit = TransmitBatch::new(1500);
        for _ in 0..60 {
            push(&mut transmit, 1400);
        }
        let (count, end) = transmit.run(0, 0, 64);
        assert_eq!((count, end), (46, 46 * 1400));
    }

    #[test]
    fn what_is_not_sent_stays_in_order() {
        let mut transmit = TransmitBatch::new(1500);
        for length in [10, 20, 30] {
            push(&mut transmit, length);
        }
        transmit.forget(1, 10);
        let ends: Vec<_> = transmit.waiting.iter().map(|w| w.end).collect();
        assert_eq!(ends, [20, 50]);
        assert_eq!(transmit.bytes[..20], [20; 20]);
        assert_eq!(transmit.bytes[20..50], [30; 30]);
        transmit.forget(2, 50);
        assert!(transmit.waiting.is_empty());
    }

    #[test]
    fn a_batch_has_room_for_the_longest_until_full() {
        for longest in [1500, 65_000] {
            let mut transmit = TransmitBatch::new(longest);
            let mut pushed = 0;
            while !transmit.is_full() {
                push(&mut transmit, longest);
                pushed += 1;
            }
            assert!(pushed > 4, "{pushed}");
        }
    }
}
