//! Simulated packets as bytes: IPv4, TCP or UDP, and zeros for user data.
//!
//! The simulator, like the dissertation, counts no headers: a data packet is its user data, a pure
//! acknowledgment is 40 bytes. A capture has real headers, IP 20, TCP 20 or UDP 8 bytes, so a data
//! packet is that much longer in it than its simulated size, and an acknowledgment is exactly its
//! headers, 40 bytes. Lengths and checksums are right.
//!
//! TCP numbers count bytes: segments times their size, the last one of a transfer may be shorter.
//! Both directions start at 1, as behind a handshake, whether one is simulated or not; the end of the data has a flag
//! and no number, and timestamps are left out. What an end says
//! beside its data (how far it has received) and beside its acknowledgments (how far it has sent)
//! is what it said last at this place; the simulator's endpoints go one way each.
//!
//! CLAP's packets have their own length, IP 20 bytes of it, and zeros behind that: the bits of a NACK travel beside the
//! packet.

use std::collections::BTreeMap;

use airlane_link::wire::LIVE_HEADER_ROOM;
use airlane_link::{Frame, Port};
use airlane_transport::tcp::ReportKind;
use etherparse::{
    IpDscp, IpEcn, IpHeaders, IpNumber, Ipv4Header, PacketBuilder, TcpHeader, TcpOptionElement,
};

use crate::packet::{CLAP, Marks, Packet, Role};
use crate::scenario::{Scenario, TransportConfig};

/// User bytes that IPv4 and TCP headers leave of the largest IP packet.
pub(super) const LARGEST_PACKET: u64 = 65_535 - 40;
/// Connections of a flow that are remembered; nothing of older ones is under way.
const CONNECTIONS: usize = 256;
const TIME_TO_LIVE: u8 = 64;
const FIRST_BYTE: u64 = 1;

/// What one end of a connection has sent.
#[derive(Clone, Debug, Default)]
struct Sent {
    /// Segments that are shorter than the others, in order, with the bytes that all of them up to
    /// here lack.
    short: Vec<(u64, u64)>,
    /// Bytes up to the end of the highest segment.
    high: u64,
    /// Bytes of the other end that it has acknowledged.
    acknowledged: u64,
}

impl Sent {
    /// Bytes below a segment of full ones of `size`.
    fn offset(&self, seq: u64, size: u64) -> u64 {
        let before = self.short.partition_point(|(short, _)| *short < seq);
        let lacking = before.checked_sub(1).map_or(0, |last| self.short[last].1);
        seq * size - lacking
    }

    fn note(&mut self, seq: u64, len: u64, size: u64) {
        let lacking = size.saturating_sub(len);
        let place = self.short.partition_point(|(short, _)| *short < seq);
        let is_known = self
            .short
            .get(place)
            .is_some_and(|(short, _)| *short == seq);
        if lacking > 0 && !is_known {
            let before = place.checked_sub(1).map_or(0, |last| self.short[last].1);
            self.short.insert(place, (seq, before));
            for (_, all) in &mut self.short[place..] {
                *all += lacking;
            }
        }
        self.high = self.high.max(self.offset(seq, size) + len);
    }
}

/// What a flow's packets have in common.
#[derive(Clone, Debug)]
struct FlowFacts {
    /// User bytes of a full segment.
    size: u64,
    /// The whole advertised window, segments.
    window: u32,
    /// Simulated headers of a data packet, bytes; the real ones stand for them.
    header_len: u32,
    /// Whether acknowledgments name the segment that caused them, and report no blocks.
    smart: bool,
    /// Length of a SYN.
    syn_len: u32,
    /// By number: the first end, the second end.
    connections: BTreeMap<u32, [Sent; 2]>,
}

/// Gives packets their bytes, as they pass one place.
#[derive(Clone, Debug)]
pub(super) struct CaptureHeaders {
    flows: Vec<FlowFacts>,
    zeros: Vec<u8>,
}

impl CaptureHeaders {
    /// For a resolved scenario.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let flows = scenario.flows.iter().map(|flow| {
            let size = flow.app.packet().map_or(1, |size| size.as_bytes());
            let (window, header_len, smart, syn_len) = match &flow.transport {
                TransportConfig::Tcp(tcp) => {
                    let smart = tcp.report() == ReportKind::Smart;
                    let window = tcp.window_of(size as u32);
                    (window, tcp.header_len(), smart, tcp.syn_len())
                }
                TransportConfig::Udp(_) | TransportConfig::Clap(_) => (0, 0, false, 0),
            };
            FlowFacts {
                size,
                window,
                header_len,
                smart,
                syn_len,
                connections: BTreeMap::new(),
            }
        });
        Self {
            flows: flows.collect(),
            zeros: Vec::new(),
        }
    }

    /// Appends the bytes of a port's frame: header, packet, and zeros for redundancy.
    pub(super) fn write_frame(
        &mut self,
        port: &Port<Packet>,
        frame: &Frame<Packet>,
        bytes: &mut Vec<u8>,
    ) {
        let start = bytes.len();
        let mut header = [0; LIVE_HEADER_ROOM];
        let len = port.encode_header(frame, 0, &mut header).unwrap_or(0);
        bytes.extend_from_slice(&header[..len]);
        if let Some(packet) = frame.packet().filter(|_| frame.header.kind.is_packet()) {
            self.write(packet, bytes);
        }
        let len = port.frame_len(frame).max(bytes.len() - start);
        bytes.resize(start + len, 0);
    }

    /// Appends the packet's bytes.
    pub(super) fn write(&mut self, packet: &Packet, bytes: &mut Vec<u8>) {
        // What is encrypted is shown as its ends know it.
        let raw = packet.header.protocol == CLAP;
        let (user, tcp) = if raw {
            // Its own header is of zeros, too.
            let ip = Ipv4Header::MIN_LEN as u64;
            (u64::from(packet.len).saturating_sub(ip), None)
        } else if packet.role() != Role::Datagram {
            let (user, tcp) = self.tcp(packet);
            (user, Some(tcp))
        } else {
            (u64::from(packet.len), None)
        };
        let user = user.min(LARGEST_PACKET) as usize;
        if self.zeros.len() < user {
            self.zeros.resize(user, 0);
        }
        let mut ip = Ipv4Header {
            time_to_live: TIME_TO_LIVE,
            dont_fragment: true,
            source: packet.header.src.octets(),
            destination: packet.header.dst.octets(),
            ..Ipv4Header::default()
        };
        ip.ecn = match packet.marks {
            marks if marks.has(Marks::MARKED) => IpEcn::CongestionExperienced,
            marks if marks.has(Marks::MARKABLE) => IpEcn::Ect0,
            _ => IpEcn::default(),
        };
        ip.dscp = IpDscp::try_new(packet.header.dscp).unwrap_or_default();
        let packet_builder = PacketBuilder::ip(IpHeaders::Ipv4(ip, Default::default()));
        let payload = &self.zeros[..user];
        let written = match tcp {
            Some(header) => packet_builder.tcp_header(header).write(bytes, payload),
            None if raw => packet_builder.write(bytes, IpNumber(CLAP), payload),
            None => packet_builder
                .udp(packet.header.src_port, packet.header.dst_port)
                .write(bytes, payload),
        };
        written.expect("the length was bounded, and a vector takes everything");
    }

    /// User bytes of a packet and its TCP header.
    fn tcp(&mut self, packet: &Packet) -> (u64, TcpHeader) {
        let facts = &mut self.flows[packet.flow as usize];
        let ends = facts.connections.entry(packet.connection).or_default();
        let size = facts.size;
        // Data of the main direction comes from the first end, its acknowledgments from the other.
        let (from, is_data) = match packet.role() {
            Role::Data => (0, true),
            Role::Ack => (1, false),
            Role::Request => (1, true),
            _ => (0, false),
        };
        let (user, sequence) = if is_data {
            let len = u64::from(packet.len.saturating_sub(facts.header_len));
            if !packet.marks.has(Marks::PROBE) && len > 0 {
                ends[from].note(packet.seq, len, size);
            }
            (len, ends[from].offset(packet.seq, size))
        } else {
            let acknowledged = ends[1 - from].offset(packet.seq, size);
            ends[from].acknowledged = ends[from].acknowledged.max(acknowledged);
            (0, ends[from].high)
        };
        let acknowledged = if is_data {
            ends[from].acknowledged
        } else {
            ends[1 - from].offset(packet.seq, size)
        };
        let number = |offset: u64| (offset + FIRST_BYTE) as u32;
        let peer = &ends[1 - from];
        let in_bytes = |seq: u64| peer.offset(seq, size);
        let ports = (packet.header.src_port, packet.header.dst_port);
        let window = u64::from(facts.window.saturating_sub(packet.closed.into())) * size;
        let window = u16::try_from(window).unwrap_or(u16::MAX);
        let mut header = TcpHeader::new(ports.0, ports.1, number(sequence), window);
        let agrees = !is_data && packet.marks.has(Marks::AGREES);
        let asks = is_data && packet.marks.has(Marks::PROBE) && packet.len == facts.syn_len;
        if agrees || asks {
            return (0, syn(header, agrees));
        }
        header.ack = true;
        header.fin = is_data && user == 0;
        let echo = packet.marks.has(Marks::ECHO);
        (header.ece, header.cwr) = (echo && !is_data, echo && is_data);
        header.psh = is_data && user < size;
        header.acknowledgment_number = number(acknowledged);
        let mut blocks = packet
            .news()
            .iter()
            .filter(|[_, len]| *len > 0)
            .map(|[from, len]| {
                let from = packet.seq + u64::from(*from);
                let ends = [from, from + u64::from(*len)];
                let [from, to] = ends.map(|seq| number(in_bytes(seq)));
                (from, to)
            });
        if facts.smart || packet.marks.has(Marks::ELN) {
            let caused_by = blocks.next().map(|(from, _)| from);
            set_experiments(&mut header, caused_by, packet.marks.has(Marks::ELN));
        } else if let Some(first) = blocks.next() {
            let rest = std::array::from_fn(|_| blocks.next());
            let option = TcpOptionElement::SelectiveAcknowledgement(first, rest);
            let written =
                header.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, option]);
            written.expect("three blocks fit into a TCP header");
        }
        if facts.connections.len() > CONNECTIONS {
            facts.connections.pop_first();
        }
        (user, header)
    }
}

/// The beginning of a connection, which asks or agrees.
fn syn(mut header: TcpHeader, agrees: bool) -> TcpHeader {
    header.syn = true;
    header.ack = agrees;
    header.sequence_number = FIRST_BYTE as u32 - 1;
    header.acknowledgment_number = if agrees { FIRST_BYTE as u32 } else { 0 };
    header
}

/// The options of a SMART acknowledgment and of an explicit loss notification, as RFC 6994 has experiments:
/// kind 253, length, an identifier, and a sequence number or nothing.
fn set_experiments(header: &mut TcpHeader, caused_by: Option<u32>, eln: bool) {
    const KIND: u8 = 253;
    let mut options = Vec::with_capacity(12);
    if let Some(seq) = caused_by {
        options.extend([KIND, 8, b'S', b'M']);
        options.extend(seq.to_be_bytes());
    }
    if eln {
        options.extend([KIND, 4, b'E', b'L']);
    }
    let written = header.set_options_raw(&options);
    written.expect("12 bytes fit into a TCP header");
}
