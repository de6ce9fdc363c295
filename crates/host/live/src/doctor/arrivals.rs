//! Datagrams that reach this machine, counted before its packet filter can drop them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airlane_base::Duration;
use airlane_secure::PeerAddress;
use rustix::net::SocketType;

use crate::af_packet::{Batch, PacketSocket};

/// Interval of calls to a peer that does not answer, and a little more.
pub(super) const CALLS: Duration = Duration::from_secs(6);

/// Counts datagrams to one UDP port, by their source.
pub(super) struct Arrivals {
    socket: PacketSocket,
    batch: Batch,
    port: u16,
    counts: BTreeMap<IpAddr, u64>,
}

impl Arrivals {
    /// Starts to count; `None` over Ethernet, and without the privilege of packet sockets.
    pub(super) fn at(local: PeerAddress) -> Option<Self> {
        let PeerAddress::Udp(local) = local else {
            return None;
        };
        let socket = PacketSocket::open(SocketType::DGRAM).ok()?;
        socket.without_outgoing().ok()?;
        socket.bind(0, libc::ETH_P_ALL as u16).ok()?;
        Some(Self {
            socket,
            batch: Batch::new(),
            port: local.port(),
            counts: BTreeMap::new(),
        })
    }

    /// The datagrams that have arrived from this peer, or from anywhere if its address is not known.
    pub(super) fn from(&mut self, peer: Option<PeerAddress>) -> u64 {
        while self.socket.receive(&mut self.batch).is_ok() {
            for (packet, _) in self.batch.messages() {
                if let Some((source, port)) = udp_packet(packet)
                    && port == self.port
                {
                    *self.counts.entry(source).or_default() += 1;
                }
            }
            if !self.batch.is_full() {
                break;
            }
        }
        match peer.and_then(|peer| peer.ip()) {
            Some(ip) => self.counts.get(&ip).copied().unwrap_or_default(),
            None => self.counts.values().sum(),
        }
    }

    /// The finding about a packet filter of this machine that lets nothing in from a peer.
    pub(super) fn kept_out(
        &mut self,
        who: &str,
        peer: Option<PeerAddress>,
    ) -> Option<(String, String)> {
        let arrived = self.from(peer);
        (arrived > 0).then(|| {
            let port = self.port;
            (
                format!(
                    "a packet filter of this machine lets nothing in from {who}: {arrived} datagrams to UDP port \
                     {port} arrived, and none was delivered"
                ),
                format!(
                    "`nft list ruleset` or `iptables -S INPUT` show the rules; let in what comes to UDP port {port}"
                ),
            )
        })
    }
}

/// The source and the destination port of an IP packet, if it is a UDP datagram or the first fragment of one.
fn udp_packet(packet: &[u8]) -> Option<(IpAddr, u16)> {
    const UDP: u8 = 17;
    let (source, udp) = match packet.first()? >> 4 {
        4 => {
            let header = packet.first_chunk::<20>()?;
            let is_first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
            let source = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
            let length = usize::from(header[0] & 15) * 4;
            let udp = packet
                .get(length..)
                .filter(|_| header[9] == UDP && is_first)?;
            (IpAddr::from(source), udp)
        }
        6 => {
            let header = packet.first_chunk::<40>()?;
            let source = Ipv6Addr::from(*header[8..].first_chunk::<16>()?);
            let udp = packet.get(40..).filter(|_| header[6] == UDP)?;
            (IpAddr::from(source), udp)
        }
        _ => return None,
    };
    let port = udp.get(2..4)?.first_chunk::<2>()?;
    Some((source, u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_datagrams_are_found_in_packets_of_both_versions() {
        let mut v4 = [0; 28];
        (v4[0], v4[9]) = (0x45, 17);
        v4[12..16].copy_from_slice(&[192, 0, 2, 1]);
        v4[22..24].copy_from_slice(&7007_u16.to_be_bytes());
        let from = "192.0.2.1".parse().unwrap();
        assert_eq!(udp_packet(&v4), Some((from, 7007)));
        assert_eq!(udp_packet(&v4[..23]), None);
        v4[7] = 1;
        assert_eq!(udp_packet(&v4), None, "a later fragment has no ports");
        let mut v6 = [0; 48];
        (v6[0], v6[6], v6[8]) = (0x60, 17, 0xfd);
        v6[42..44].copy_from_slice(&7007_u16.to_be_bytes());
        assert_eq!(udp_packet(&v6), Some(("fd00::".parse().unwrap(), 7007)));
        v6[6] = 6;
        assert_eq!(udp_packet(&v6), None);
    }
}
