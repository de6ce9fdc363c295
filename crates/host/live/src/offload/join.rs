//! Joins packets of one flow into super-packets, as a network card's receive offload (the kernel's GRO) does:
//! the kernel then takes up to 64 kB with one call and one pass through its stack.
//!
//! Packets are joined if the kernel's segmentation of the super-packet would give exactly the same packets:
//! their headers are equal except for lengths, checksums, IPv4 identification and the TCP sequence number,
//! which continues; all but the last have payloads of one length; the last may have PSH. Their checksums must
//! be valid, because the super-packet's checksum would replace them.
//!
//! The packets of a flow keep their order; packets of different flows may be reordered. Only headers are
//! copied: a super-packet is written as a list of its pieces.
//!
//! Left out: IPv4 options, IPv6 extension headers, fragments, protocols other than TCP and UDP: these packets
//! are written as they are.

use std::io::IoSlice;

use super::Offloads;
use super::checksum;
use super::layout::{Network, PacketLayout, Transport};
use super::vnet::{VNET_HEADER_LEN, VnetHeader};

/// Most packets in a super-packet, as in the kernel's GRO for UDP.
const PIECES: usize = 64;
/// Flows that can be joined at a time.
const RUNS: usize = 8;
/// Longest IP packet, bytes.
const LENGTH_MAX: usize = 65_535;
/// Length of the offload header, the IPv6 header and the longest TCP header.
const HEAD_MAX: usize = VNET_HEADER_LEN + 40 + 60;

const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// Consecutive packets of one flow.
#[derive(Debug)]
struct Run<P> {
    pieces: Vec<P>,
    layout: PacketLayout,
    /// Total payload, bytes.
    payload: usize,
    next_seq: u32,
    /// The last packet had PSH.
    push: bool,
    /// No packet may follow.
    closed: bool,
}

/// The unit of one write: a packet, or a super-packet.
#[derive(Debug)]
pub(crate) struct Joined<'a, P> {
    head: [u8; HEAD_MAX],
    head_len: usize,
    pieces: &'a [P],
    /// Offset in each piece of the bytes that are not in the head.
    from: usize,
}

impl<P: AsRef<[u8]>> Joined<'_, P> {
    /// Its packets.
    pub(crate) const fn pieces(&self) -> &[P] {
        self.pieces
    }

    /// Calls `write` with the bytes; the offload header is the first part.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let mut parts = [IoSlice::new(&[]); PIECES + 1];
        parts[0] = IoSlice::new(&self.head[..self.head_len]);
        for (part, piece) in parts[1..].iter_mut().zip(self.pieces) {
            *part = IoSlice::new(&piece.as_ref()[self.from..]);
        }
        write(&parts[..=self.pieces.len().min(PIECES)])
    }

    fn single(packet: &P) -> Joined<'_, P> {
        Joined {
            head: [0; HEAD_MAX],
            head_len: VNET_HEADER_LEN,
            pieces: std::slice::from_ref(packet),
            from: 0,
        }
    }
}

/// Joins packets.
#[derive(Debug)]
pub(crate) struct Joiner<P> {
    /// In the order of their first packets.
    runs: Vec<Run<P>>,
    /// Empty vectors for further runs.
    spare: Vec<Vec<P>>,
    takes: Offloads,
}

impl<P: AsRef<[u8]>> Joiner<P> {
    /// Creates a joiner for a kernel that accepts these super-packets.
    pub(crate) const fn new(takes: Offloads) -> Self {
        Self {
            runs: Vec::new(),
            spare: Vec::new(),
            takes,
        }
    }

    /// Adds a packet. Calls `write` with packets that can wait no longer.
    pub(crate) fn push(&mut self, packet: P, mut write: impl FnMut(&Joined<'_, P>)) {
        let bytes = packet.as_ref();
        let Some(layout) = PacketLayout::parse(bytes, 0) else {
            // The flow is unknown, so the packet must not overtake any other.
            self.flush(&mut write);
            write(&Joined::single(&packet));
            return;
        };
        let same = |run: &Run<P>| run.is_flow_of(&layout, bytes);
        if let Some(at) = self.runs.iter().position(same) {
            if self.runs[at].takes(&layout, bytes) {
                self.runs[at].add(&layout, packet);
                return;
            }
            let run = self.runs.remove(at);
            self.finish(run, &mut write);
        }
        if !self.may_begin(&layout, bytes) {
            write(&Joined::single(&packet));
            return;
        }
        if self.runs.len() == RUNS {
            let run = self.runs.remove(0);
            self.finish(run, &mut write);
        }
        let mut run = Run {
            pieces: self.spare.pop().unwrap_or_default(),
            layout,
            payload: 0,
            next_seq: 0,
            push: false,
            closed: false,
        };
        run.add(&layout, packet);
        self.runs.push(run);
    }

    /// Calls `write` with all waiting packets.
    pub(crate) fn flush(&mut self, mut write: impl FnMut(&Joined<'_, P>)) {
        while !self.runs.is_empty() {
            let run = self.runs.remove(0);
            self.finish(run, &mut write);
        }
    }

    fn finish(&mut self, mut run: Run<P>, write: &mut impl FnMut(&Joined<'_, P>)) {
        write(&run.joined());
        run.pieces.clear();
        self.spare.push(run.pieces);
    }

    /// Whether the packet may begin a super-packet.
    fn may_begin(&self, layout: &PacketLayout, bytes: &[u8]) -> bool {
        let plain = match layout.network {
            Network::V4 => layout.l4 == 20,
            Network::V6 => layout.l4 == 40,
        };
        let data = match layout.transport {
            Transport::Tcp => self.takes != Offloads::None && bytes[layout.l4 + 13] == ACK,
            Transport::Udp => self.takes == Offloads::TcpAndUdp,
        };
        plain && data && layout.end == bytes.len() && layout.payload < layout.end
    }
}

impl<P: AsRef<[u8]>> Run<P> {
    fn first(&self) -> &[u8] {
        self.pieces.first().map_or(&[], AsRef::as_ref)
    }

    /// Whether the addresses, the protocol and the ports are the same.
    fn is_flow_of(&self, layout: &PacketLayout, bytes: &[u8]) -> bool {
        let ours = self.first();
        let same = |from: usize, to: usize| ours.get(from..to) == bytes.get(from..to);
        let addresses = match layout.network {
            Network::V4 => same(12, 20),
            Network::V6 => same(8, 40),
        };
        let l4 = layout.l4;
        let kind = (self.layout.network, self.layout.transport, self.layout.l4);
        kind == (layout.network, layout.transport, l4) && addresses && same(l4, l4 + 4)
    }

    /// Whether a packet of this flow can be added.
    fn takes(&self, layout: &PacketLayout, bytes: &[u8]) -> bool {
        let (ours, theirs) = (self.first(), bytes);
        let same = |from: usize, to: usize| ours[from..to] == theirs[from..to];
        let l4 = layout.l4;
        let (size, len) = (self.size(), layout.end - layout.payload);
        if self.closed
            || (layout.payload, layout.end) != (self.layout.payload, bytes.len())
            || len == 0
            || len > size
            || self.pieces.len() == PIECES
            || layout.payload + self.payload + len > LENGTH_MAX
        {
            return false;
        }
        let network = match layout.network {
            // Type of service; flags and offset; time to live and protocol.
            Network::V4 => same(0, 2) && same(6, 10),
            // Version, traffic class, flow label; next header and hop limit.
            Network::V6 => same(0, 4) && same(6, 8),
        };
        let transport = match layout.transport {
            Transport::Tcp => {
                // Acknowledgment and length of the header; window; urgent pointer and options.
                bytes[l4 + 13] & !PSH == ACK
                    && same(l4 + 8, l4 + 13)
                    && same(l4 + 14, l4 + 16)
                    && same(l4 + 18, layout.payload)
                    && sequence(layout, bytes) == self.next_seq
            }
            // Zero means no checksum.
            Transport::Udp => bytes[l4 + 6..l4 + 8] != [0; 2] && ours[l4 + 6..l4 + 8] != [0; 2],
        };
        network
            && transport
            && holds(layout, bytes)
            && (self.pieces.len() > 1 || holds(&self.layout, ours))
    }

    fn size(&self) -> usize {
        self.layout.end - self.layout.payload
    }

    fn add(&mut self, layout: &PacketLayout, packet: P) {
        let bytes = packet.as_ref();
        let len = layout.end - layout.payload;
        if layout.transport == Transport::Tcp {
            self.next_seq = sequence(layout, bytes).wrapping_add(len as u32);
            self.push = bytes[layout.l4 + 13] & PSH != 0;
        }
        self.closed = self.push || len < self.size();
        self.payload += len;
        self.pieces.push(packet);
    }

    fn joined(&self) -> Joined<'_, P> {
        let [first, _, ..] = &self.pieces[..] else {
            return Joined {
                head: [0; HEAD_MAX],
                head_len: VNET_HEADER_LEN,
                pieces: &self.pieces,
                from: 0,
            };
        };
        let layout = &self.layout;
        let mut head = [0; HEAD_MAX];
        let head_len = VNET_HEADER_LEN + layout.payload;
        let headers = &mut head[VNET_HEADER_LEN..head_len];
        headers.copy_from_slice(&first.as_ref()[..layout.payload]);
        self.write_headers(headers);
        let offload = VnetHeader {
            needs_checksum: true,
            gso_type: VnetHeader::type_of(layout.network, layout.transport),
            header_len: layout.payload as u16,
            gso_size: self.size() as u16,
            csum_start: layout.l4 as u16,
            csum_offset: layout.checksum_offset() as u16,
        };
        head[..VNET_HEADER_LEN].copy_from_slice(&offload.bytes());
        Joined {
            head,
            head_len,
            pieces: &self.pieces,
            from: layout.payload,
        }
    }

    /// Changes the first packet's headers to those of the super-packet.
    fn write_headers(&self, headers: &mut [u8]) {
        let layout = &self.layout;
        let total = layout.payload + self.payload;
        let put = |headers: &mut [u8], at: usize, value: usize| {
            headers[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
        };
        match layout.network {
            Network::V4 => {
                put(headers, 2, total);
                put(headers, 10, 0);
                let sum = checksum::finish(checksum::sum(&headers[..layout.l4]));
                put(headers, 10, sum.into());
            }
            Network::V6 => put(headers, 4, total - layout.l4),
        }
        match layout.transport {
            Transport::Tcp if self.push => headers[layout.l4 + 13] |= PSH,
            Transport::Tcp => {}
            Transport::Udp => put(headers, layout.l4 + 4, total - layout.l4),
        }
        // A partial checksum is the sum of the pseudo-header.
        let pseudo = layout.pseudo_header(headers, total - layout.l4);
        let pseudo = !checksum::finish(pseudo);
        put(headers, layout.checksum_at(), pseudo.into());
    }
}

fn sequence(layout: &PacketLayout, bytes: &[u8]) -> u32 {
    let at = layout.l4 + 4;
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Whether all checksums of the packet are valid.
fn holds(layout: &PacketLayout, bytes: &[u8]) -> bool {
    let header = match layout.network {
        Network::V4 => checksum::finish(checksum::sum(&bytes[..layout.l4])) == 0,
        Network::V6 => true,
    };
    header && layout.checksum_holds(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::segment::SuperPacket;
    use super::super::vnet::Cut;
    use super::*;
    use etherparse::{PacketBuilder, TcpHeader};
    use proptest::prelude::*;

    fn packet(v6: bool, tcp: Option<TcpHeader>, id: u16, payload: &[u8]) -> Vec<u8> {
        let ip = if v6 {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
        } else {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        };
        let mut bytes = Vec::new();
        match tcp {
            Some(tcp) => ip.tcp_header(tcp).write(&mut bytes, payload),
            None => ip.udp(4000, 4001).write(&mut bytes, payload),
        }
        .unwrap();
        if !v6 {
            // Set the identification and update the header checksum.
            bytes[4..6].copy_from_slice(&id.to_be_bytes());
            bytes[10..12].fill(0);
            let sum = checksum::finish(checksum::sum(&bytes[..20]));
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    fn header(port: u16, seq: u32, push: bool) -> TcpHeader {
        let mut tcp = TcpHeader::new(port, 5001, seq, 65_000);
        (tcp.ack, tcp.psh) = (true, push);
        tcp.acknowledgment_number = 77;
        tcp.set_options_raw(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8])
            .unwrap();
        tcp
    }

    /// Everything that the joiner writes for `packets`, including the final flush.
    fn join(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut joiner = Joiner::new(Offloads::TcpAndUdp);
        let mut written = Vec::new();
        let mut write = |joined: &Joined<'_, Vec<u8>>| {
            written.push(joined.write(|parts| {
                parts
                    .iter()
                    .flat_map(|part| part.to_vec())
                    .collect::<Vec<u8>>()
            }));
        };
        for packet in packets {
            joiner.push(packet.clone(), &mut write);
        }
        joiner.flush(&mut write);
        written
    }

    /// Segments a written packet as the kernel would.
    fn cut(written: &[u8]) -> Vec<Vec<u8>> {
        let (head, packet) = written.split_at(VNET_HEADER_LEN);
        let head = VnetHeader::read(head).unwrap();
        let Cut::Segments(transport) = head.cut() else {
            assert_eq!(head, VnetHeader::default());
            return vec![packet.to_vec()];
        };
        let layout = PacketLayout::parse(packet, 0).unwrap();
        // The partial checksum covers only the pseudo-header.
        let at = usize::from(head.csum_start + head.csum_offset);
        let pseudo = checksum::finish(layout.pseudo_header(packet, packet.len() - layout.l4));
        assert_eq!(packet[at..at + 2], (!pseudo).to_be_bytes());
        let whole = SuperPacket::parse(packet, 0, transport, head.gso_size.into()).unwrap();
        let segments = (0..whole.segments()).map(|i| {
            let mut segment = vec![0; packet.len()];
            let len = whole.write(i, &mut segment).unwrap();
            segment.truncate(len);
            segment
        });
        segments.collect()
    }

    proptest! {
        /// Several flows with some irregular packets: the packets of every flow arrive in order and unchanged.
        #[test]
        fn nothing_changes_but_the_number_of_writes(
            v6: bool,
            is_tcp: bool,
            script in prop::collection::vec((0u16..3, 0u8..12, 1usize..1500), 1..150),
        ) {
            let mut seq = [1u32, u32::MAX - 5_000, 7];
            let mut id = [1u16, 2, 3];
            let mut packets = Vec::new();
            for (flow, odd, len) in script {
                let flow_at = usize::from(flow);
                let len = if odd < 9 { 1000 } else { len };
                let mut tcp = header(1000 + flow, seq[flow_at], odd == 8);
                match odd {
                    9 => tcp.window_size = 5,
                    10 => tcp.fin = true,
                    _ => {}
                }
                seq[flow_at] = seq[flow_at].wrapping_add(len as u32);
                let payload = vec![odd; len];
                let mut bytes = packet(v6, is_tcp.then_some(tcp), id[flow_at], &payload);
                id[flow_at] = id[flow_at].wrapping_add(1);
                if odd == 11 {
                    // An invalid checksum stays invalid.
                    *bytes.last_mut().unwrap() ^= 1;
                }
                packets.push(bytes);
            }
            let mut got: Vec<_> = join(&packets).iter().flat_map(|written| cut(written)).collect();
            if is_tcp {
                // All ones and zero are equivalent (RFC 1071). Segmentation writes all ones, and single
                // packets keep their value.
                for bytes in packets.iter_mut().chain(&mut got) {
                    let at = PacketLayout::parse(bytes, 0).unwrap().l4 + 16;
                    if bytes[at..at + 2] == [0, 0] {
                        bytes[at..at + 2].fill(0xff);
                    }
                }
            }
            let flow_of = |bytes: &Vec<u8>| {
                let layout = PacketLayout::parse(bytes, 0).unwrap();
                bytes[layout.l4..layout.l4 + 2].to_vec()
            };
            prop_assert_eq!(got.len(), packets.len());
            for flow in [1000u16, 1001, 1002, 4000] {
                let of = |all: &[Vec<u8>]| {
                    let ours = all.iter().filter(|bytes| flow_of(bytes) == flow.to_be_bytes());
                    // The identification of joined packets counts up from the first; that includes UDP, where
                    // the script has only one flow.
                    let ours = ours.map(|bytes| match is_tcp || v6 {
                        true => bytes.clone(),
                        false => bytes[20..].to_vec(),
                    });
                    ours.collect::<Vec<_>>()
                };
                prop_assert_eq!(of(&got), of(&packets));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(packets in prop::collection::vec(
            (prop::sample::select(vec![0x45u8, 0x46, 0x60, 0x00]), prop::collection::vec(any::<u8>(), 0..120)), 0..8,
        )) {
            let packets: Vec<_> = packets.into_iter().map(|(first, mut bytes)| {
                bytes.insert(0, first);
                if let Some(field) = bytes.get_mut(2..4) {
                    field.copy_from_slice(&[0, 60]);
                }
                bytes
            }).collect();
            prop_assert_eq!(join(&packets).len(), packets.len());
        }
    }

    #[test]
    fn a_train_of_segments_is_one_write() {
        for v6 in [false, true] {
            let train: Vec<_> = (0..40u32)
                .map(|i| {
                    let tcp = header(1000, i * 1400, i == 39);
                    packet(v6, Some(tcp), i as u16, &[7; 1400])
                })
                .collect();
            let written = join(&train);
            assert_eq!(written.len(), 1);
            assert_eq!(cut(&written[0]), train);
        }
    }

    #[test]
    fn a_super_packet_never_exceeds_the_ip_length_field() {
        let train: Vec<_> = (0..200u32)
            .map(|i| {
                packet(
                    false,
                    Some(header(1, i * 1460, false)),
                    i as u16,
                    &[1; 1460],
                )
            })
            .collect();
        let written = join(&train);
        assert!(
            written
                .iter()
                .all(|w| w.len() <= VNET_HEADER_LEN + LENGTH_MAX)
        );
        assert_eq!(written.len(), 200usize.div_ceil(44));
    }

    #[test]
    fn an_acknowledgment_does_not_overtake_the_data_of_its_flow() {
        let data = |seq| packet(false, Some(header(9, seq, false)), 0, &[1; 100]);
        let pure = packet(false, Some(header(9, 200, false)), 2, &[]);
        let written = join(&[data(0), data(100), pure.clone()]);
        assert_eq!(written.len(), 2);
        assert_eq!(written[1][VNET_HEADER_LEN..], pure);
    }
}
