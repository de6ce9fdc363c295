//! Cost of a frame through the secure session: sealed at one end, opened at the other. It must not allocate: the
//! allocation columns show those of the handshake.

use airlane_base::{Duration, Instant};
use airlane_secure::{
    AcceptedDatagram, Limits, OVERHEAD, PeerAddress, PeerId, PrivateKey, Secure, SecurePeer, Wall,
};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};

#[global_allocator]
static ALLOC: divan::AllocProfiler = divan::AllocProfiler::system();

const FRAME: usize = 1400;
const FRAMES: usize = 10_000;

fn main() {
    divan::main();
}

/// Two nodes with a session between them.
struct Pair {
    ends: [Secure; 2],
    peers: [PeerId; 2],
    addresses: [PeerAddress; 2],
}

impl Pair {
    fn new(fast_aes: bool) -> Self {
        let keys = [1, 2].map(|n| PrivateKey::generate([n; 32]));
        let public = keys.each_ref().map(PrivateKey::public);
        let addresses = [1, 2].map(|host| PeerAddress::Udp(([192, 0, 2, host], 4_000).into()));
        let [first, second] = keys;
        // Only the first knows the other's address, so only it initiates.
        let node = |key, seed, peer: SecurePeer| {
            Secure::new(Instant::ORIGIN, key, &[peer], Limits::default(), [seed; 32])
                .expect("two different keys")
        };
        let second_end = SecurePeer {
            preshared: None,
            key: public[1],
            address: Some(addresses[1]),
        };
        let first_end = SecurePeer {
            preshared: None,
            key: public[0],
            address: None,
        };
        let mut ends = [node(first, 1, second_end), node(second, 2, first_end)];
        for end in &mut ends {
            end.set_fast_aes(fast_aes);
        }
        let peers = [(0, 1), (1, 0)].map(|(end, other): (usize, usize)| {
            ends[end].peer(&public[other]).expect("it is configured")
        });
        let mut pair = Self {
            ends,
            peers,
            addresses,
        };
        pair.shake_hands();
        pair
    }

    fn shake_hands(&mut self) {
        let wall = Wall::from_unix(Duration::from_secs(1));
        self.ends[0].handle_timeout(Instant::ORIGIN, wall);
        // Initiation, response, and the confirming empty message.
        for sender in [0, 1, 0] {
            let message = self.ends[sender].poll_transmit().expect("its turn");
            self.ends[1 - sender]
                .handle_datagram(
                    Instant::ORIGIN,
                    self.addresses[sender],
                    message.bytes(),
                    &mut [],
                )
                .expect("a whole handshake");
        }
    }
}

/// Whether both ends are fast at AES.
const CIPHERS: [bool; 2] = [false, true];

#[divan::bench(args = CIPHERS)]
fn seal(bencher: Bencher<'_, '_>, fast_aes: bool) {
    let frame = [0x55; FRAME];
    let mut out = [0; FRAME + OVERHEAD];
    bencher
        .counter(ItemsCount::new(FRAMES))
        .counter(BytesCount::new(FRAMES * FRAME))
        .with_inputs(|| Pair::new(fast_aes))
        .bench_local_refs(|pair| {
            for _ in 0..FRAMES {
                let Pair { ends, peers, .. } = pair;
                let sealed = ends[0].seal(Instant::ORIGIN, peers[0], &[&frame], &mut out);
                divan::black_box(sealed.expect("there is a session"));
            }
        });
}

#[divan::bench(args = CIPHERS)]
fn seal_and_open(bencher: Bencher<'_, '_>, fast_aes: bool) {
    let (header, payload) = ([0xaa; 12], [0x55; FRAME - 12]);
    let (mut out, mut plain) = ([0; FRAME + OVERHEAD], [0; FRAME]);
    bencher
        .counter(ItemsCount::new(FRAMES))
        .counter(BytesCount::new(FRAMES * FRAME))
        .with_inputs(|| Pair::new(fast_aes))
        .bench_local_refs(|pair| {
            for _ in 0..FRAMES {
                let Pair {
                    ends: [from, to],
                    peers,
                    addresses,
                } = pair;
                let parts: [&[u8]; 2] = [&header, &payload];
                let sealed = from
                    .seal(Instant::ORIGIN, peers[0], &parts, &mut out)
                    .expect("there is a session");
                let opened = to
                    .handle_datagram(
                        Instant::ORIGIN,
                        addresses[0],
                        &out[..sealed.len],
                        &mut plain,
                    )
                    .expect("a frame that was sealed");
                assert!(matches!(opened, AcceptedDatagram::Data { len: FRAME, .. }));
            }
        });
}

/// The cost of a handshake for both ends together.
#[divan::bench]
fn handshake(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| Pair::new(false));
}
