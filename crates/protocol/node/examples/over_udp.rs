//! Two nodes with keys over UDP sockets of this machine, and what a driver of a node has to do:
//!
//! ```text
//! cargo run -p airlane-node --example over_udp
//! ```
//!
//! The first node sends a thousand IP packets to the second. Every tenth datagram is thrown away before it leaves; all
//! packets arrive, once each. A TUN interface would take the place of the code that makes packets and counts them.

#![expect(clippy::print_stdout, reason = "the result goes to standard output")]
#![expect(
    clippy::disallowed_methods,
    reason = "a driver reads the clock that its node is given"
)]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{self, SystemTime, UNIX_EPOCH};

use airlane_base::config::load;
use airlane_base::{Duration, Instant};
use airlane_node::config::LiveConfig;
use airlane_node::packet::ecn::Ecn;
use airlane_node::{DatagramAddresses, Node, PathFacts, Request, Secrets, Start, Underlay};
use airlane_secure::{PeerAddress, PrivateKey, PublicKey, Wall};

const PACKETS: usize = 1_000;
const HEADERS: usize = 28;
const DATA: usize = 1_000;
/// Every so manyth datagram is lost.
const LOST: usize = 10;
const PATIENCE: time::Duration = time::Duration::from_secs(30);

/// A node with its socket: the driver.
struct End {
    node: Node,
    socket: UdpSocket,
    sent: usize,
}

impl End {
    fn new(
        now: Instant,
        (number, key): (u8, PrivateKey),
        (peer, peer_key): (SocketAddr, &PublicKey),
        socket: UdpSocket,
    ) -> Result<Self, Box<dyn Error>> {
        let listen = socket.local_addr()?;
        // The file of `airlane up`. The key's file is for the driver to read; this one has the key already.
        let file = format!(
            r#"
            schema = 1
            tun = {{ addresses = ["10.7.0.{number}/24"] }}
            [link]
            rate = "20 Mbit/s"
            underlay = {{ kind = "udp", listen = "{listen}", peer = "{peer}" }}
            security = {{ private-key = "key", peer-key = "{peer_key}" }}
            services = [{{ number = 1, name = "all", goal = "bulk" }}]
            classes = [{{ match = {{ protocol = "udp" }}, service = "all" }}]
            "#
        );
        let config: LiveConfig = load(&file, "node.toml")?;
        let secrets = Secrets {
            private: key,
            preshared: Default::default(),
            fast_aes: false,
        };
        let start = Start {
            config: &config,
            underlay: Underlay::Udp { listen },
            paths: &[PathFacts::UNKNOWN],
            secrets: Some(&secrets),
            seed: [number; 32],
        };
        let node = Node::new(now, start)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            node,
            socket,
            sent: 0,
        })
    }

    /// One turn: what has arrived, what is due, what leaves, and what the node asks of its driver.
    fn turn(&mut self, now: Instant) -> Result<(), Box<dyn Error>> {
        let mut buffer = [0; 2_048];
        self.node.begin_datagrams();
        let mut taken = 0;
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            let addresses = DatagramAddresses {
                from: PeerAddress::Udp(from),
                to: Some(self.socket.local_addr()?.ip()),
            };
            self.node
                .handle_datagram(now, &buffer[..length], addresses, Ecn::NotEct);
            taken += 1;
        }
        self.node.end_datagrams(taken);
        if self.node.poll_timeout(now) <= now {
            let since = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
            self.node
                .handle_timeout(now, Wall::from_unix(Duration::from_nanos(since)));
        }
        while let Some(datagram) = self.node.poll_datagram(now) {
            self.sent += 1;
            if let PeerAddress::Udp(to) = datagram.to
                && !self.sent.is_multiple_of(LOST)
            {
                self.socket.send_to(datagram.bytes, to)?;
            }
        }
        while let Some(request) = self.node.poll_request() {
            match request {
                Request::Path { link, .. } => {
                    self.node.handle_path(now, link, PathFacts::UNKNOWN);
                }
                Request::Mtu(mtu) => self.node.handle_mtu(now, mtu),
                // The file has no host names, and a listening port that stays.
                Request::LookUp(_) | Request::Port(_) => {}
            }
        }
        Ok(())
    }
}

/// A UDP packet with a number.
fn packet(number: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let [from, to] = [1, 2].map(|host| Ipv4Addr::new(10, 7, 0, host).octets());
    let builder = etherparse::PacketBuilder::ipv4(from, to, 64).udp(5_000, 5_000);
    let mut data = [0; DATA];
    data[..8].copy_from_slice(&(number as u64).to_be_bytes());
    let mut packet = Vec::with_capacity(HEADERS + DATA);
    builder.write(&mut packet, &data)?;
    Ok(packet)
}

fn main() -> Result<(), Box<dyn Error>> {
    let began = time::Instant::now();
    let now = || Instant::from_nanos(began.elapsed().as_nanos() as u64);
    let sockets = [
        UdpSocket::bind("127.0.0.1:0")?,
        UdpSocket::bind("127.0.0.1:0")?,
    ];
    let at = [sockets[0].local_addr()?, sockets[1].local_addr()?];
    // Keys and seeds must be secret: a real driver asks its system for random bytes.
    let keys = [[1; 32], [2; 32]].map(PrivateKey::generate);
    let publics = [keys[0].public(), keys[1].public()];
    let ([left, right], [first, second]) = (sockets, keys);
    let mut left = End::new(now(), (1, first), (at[1], &publics[1]), left)?;
    let mut right = End::new(now(), (2, second), (at[0], &publics[0]), right)?;

    let (mut offered, mut arrived) = (0, [0_u32; PACKETS]);
    while arrived.contains(&0) && began.elapsed() < PATIENCE {
        // A packet each millisecond, once a session is there; until then the node would drop and count them.
        let ready = left.node.status(now()).peers[0].session.id.is_some();
        if ready && offered < PACKETS {
            left.node.handle_packet(now(), &packet(offered)?);
            offered += 1;
        }
        for end in [&mut left, &mut right] {
            end.turn(now())?;
        }
        while let Some((_, packet)) = right.node.poll_deliver(now()) {
            let number: [u8; 8] = packet.bytes()[HEADERS..HEADERS + 8].try_into()?;
            arrived[u64::from_be_bytes(number) as usize] += 1;
        }
        std::thread::sleep(time::Duration::from_millis(1));
    }
    let (once, sent) = (arrived.iter().filter(|n| **n == 1).count(), left.sent);
    println!(
        "{once} of {offered} packets arrived, once each; {sent} datagrams were sent, a tenth of them lost"
    );
    match once == PACKETS {
        true => Ok(()),
        false => Err("not all packets arrived, once each".into()),
    }
}
