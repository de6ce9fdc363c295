//! Two nodes, the datagrams between them, and time. A datagram arrives at the node that has its destination address, if
//! any.

use std::collections::{BTreeMap, VecDeque};

use airlane_base::{Duration, Instant};

use crate::{
    AcceptedDatagram, Limits, OVERHEAD, PeerAddress, PeerId, PresharedKey, PrivateKey, Refused,
    SealError, Secure, SecurePeer, Transmit, Wall,
};

/// Delay of a datagram without a fate.
pub(super) const DELAY: Duration = Duration::from_millis(20);
const ROOM: usize = 2_000;

/// The fate of a datagram: when its copies arrive.
#[derive(Clone, Debug)]
pub(super) struct Fate(pub(super) Vec<Duration>);

#[derive(Debug)]
struct Flying {
    from: PeerAddress,
    to: PeerAddress,
    bytes: Vec<u8>,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) ends: [Secure; 2],
    pub(super) addresses: [PeerAddress; 2],
    /// The wall clock of each end at the origin of time.
    pub(super) walls: [Duration; 2],
    /// Fates of the next datagrams; all later ones arrive.
    pub(super) fates: VecDeque<Fate>,
    /// Whether everything is lost.
    pub(super) dead: bool,
    flying: BTreeMap<(Instant, u64), Flying>,
    launched: u64,
    /// The payloads opened at each end.
    pub(super) got: [Vec<Vec<u8>>; 2],
}

pub(super) fn key(end: usize) -> PrivateKey {
    PrivateKey::generate([end as u8 + 1; 32])
}

pub(super) fn socket_address(ip: [u8; 4], port: u16) -> PeerAddress {
    PeerAddress::Udp((ip, port).into())
}

pub(super) fn address(host: u8) -> PeerAddress {
    socket_address([192, 0, 2, host], 4_000)
}

/// An end after a start; `seed` differs from start to start.
pub(super) fn node(
    now: Instant,
    end: usize,
    address: Option<PeerAddress>,
    limits: Limits,
    seed: u8,
) -> Secure {
    let peer = SecurePeer {
        preshared: None,
        key: key(1 - end).public(),
        address,
    };
    Secure::new(now, key(end), &[peer], limits, [seed; 32]).expect("two different keys")
}

impl World {
    /// `knows`: whether each end knows the other's address and so initiates.
    pub(super) fn with_limits(knows: [bool; 2], limits: [Limits; 2]) -> Self {
        let addresses = [address(1), address(2)];
        let ends = [0, 1].map(|end: usize| {
            let address = knows[end].then_some(addresses[1 - end]);
            let seed = 100 + end as u8;
            node(Instant::ORIGIN, end, address, limits[end], seed)
        });
        Self {
            now: Instant::ORIGIN,
            ends,
            addresses,
            // The clocks disagree; nothing compares them.
            walls: [Duration::from_secs(1_000_000), Duration::from_secs(50)],
            fates: VecDeque::new(),
            dead: false,
            flying: BTreeMap::new(),
            launched: 0,
            got: [vec![], vec![]],
        }
    }

    /// Gives each end a pre-shared key for the other, as a new list of peers would.
    pub(super) fn preshare(&mut self, keys: [Option<u8>; 2]) {
        for (end, byte) in keys.into_iter().enumerate() {
            let id = self.peer(end);
            let peer = SecurePeer {
                preshared: byte.map(|byte| PresharedKey::generate([byte; 32])),
                key: key(1 - end).public(),
                address: self.ends[end].peers[&id].configured,
            };
            let known = self.ends[end].set_peers(self.now, &[peer]);
            known.expect("the same key");
        }
    }

    pub(super) fn new(knows: [bool; 2]) -> Self {
        Self::with_limits(knows, [Limits::default(); 2])
    }

    /// A world with a session that end 0 initiated.
    pub(super) fn established() -> Self {
        let mut world = Self::new([true, false]);
        world.run_for(Duration::from_secs(1));
        assert!(world.is_established());
        world
    }

    pub(super) fn peer(&self, end: usize) -> PeerId {
        let key = key(1 - end).public();
        self.ends[end].peer(&key).expect("it is configured")
    }

    pub(super) fn is_established(&self) -> bool {
        [0, 1].iter().all(|&end| {
            let peer = self.peer(end);
            self.ends[end].is_established(self.now, peer)
        })
    }

    pub(super) fn wall(&self, end: usize) -> Wall {
        let elapsed = self.now.saturating_since(Instant::ORIGIN);
        Wall::from_unix(self.walls[end] + elapsed)
    }

    /// The state of one end without its counters.
    pub(super) fn snapshot(&self, end: usize) -> String {
        format!("{:?}", self.ends[end])
    }

    /// A data message of one end with this payload, not sent yet.
    pub(super) fn seal(&mut self, end: usize, payload: &[u8]) -> Result<Transmit, SealError> {
        assert!(payload.len() + OVERHEAD <= crate::INITIATION_LEN);
        let (peer, mut out) = (self.peer(end), [0; ROOM]);
        let sealed = self.ends[end].seal(self.now, peer, &[payload], &mut out)?;
        Ok(Transmit::new(sealed.to, &out[..sealed.len]))
    }

    /// The same, bound.
    pub(super) fn seal_bound(&mut self, end: usize, payload: &[u8]) -> Result<Transmit, SealError> {
        assert!(payload.len() + OVERHEAD <= crate::INITIATION_LEN);
        let (peer, mut out) = (self.peer(end), [0; ROOM]);
        let sealed = self.ends[end].seal_bound(self.now, peer, &[payload], &mut out)?;
        Ok(Transmit::new(sealed.to, &out[..sealed.len]))
    }

    pub(super) fn bind(&mut self, end: usize, binding: Option<u64>) {
        let peer = self.peer(end);
        self.ends[end].bind(peer, binding);
    }

    pub(super) fn send(&mut self, end: usize, payload: &[u8]) -> Result<(), SealError> {
        let message = self.seal(end, payload)?;
        self.launch(end, &message);
        Ok(())
    }

    pub(super) fn launch(&mut self, end: usize, message: &Transmit) {
        let fate = match self.dead {
            true => Fate(vec![]),
            false => self.fates.pop_front().unwrap_or(Fate(vec![DELAY])),
        };
        for delay in fate.0 {
            let flying = Flying {
                from: self.addresses[end],
                to: message.to,
                bytes: message.bytes().to_vec(),
            };
            self.flying
                .insert((self.now + delay, self.launched), flying);
            self.launched += 1;
        }
    }

    /// Delivers a datagram to an end now.
    pub(super) fn arrive(
        &mut self,
        end: usize,
        from: PeerAddress,
        bytes: &[u8],
    ) -> Result<AcceptedDatagram, Refused> {
        let mut plain = [0; ROOM];
        let received = self.ends[end].handle_datagram(self.now, from, bytes, &mut plain);
        if let Ok(AcceptedDatagram::Data { len, .. }) = received {
            self.got[end].push(plain[..len].to_vec());
        }
        received
    }

    /// Sends everything that an end has to send.
    pub(super) fn drain(&mut self, end: usize) {
        while let Some(message) = self.ends[end].poll_transmit() {
            self.launch(end, &message);
        }
    }

    /// Takes the next message of an end instead of sending it.
    pub(super) fn intercept(&mut self, end: usize) -> Transmit {
        self.ends[end].poll_transmit().expect("a message")
    }

    pub(super) fn timeout(&mut self, end: usize) {
        let wall = self.wall(end);
        self.ends[end].handle_timeout(self.now, wall);
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    pub(super) fn run_until(&mut self, until: Instant) {
        (0..2).for_each(|end| self.drain(end));
        while let Some(at) = self.next_event().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            for end in [0, 1] {
                if self.ends[end]
                    .poll_timeout()
                    .is_some_and(|due| due <= self.now)
                {
                    self.timeout(end);
                    self.drain(end);
                    let next = self.ends[end].poll_timeout();
                    assert!(next.is_none_or(|due| due > self.now), "time stands still");
                }
            }
            while let Some(entry) = self.flying.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let Flying { from, to, bytes } = entry.remove();
                if let Some(end) = self.addresses.iter().position(|&own| own == to) {
                    let _refused_or_not = self.arrive(end, from, &bytes);
                    self.drain(end);
                }
            }
        }
        self.now = until;
    }

    fn next_event(&self) -> Option<Instant> {
        let flying = self.flying.keys().next().map(|&(at, _)| at);
        let timeouts = self.ends.iter().filter_map(Secure::poll_timeout);
        timeouts.chain(flying).min()
    }

    pub(super) fn refused(&self, end: usize, reason: Refused) -> u64 {
        self.ends[end].counters().refused.of(reason)
    }

    /// Asserts that payloads arrive in both directions now.
    pub(super) fn assert_works(&mut self) {
        for end in [0, 1] {
            let payload = format!("from {end} at {:?}", self.now);
            let sent = self.send(end, payload.as_bytes());
            assert_eq!(sent, Ok(()), "end {end}");
            self.run_for(DELAY * 2);
            let got = self.got[1 - end].last().expect("a payload");
            assert_eq!(got, payload.as_bytes(), "from end {end}");
        }
    }
}
