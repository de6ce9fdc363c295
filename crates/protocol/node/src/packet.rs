//! IP packets in the live node: a reference-counted buffer from a pool, and the flow key for the classifier,
//! parsed once.

pub mod ecn;
mod headers;
mod mss;
mod pool;
mod tcp;

use airlane_base::{Payload, unpadded};
use airlane_link::pack::contents::{
    self, AGGREGATE_HEAD, FRAGMENT_HEAD, fragment_head, len_together, write_aggregate,
};
use airlane_link::pack::{Contents, Divisible, Fragment};
use airlane_link::{FlowKey, IpFragment, Packet, TcpView};

use ecn::{Ecn, Outer, Unmarkable};
pub use headers::{Headers, addresses};
pub use mss::{clamp_mss, needs_clamping};
pub use pool::{Buffer, Lease, Pool};

/// One IP packet, an aggregate of several, a fragment, or the payload of a received frame. A clone shares the
/// bytes.
#[derive(Clone, Debug)]
pub struct LivePacket {
    buffer: Buffer,
    start: u32,
    end: u32,
    /// `None` for a packet from the link, which is delivered without classification.
    flow: Option<FlowKey>,
    /// ECN mark of the outer header that the packet arrived under. The bytes stay as they were sent until the
    /// packet leaves the tunnel, because FEC computes lost packets from them.
    mark: Ecn,
}

impl LivePacket {
    /// Takes the first `len` bytes of `lease` as a packet from the kernel. Returns the lease if they are not
    /// an IP packet.
    pub fn from_kernel(lease: Lease, len: usize) -> Result<Self, Lease> {
        match lease.bytes().get(..len).and_then(Headers::parse) {
            Some(headers) => Ok(Self {
                flow: Some(headers.flow()),
                buffer: lease.share(),
                start: 0,
                end: len as u32,
                mark: Ecn::NotEct,
            }),
            None => Err(lease),
        }
    }

    /// Takes the bytes of `buffer` from `start` to `end` as the payload of a frame from the link.
    pub fn from_link(buffer: Buffer, start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= buffer.bytes().len());
        Self {
            buffer,
            start: start as u32,
            end: end as u32,
            flow: None,
            mark: Ecn::NotEct,
        }
    }

    /// Records the ECN mark of the datagram that carried the packet.
    #[must_use]
    pub fn under(self, mark: Ecn) -> Self {
        Self { mark, ..self }
    }

    /// Returns the packet that leaves the tunnel, with its ECN mark combined with that of the datagram.
    ///
    /// # Errors
    /// If the packet must be dropped.
    pub fn leaving(self, outer: Outer) -> Result<Self, Unmarkable> {
        match outer.left_with(self.bytes(), self.mark)? {
            // The buffer may be shared, and few packets change their mark.
            Some(class) => Ok(self.changed(|bytes| ecn::set_traffic_class(bytes, class))),
            None => Ok(self),
        }
    }

    /// Copies the packet and applies `change` to the copy.
    pub fn changed<T>(&self, change: impl FnOnce(&mut [u8]) -> T) -> Self {
        let bytes = self.bytes();
        self.written(bytes.len(), |copy| {
            copy.copy_from_slice(bytes);
            change(copy);
        })
    }

    /// The traffic class (or TOS) byte of the packet, or of the first in an aggregate. For a fragment without
    /// the header, only the DSCP: such fragments are sent as Not-ECT.
    pub fn traffic_class(&self) -> Option<u8> {
        let bytes = self.bytes();
        match self.contents() {
            Contents::Packet | Contents::Short => ecn::traffic_class(bytes),
            Contents::Aggregate => contents::packets(bytes)
                .next()
                .and_then(|first| ecn::traffic_class(&bytes[first])),
            Contents::Fragment(which) if which.index == 0 => {
                ecn::traffic_class(&bytes[FRAGMENT_HEAD..])
            }
            Contents::Fragment(_) => self.flow.map(|flow| flow.dscp << 2),
            Contents::Malformed => None,
        }
    }

    /// Takes `len` bytes from the pool, filled by `write`, as a packet of the same flow.
    fn written(&self, len: usize, write: impl FnOnce(&mut [u8])) -> Self {
        let mut lease = self.buffer.another(len);
        write(&mut lease.bytes_mut()[..len]);
        Self {
            buffer: lease.share(),
            start: 0,
            end: len as u32,
            flow: self.flow,
            mark: self.mark,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[self.start as usize..self.end as usize]
    }
}

impl AsRef<[u8]> for LivePacket {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Payload for LivePacket {
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn image(&self) -> impl AsRef<[u8]> {
        self.bytes()
    }

    fn coded(&self, image: &[u8], len: usize) -> Self {
        let mut lease = self.buffer.another(len);
        let bytes = &mut lease.bytes_mut()[..len];
        let known = image.len().min(len);
        bytes[..known].copy_from_slice(&image[..known]);
        bytes[known..].fill(0);
        Self::from_link(lease.share(), 0, len)
    }

    fn recovered(&self, image: &[u8], len: usize) -> Option<Self> {
        let bytes = unpadded(image, len)?;
        match contents::contents(bytes) {
            Contents::Packet => _ = Headers::parse(bytes)?,
            Contents::Short | Contents::Aggregate | Contents::Fragment(_) => {}
            Contents::Malformed => return None,
        }
        Some(self.coded(bytes, len))
    }
}

impl Divisible for LivePacket {
    const DIVISIBLE: bool = true;

    fn visible(&self) -> Option<&[u8]> {
        Some(self.bytes())
    }

    fn with_head(&self, cut: usize, head: &[u8]) -> Option<Self> {
        let rest = self.bytes().get(cut..)?;
        Some(self.written(head.len() + rest.len(), |room| {
            let (front, back) = room.split_at_mut(head.len());
            front.copy_from_slice(head);
            back.copy_from_slice(rest);
        }))
    }

    fn contents(&self) -> Contents {
        contents::contents(self.bytes())
    }

    fn aggregated(packets: &[Self]) -> Option<Self> {
        let first = packets.first()?;
        let len = packets.iter().map(|packet| len_together(packet.len()));
        let len = AGGREGATE_HEAD + len.sum::<usize>();
        let mut written = None;
        let payload = first.written(len, |room| {
            written = write_aggregate(packets.iter().map(Self::bytes), room);
        });
        written.map(|_| payload)
    }

    fn packets(&self, each: &mut dyn FnMut(Self)) {
        for range in contents::packets(self.bytes()) {
            let at = |offset: usize| self.start as usize + offset;
            let buffer = self.buffer.clone();
            each(Self::from_link(buffer, at(range.start), at(range.end)).under(self.mark));
        }
    }

    fn fragment(&self, which: Fragment, from: usize, to: usize) -> Option<Self> {
        let part = self.bytes().get(from..to)?;
        Some(self.written(FRAGMENT_HEAD + part.len(), |room| {
            let (head, rest) = room.split_at_mut(FRAGMENT_HEAD);
            head.copy_from_slice(&fragment_head(which));
            rest.copy_from_slice(part);
        }))
    }

    fn reassembled(fragments: &[Option<Self>]) -> Option<Self> {
        let parts = || {
            let parts = fragments.iter().flatten();
            parts.map(|fragment| fragment.bytes().get(FRAGMENT_HEAD..).unwrap_or_default())
        };
        let len = parts().map(<[u8]>::len).sum();
        let whole = fragments.iter().flatten().next()?.written(len, |room| {
            let mut at = 0;
            for part in parts() {
                room[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
        });
        matches!(whole.contents(), Contents::Packet | Contents::Short).then_some(whole)
    }
}

impl Packet for LivePacket {
    fn flow(&self) -> FlowKey {
        self.flow
            .or_else(|| Headers::parse(self.bytes()).map(|headers| headers.flow()))
            .unwrap_or_else(headers::no_flow)
    }

    fn ip_fragment(&self) -> Option<IpFragment> {
        let bytes = self.bytes();
        let headers = headers::may_be_fragment(bytes).then(|| Headers::parse(bytes));
        headers.flatten()?.ip_fragment()
    }

    fn set_flow(&mut self, flow: FlowKey) {
        self.flow = Some(flow);
    }

    fn traffic_class(&self) -> u8 {
        self.traffic_class().unwrap_or(0)
    }

    fn datagram(&self) -> &[u8] {
        let range = Headers::parse(self.bytes()).and_then(|headers| headers.datagram());
        let inside = range.and_then(|(start, end)| self.bytes().get(start..end));
        inside.unwrap_or_default()
    }

    fn tcp(&self) -> Option<TcpView> {
        tcp::view(self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::{Duration, Instant};
    use airlane_link::{ClassConfig, HeaderProfile, Port};
    use airlane_testkit::Setup;
    use etherparse::PacketBuilder;
    use std::collections::{BTreeMap, VecDeque};

    /// EF, ECT(0).
    const MARKED: u8 = 46 << 2 | 0b10;

    fn packet(pool: &Pool, fill: u8, len: usize) -> LivePacket {
        let mut bytes = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
            .udp(1, 2)
            .write(&mut bytes, &vec![fill; len])
            .unwrap();
        bytes[0] = 0x60 | MARKED >> 4;
        bytes[1] = MARKED << 4;
        let mut lease = pool.lease();
        lease.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        LivePacket::from_kernel(lease, bytes.len()).unwrap()
    }

    fn all(payload: &LivePacket) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        payload.packets(&mut |packet| packets.push(packet.bytes().to_vec()));
        packets
    }

    const ECN: Outer = Outer {
        dscp: ecn::OuterDscp::None,
        ecn: true,
    };

    #[test]
    fn several_packets_travel_as_one_and_come_out_as_they_were() {
        let pool = Pool::new(2_048, 8);
        let packets = [(1, 4), (2, 160), (3, 0)].map(|(fill, len)| packet(&pool, fill, len));
        let together = LivePacket::aggregated(&packets).unwrap();
        assert_eq!(together.contents(), Contents::Aggregate);
        let each: Vec<_> = packets.iter().map(|p| p.bytes().to_vec()).collect();
        assert_eq!(all(&together), each);
        assert_eq!(together.traffic_class(), Some(MARKED));
        assert_eq!(together.flow(), packets[0].flow());
        // FEC recovers an aggregate as it does a packet.
        let bytes = together.bytes().to_vec();
        assert!(together.recovered(&bytes, bytes.len()).is_some());
        assert!(together.recovered(&bytes, bytes.len() - 1).is_none());
        // A mark on the datagram applies to every packet in it.
        let mut marked = Vec::new();
        together.under(Ecn::Ce).packets(&mut |p| marked.push(p));
        for (packet, before) in marked.into_iter().zip(each) {
            assert_eq!(packet.bytes(), before);
            let left = packet.leaving(ECN).unwrap();
            assert_eq!(left.traffic_class(), Some(MARKED | 0b11));
            assert_eq!(left.bytes()[2..], before[2..]);
        }
    }

    #[test]
    fn a_packet_travels_in_parts_and_is_put_together_again() {
        let pool = Pool::new(2_048, 8);
        let whole = packet(&pool, 7, 1_000);
        let len = whole.len();
        let parts = [(0, 0, 400), (1, 400, 800), (2, 800, len)];
        let mut parts = parts.map(|(index, from, to)| {
            let last = to == len;
            let which = Fragment {
                packet: 9,
                index,
                last,
            };
            let part = whole.fragment(which, from, to).unwrap();
            assert_eq!(part.contents(), Contents::Fragment(which));
            assert_eq!(part.len(), FRAGMENT_HEAD + to - from);
            Some(part)
        });
        let classes = parts
            .each_ref()
            .map(|p| p.as_ref().unwrap().traffic_class());
        assert_eq!(classes, [Some(MARKED), Some(46 << 2), Some(46 << 2)]);
        let again = LivePacket::reassembled(&parts).unwrap();
        assert_eq!(again.bytes(), whole.bytes());
        parts[0] = parts[0].take().map(|first| first.under(Ecn::Ce));
        let again = LivePacket::reassembled(&parts).unwrap();
        assert_eq!(again.bytes(), whole.bytes());
        let again = again.leaving(ECN).unwrap();
        assert_eq!(again.traffic_class(), Some(MARKED | 0b11));
        assert_eq!(again.bytes()[2..], whole.bytes()[2..]);
        // Fragments without the first one cannot be reassembled.
        assert!(LivePacket::reassembled(&parts[1..]).is_none());
    }

    /// A segment of 900 bytes, each of which holds the low byte of its number.
    fn segment(pool: &Pool, class: u8, n: u32) -> LivePacket {
        let mut bytes = Vec::new();
        let len = if n.is_multiple_of(9) { 0 } else { 900 };
        PacketBuilder::ipv4([10, 7, 0, 1], [10, 7, 0, 2], 64)
            .tcp(40_000, 443, n, 1_000)
            .ack(5)
            .write(&mut bytes, &vec![n as u8; len])
            .unwrap();
        bytes[1] = class;
        let sum = etherparse::Ipv4Header::from_slice(&bytes).unwrap().0;
        bytes[10..12].copy_from_slice(&sum.calc_header_checksum().to_be_bytes());
        let mut lease = pool.lease();
        lease.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        LivePacket::from_kernel(lease, bytes.len()).unwrap()
    }

    /// Frames are lost in both directions, all are marked CE, and the link is reset in between.
    #[test]
    fn short_headers_come_out_as_they_were_over_a_link_that_loses() {
        let pool = Pool::new(2_048, 64);
        for scheme in ["gbn", "sr", "sr-m1", "sr-m2", "sr-bitmap", "gsm-rlp"] {
            let queue = "kind = \"drop-tail\", limit = \"1000 packets\"";
            let setup = Setup::new(HeaderProfile::Live)
                .service(0, 1.0, &format!("kind = \"{scheme}\""), queue)
                .rate("10 Mbit/s")
                .compact()
                .together("largest = \"100 B\"")
                .cut(600);
            let build = || Port::<LivePacket>::with_codec(setup.codec, setup.config.clone());
            let mut ends = [build().unwrap(), build().unwrap()];
            let mut now = Instant::ORIGIN;
            let (mut expected, mut seq, mut frames) = (VecDeque::new(), 0u32, 0);
            for round in 0..3 {
                for n in 0..100 {
                    let packet = segment(&pool, MARKED, seq);
                    let congested = segment(&pool, MARKED | 0b11, seq);
                    expected.push_back(congested.bytes().to_vec());
                    seq += packet.len() as u32 - 40;
                    seq += u32::from(n == 50);
                    ends[0].handle_packet(now, packet);
                }
                for _ in 0..200_000 {
                    if expected.is_empty() {
                        break;
                    }
                    for from in [0, 1] {
                        ends[from].handle_timeout(now);
                        while let Some(frame) = ends[from].poll_transmit(now) {
                            frames += 1;
                            // One frame in five is lost, out of step with the retransmissions.
                            if frames % 5 != frames / 37 % 5 {
                                let frame = frame.map_packet(|p| p.under(Ecn::Ce));
                                ends[1 - from].handle_frame(now, frame);
                            }
                        }
                    }
                    while let Some(packet) = ends[1].poll_deliver() {
                        let packet = packet.leaving(ECN).unwrap();
                        assert_eq!(
                            Some(packet.bytes()),
                            expected.pop_front().as_deref(),
                            "{scheme}"
                        );
                    }
                    now += Duration::from_micros(500);
                }
                assert_eq!(expected.len(), 0, "{scheme}, round {round}");
                ends.iter_mut().for_each(|end| end.reset(now));
            }
            let ledger = |end: &Port<LivePacket>| *end.ledger(0).unwrap();
            let (sent, received) = (ledger(&ends[0]), ledger(&ends[1]));
            assert_eq!(
                (received.headers_unknown, received.packets_delivered),
                (0, 300)
            );
            assert_eq!(received.delivered_bytes, sent.sent_bytes);
            assert!(sent.spared_bytes > 300 * 30, "{}", sent.spared_bytes);
        }
    }

    /// IP fragments are classified by their ports in either direction, and share a flow with the unfragmented
    /// packets.
    #[test]
    fn fragments_of_a_flow_are_part_of_it() {
        let pool = Pool::new(2_048, 64);
        let queue = "kind = \"drop-tail\", limit = \"1000 packets\"";
        let mut setup = Setup::new(HeaderProfile::Live)
            .service(0, 0.5, "kind = \"default\"", queue)
            .service(1, 0.5, "kind = \"default\"", queue)
            .rate("10 Mbit/s");
        setup.config.classes = toml::from_str::<BTreeMap<String, Vec<ClassConfig>>>(
            "classes = [{ match = { dst-port = 5004 }, service = \"s1\" }, \
             { match = { behaves = \"call\" }, service = \"s1\" }]",
        )
        .unwrap()
        .remove("classes")
        .unwrap();
        let build = || Port::<LivePacket>::with_codec(setup.codec, setup.config.clone());
        let mut ends = [build().unwrap(), build().unwrap()];
        let (mut now, mut delivered) = (Instant::ORIGIN, 0);
        for id in 0..20 {
            for packet in
                [Some(0), Some(1_000), Some(2_000), None].map(|cut| datagram(&pool, id, cut))
            {
                ends[0].handle_packet(now, packet);
            }
            for _ in 0..100 {
                ends[0].handle_timeout(now);
                while let Some(frame) = ends[0].poll_transmit(now) {
                    ends[1].handle_frame(now, frame.map_packet(received));
                }
                now += Duration::from_micros(500);
            }
            while ends[1].poll_deliver().is_some() {
                delivered += 1;
            }
        }
        assert_eq!(delivered, 80);
        let led = |number| ends[0].ledger(number).unwrap().packets_offered;
        assert_eq!((led(0), led(1)), (0, 80));
        for (end, ways) in [(0, (80, 0)), (1, (0, 80))] {
            let flows = ends[end].flows(now);
            let [flow] = &flows[..] else {
                panic!("{end}: {flows:?}");
            };
            assert_eq!((flow.sent_packets, flow.received_packets), ways);
            let ports = ["10.7.0.1:40000", "10.7.0.2:5004"];
            assert!(ports.contains(&&*flow.here) && ports.contains(&&*flow.there));
        }
    }

    /// A UDP datagram, or the IP fragment of one at a byte offset.
    fn datagram(pool: &Pool, id: u16, cut: Option<u16>) -> LivePacket {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([10, 7, 0, 1], [10, 7, 0, 2], 64)
            .udp(40_000, 5_004)
            .write(&mut bytes, &[7; 892])
            .unwrap();
        bytes[4..6].copy_from_slice(&id.to_be_bytes());
        let offset = match cut {
            None => 0,
            // Later fragments have payload bytes in the place of ports.
            Some(from) => (from / 8) | if from < 2_000 { 0x2000 } else { 0 },
        };
        if offset & 0x1fff != 0 {
            bytes[20..].fill(0xff);
        }
        bytes[6..8].copy_from_slice(&offset.to_be_bytes());
        let mut lease = pool.lease();
        lease.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        LivePacket::from_kernel(lease, bytes.len()).unwrap()
    }

    /// Frames are lost in both directions and repairs arrive late; the receiving host sends cumulative
    /// acknowledgments.
    #[test]
    fn short_headers_need_no_order_where_hosts_acknowledge() {
        let pool = Pool::new(2_048, 64);
        let setup = Setup::new(HeaderProfile::Live)
            .service(
                0,
                1.0,
                "kind = \"rlp-oos\", retries = 12",
                "kind = \"drop-tail\", limit = \"1000 packets\"",
            )
            .rate("10 Mbit/s")
            .compact();
        let build = || Port::<LivePacket>::with_codec(setup.codec, setup.config.clone());
        let mut ends = [build().unwrap(), build().unwrap()];
        let (mut now, mut frames, mut acknowledged) = (Instant::ORIGIN, 0, 1);
        let mut missing = BTreeMap::new();
        for n in 0..500 {
            let packet = segment(&pool, MARKED, 1 + 900 * n);
            let congested = segment(&pool, MARKED | 0b11, 1 + 900 * n);
            missing.insert(1 + 900 * n, congested.bytes().to_vec());
            ends[0].handle_packet(now, packet);
        }
        for _ in 0..20_000 {
            for from in [0, 1] {
                ends[from].handle_timeout(now);
                while let Some(frame) = ends[from].poll_transmit(now) {
                    frames += 1;
                    if frames % 5 != frames / 37 % 5 {
                        ends[1 - from].handle_frame(now, frame.map_packet(received));
                    }
                }
            }
            while let Some(packet) = ends[1].poll_deliver() {
                let packet = packet.leaving(ECN).unwrap();
                let seq = packet.tcp().unwrap().seq;
                assert_eq!(missing.remove(&seq).as_deref(), Some(packet.bytes()));
            }
            let first = missing
                .first_key_value()
                .map_or(1 + 900 * 500, |(seq, _)| *seq);
            if first != acknowledged {
                acknowledged = first;
                let mut bytes = Vec::new();
                PacketBuilder::ipv4([10, 7, 0, 2], [10, 7, 0, 1], 64)
                    .tcp(443, 40_000, 5, 1_000)
                    .ack(acknowledged)
                    .write(&mut bytes, &[])
                    .unwrap();
                let mut lease = pool.lease();
                lease.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
                let ack = LivePacket::from_kernel(lease, bytes.len()).unwrap();
                ends[1].handle_packet(now, ack);
            }
            while ends[0].poll_deliver().is_some() {}
            now += Duration::from_micros(500);
        }
        assert!(missing.is_empty(), "{}", missing.len());
        let [sent, received] = ends.each_ref().map(|end| *end.ledger(0).unwrap());
        assert_eq!(
            (received.headers_unknown, received.packets_delivered),
            (0, 500)
        );
        assert!(sent.spared_bytes > 400 * 20, "{}", sent.spared_bytes);
    }

    /// Packets recovered from parity equal those that were sent, even if routers marked the others on the
    /// way.
    #[test]
    fn marks_are_in_no_parity() {
        let pool = Pool::new(2_048, 64);
        for scheme in [
            "kind = \"xor\", block = 4",
            "kind = \"rse\", block = 4, parity = 1",
            "kind = \"rse-ad\", block = 4, initial = 1",
        ] {
            let queue = "kind = \"drop-tail\", limit = \"1000 packets\"";
            let setup = Setup::new(HeaderProfile::Live).service(0, 1.0, scheme, queue);
            let build = || Port::<LivePacket>::with_codec(setup.codec, setup.config.clone());
            let mut ends = [build().unwrap(), build().unwrap()];
            let mut now = Instant::ORIGIN;
            for n in 0..8 {
                ends[0].handle_packet(now, segment(&pool, MARKED, 1 + n));
            }
            let (mut sent, mut came) = (0, Vec::new());
            for _ in 0..1_000 {
                ends[0].handle_timeout(now);
                while let Some(frame) = ends[0].poll_transmit(now) {
                    let original = frame.header.kind.is_packet();
                    sent += u32::from(original);
                    // One packet of each block is lost, and the others were marked CE by a queue.
                    if !original || sent % 4 != 2 {
                        let frame = match original {
                            true => frame.map_packet(received),
                            false => frame,
                        };
                        ends[1].handle_frame(now, frame);
                    }
                }
                while let Some(packet) = ends[1].poll_deliver() {
                    came.push(packet.leaving(ECN).unwrap().bytes().to_vec());
                }
                now += Duration::from_micros(500);
            }
            let recovered = ends[1].ledger(0).unwrap().packets_recovered;
            assert_eq!((came.len(), recovered), (8, 2), "{scheme}");
            came.sort_by_key(|bytes| u32::from_be_bytes(bytes[24..28].try_into().unwrap()));
            for (n, bytes) in (0..).zip(came) {
                let mark = if n % 4 == 1 { 0 } else { 0b11 };
                let expected = segment(&pool, MARKED | mark, 1 + n);
                assert_eq!(bytes, expected.bytes(), "{scheme}: {n}");
            }
        }
    }

    /// The payload as received from the link, marked CE.
    fn received(payload: LivePacket) -> LivePacket {
        payload.under(Ecn::Ce)
    }
}
