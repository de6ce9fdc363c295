//! Limits the handshake messages of each address under load: a token bucket for each network that usually has one owner
//! (/32 of IPv4, /64 of IPv6), or for an Ethernet address.
//!
//! After WireGuard (NDSS 2017, section 5.3), which does so once the sender has shown a cookie; before that, its address
//! may be spoofed. A bucket is stored as the time at which it is full again (the virtual scheduling of ITU-T I.371), and
//! a full bucket is not stored at all. Invariant: at most [`MOST`] buckets are stored; while all are in use, a new
//! address is refused.

use std::collections::BTreeMap;
use std::net::IpAddr;

use airlane_base::{Duration, Instant};

use crate::peer_address::{EthernetAddress, PeerAddress};

/// Maximum number of networks tracked, 32 kB of them.
const MOST: usize = 1024;
/// Shortest time between two removals of full buckets.
const SWEEP: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

/// The smallest block of addresses that one owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Network {
    V4([u8; 4]),
    V6([u8; 8]),
    Ethernet([u8; 6]),
}

impl Network {
    fn of(address: PeerAddress) -> Self {
        match address {
            // A dual-stack socket shows IPv4 addresses as ::ffff:0:0/96.
            PeerAddress::Udp(address) => match address.ip().to_canonical() {
                IpAddr::V4(ip) => Self::V4(ip.octets()),
                IpAddr::V6(ip) => {
                    let [a, b, c, d, e, f, g, h, ..] = ip.octets();
                    Self::V6([a, b, c, d, e, f, g, h])
                }
            },
            PeerAddress::Ethernet(EthernetAddress(octets)) => Self::Ethernet(octets),
        }
    }
}

/// Token buckets, as the module describes.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// Time in which a token is earned.
    interval: Duration,
    /// When the bucket of each network is full again.
    full_at: BTreeMap<Network, Instant>,
    next_sweep: Instant,
}

impl Addresses {
    /// Each network may send `per_second` messages per second, and save up as many.
    pub(crate) fn new(now: Instant, per_second: u32) -> Self {
        Self {
            interval: SECOND / u64::from(per_second.max(1)),
            full_at: BTreeMap::new(),
            next_sweep: now,
        }
    }

    /// Takes a token of an address. False if it has none left.
    pub(crate) fn admit(&mut self, now: Instant, from: PeerAddress) -> bool {
        let network = Network::of(from);
        if let Some(full_at) = self.full_at.get_mut(&network) {
            let then = (*full_at).max(now) + self.interval;
            let has = then <= now + SECOND;
            if has {
                *full_at = then;
            }
            return has;
        }
        if self.full_at.len() >= MOST && now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        let room = self.full_at.len() < MOST;
        if room {
            self.full_at.insert(network, now + self.interval);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn from(text: &str) -> PeerAddress {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_is_an_ipv4_address_or_an_ipv6_64() {
        let same = |a: &str, b: &str| Network::of(from(a)) == Network::of(from(b));
        assert!(same("192.0.2.1:1", "192.0.2.1:2"));
        assert!(!same("192.0.2.1:1", "192.0.2.2:1"));
        assert!(same("[2001:db8::1]:1", "[2001:db8::ffff:0:0:2]:2"));
        assert!(!same("[2001:db8::1]:1", "[2001:db8:0:1::1]:1"));
        // As a dual-stack socket shows them.
        assert!(same("[::ffff:192.0.2.1]:1", "192.0.2.1:1"));
        assert!(!same("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1"));
        assert!(!same("02:00:00:00:00:01", "02:00:00:00:00:02"));
    }

    #[test]
    fn the_number_of_buckets_is_bounded_and_full_ones_are_reused() {
        let mut addresses = Addresses::new(at(0), 10);
        let host = |n: u32| PeerAddress::Udp((n.to_be_bytes(), 1).into());
        let taken = (0..5_000).filter(|n| addresses.admit(at(0), host(*n)));
        assert_eq!(taken.count(), MOST);
        assert!(addresses.admit(at(0), host(3)), "it has its bucket");
        // One token later, the buckets of hosts that sent one message are full again.
        assert!(!addresses.admit(at(50), host(9_000)));
        assert!(addresses.admit(at(100), host(9_000)));
        assert_eq!(addresses.full_at.len(), 2);
    }

    proptest! {
        /// In any time t a network gets at most t plus a second's worth; one that asks for less gets everything.
        #[test]
        fn no_network_exceeds_the_rate_plus_one_second(
            gaps in prop::collection::vec(0..300u64, 1..300),
            per_second in 1..40u32,
        ) {
            let mut addresses = Addresses::new(at(0), per_second);
            let (mut now, mut admitted, mut patient) = (0, Vec::new(), 0);
            for gap in gaps {
                now += gap;
                if addresses.admit(at(now), from("192.0.2.1:1")) {
                    admitted.push(now);
                }
                patient += 1000 / u64::from(per_second) + 1;
                prop_assert!(addresses.admit(at(patient.max(now)), from("192.0.2.2:1")));
                patient = patient.max(now);
            }
            for (i, &first) in admitted.iter().enumerate() {
                for (j, &last) in admitted.iter().enumerate().skip(i) {
                    let most = u64::from(per_second) * (last - first + 1000) / 1000 + 1;
                    prop_assert!((j - i + 1) as u64 <= most);
                }
            }
        }
    }
}
