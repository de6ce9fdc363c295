//! Writes simulated packets as bytes: IPv4, TCP or UDP, and zeros for user data.
//!
//! Lengths and checksums are valid. If a scenario counts headers (`header-size`), an IP packet is as long as the link
//! counts it; headers beyond IP and TCP, such as those of Ethernet, become zeros after the packet. If it counts none,
//! as in the dissertation, a data packet is longer than on the link by its headers (IP 20, TCP 20 or UDP 8 bytes),
//! and a pure acknowledgment is only its headers, whatever `ack-size` says.
//!
//! TCP headers follow what the ends have negotiated: a SYN carries MSS, SACK-permitted, timestamps and window scale,
//! and later segments use what was agreed. Windows are the advertised ones, scaled; without scaling, the field is
//! 65,535 for every larger window.
//!
//! TCP sequence numbers count bytes: segments times their size; the last segment of a transfer may be shorter. Both
//! directions start at 1, as after a handshake, whether one is simulated or not; the end of the data has a number.
//! Each simulated endpoint carries data in one direction only. The acknowledgment and window in its data packets, and
//! the sequence number in its acknowledgments, are therefore the last values seen at this place. If TCP has a
//! handshake, two such endpoints form one connection: both use the port of the first.
//!
//! CLAP packets have their own length, of which 20 bytes are IP, followed by zeros: the bitmap of a NACK travels
//! outside the packet.

mod options;

use std::collections::BTreeMap;
use std::net::IpAddr;

use airlane_link::wire::LIVE_HEADER_ROOM;
use airlane_link::{Frame, Port};
use airlane_transport::tcp::{Range, ReportKind, TcpConfig, Timestamp};
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, PacketBuilder, TcpHeader, UdpHeader};

use crate::app::end::{blocks_of, unsaid_bits};
use crate::app::place::FlowPlace;
use crate::engine::medium::Datagram;
use crate::packet::{Asks, CLAP, ESP, Header, Marks, Packet, Role};
use crate::scenario::{FlowConfig, RelayConfig, Scenario, TransportConfig};
use options::{Options, STAMPS_LEN};

/// User bytes in the largest IP packet, after the headers of IPv4 and TCP with timestamps.
pub(crate) const LARGEST_PACKET: u64 = 65_535 - 40 - STAMPS_LEN;
/// Connections of a flow that are remembered; older ones have nothing in flight.
const CONNECTIONS: usize = 256;
const TIME_TO_LIVE: u8 = 64;
const BOUNDED: &str = "the length was bounded";
/// The IP header and 8 bytes of ESP.
const LEAST_HIDDEN: usize = Ipv4Header::MIN_LEN + 8;
const FIRST_BYTE: u64 = 1;

/// The state of one end of a connection.
#[derive(Clone, Debug, Default)]
struct Sent {
    /// Segments shorter than full ones, in order, each with the total bytes missing up to and including it;
    /// negative if a request in one packet is longer.
    short: Vec<(u64, i64)>,
    /// Bytes up to the end of the highest segment.
    high: u64,
    /// Bytes of the other end that it has acknowledged, and the closed part of its window then, segments.
    acknowledged: u64,
    closed: u32,
    /// The timestamp of its last packet.
    stamp: u32,
}

impl Sent {
    /// Bytes before segment `seq`, if full segments have `size` bytes.
    fn offset(&self, seq: u64, size: u64) -> u64 {
        let before = self.short.partition_point(|(short, _)| *short < seq);
        let lacking = before.checked_sub(1).map_or(0, |last| self.short[last].1);
        (seq * size).saturating_add_signed(-lacking)
    }

    fn note(&mut self, seq: u64, len: u64, size: u64) {
        let lacking = size as i64 - len as i64;
        let place = self.short.partition_point(|(short, _)| *short < seq);
        let is_known = self
            .short
            .get(place)
            .is_some_and(|(short, _)| *short == seq);
        if lacking != 0 && !is_known {
            let before = place.checked_sub(1).map_or(0, |last| self.short[last].1);
            self.short.insert(place, (seq, before));
            for (_, all) in &mut self.short[place..] {
                *all += lacking;
            }
        }
        self.high = self.high.max(self.offset(seq, size) + len);
    }
}

/// What the ends of a connection have negotiated.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    /// The full advertised window in segments, and by how many bits the closed part is shifted in a packet.
    window: u32,
    unsaid_bits: u32,
    /// Window scale.
    shift: Option<u32>,
    /// Simulated header bytes of a data packet; the real headers take their place.
    header_len: u32,
    /// Whether acknowledgments name the segment that caused them instead of blocks (SMART); whether they carry SACK
    /// blocks.
    smart: bool,
    sack: bool,
    stamps: bool,
    handshake: bool,
    ecn: bool,
}

impl Agreed {
    fn new(tcp: &TcpConfig, size: u64) -> Self {
        let window = tcp.window_of(size as u32);
        Self {
            window,
            unsaid_bits: unsaid_bits(window),
            shift: tcp.window_shift(size as u32),
            header_len: tcp.header_len(),
            smart: tcp.report() == ReportKind::Smart,
            sack: tcp.report() == ReportKind::Sack,
            stamps: tcp.timestamps.unwrap_or_default(),
            handshake: tcp.handshake.unwrap_or_default(),
            ecn: tcp.ecn.unwrap_or_default(),
        }
    }

    /// The number of a packet's connection, and its source and destination ports. If there is a handshake, a request
    /// and its reply, which are two connections in the simulator, become one: the first of the two has an odd number.
    fn connection(&self, packet: &Packet, from: usize) -> (u32, [u16; 2]) {
        let mut ports = [packet.header.src_port, packet.header.dst_port];
        let number = packet.connection;
        if !self.handshake || number == 0 || number % 2 == 1 {
            return (number, ports);
        }
        let client = &mut ports[1 - from];
        *client = FlowPlace::port_before(*client);
        (number - 1, ports)
    }

    /// The window field when `closed` segments of `size` bytes each are missing from the full window. Rounded up: a
    /// sender does not send a part of a segment.
    fn field(&self, closed: u32, size: u64) -> u16 {
        let window = u64::from(self.window.saturating_sub(closed)) * size;
        let units = window.div_ceil(1 << self.shift.unwrap_or(0));
        u16::try_from(units).unwrap_or(u16::MAX)
    }
}

/// What all packets of a flow have in common.
#[derive(Clone, Debug)]
struct FlowFacts {
    /// User bytes of a full segment.
    size: u64,
    /// One, or two if a relay splits the connection; none without TCP.
    legs: Vec<Agreed>,
    /// By connection number and endpoints: the state of the first end and of the second.
    connections: BTreeMap<(u32, u8), [Sent; 2]>,
}

impl FlowFacts {
    fn new(flow: &FlowConfig) -> Self {
        let size = flow.app.packet().map_or(1, |size| size.as_bytes());
        let second = flow.relay.as_ref().map(|relay| {
            let RelayConfig::Split { transport, .. } = relay;
            transport.as_ref().unwrap_or(&flow.transport)
        });
        let legs = [Some(&flow.transport), second].into_iter().flatten();
        let agreed = legs.filter_map(|leg| match leg {
            TransportConfig::Tcp(tcp) => Some(Agreed::new(tcp, size)),
            TransportConfig::Udp(_) | TransportConfig::Clap(_) => None,
        });
        Self {
            size,
            legs: agreed.collect(),
            connections: BTreeMap::new(),
        }
    }

    fn agreed(&self, packet: &Packet) -> Agreed {
        let leg = usize::from(packet.endpoints).min(self.legs.len().saturating_sub(1));
        self.legs.get(leg).copied().unwrap_or_default()
    }
}

/// Writes packets as bytes, as seen at one place.
#[derive(Clone, Debug)]
pub(crate) struct CaptureHeaders {
    flows: Vec<FlowFacts>,
    zeros: Vec<u8>,
    /// Whether the bytes travel, instead of being shown in a capture: encrypted packets are then hidden, and no
    /// padding follows the packet.
    travels: bool,
}

impl CaptureHeaders {
    /// For captures of a resolved scenario.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            flows: scenario.flows.iter().map(FlowFacts::new).collect(),
            zeros: Vec::new(),
            travels: false,
        }
    }

    /// For packets that travel as bytes.
    pub(crate) fn of_travelling(scenario: &Scenario) -> Self {
        Self {
            travels: true,
            ..Self::new(scenario)
        }
    }

    /// Appends the bytes of a port's frame: header, packet, and zeros for redundancy.
    pub(crate) fn write_frame(
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

    pub(crate) fn write(&mut self, packet: &Packet, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        // A capture shows encrypted packets as their ends see them.
        let raw = packet.header.protocol == CLAP;
        let (user, tcp) = if raw {
            // Its own header is zeros, too.
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
        if self.travels && packet.header.protocol == ESP {
            return self.write_hidden(packet, ip, bytes);
        }
        let payload = &self.zeros[..user];
        let Header {
            src_port, dst_port, ..
        } = packet.header;
        match tcp {
            Some(mut header) => {
                write_ip(&mut ip, IpNumber::TCP, header.header_len() + user, bytes);
                header.checksum = header.calc_checksum_ipv4(&ip, payload).expect(BOUNDED);
                bytes.extend_from_slice(&header.to_bytes());
            }
            None if raw => write_ip(&mut ip, IpNumber(CLAP), user, bytes),
            None => {
                write_ip(&mut ip, IpNumber::UDP, UdpHeader::LEN + user, bytes);
                let header = UdpHeader::with_ipv4_checksum(src_port, dst_port, &ip, payload);
                bytes.extend_from_slice(&header.expect(BOUNDED).to_bytes());
            }
        }
        bytes.extend_from_slice(payload);
        // Padding for counted headers of other layers.
        let len = (packet.len as usize).max(bytes.len() - start);
        if !self.travels {
            bytes.resize(start + len, 0);
        }
    }

    /// An encrypted packet (RFC 4303). The ports form its SPI, so nothing on the path can read them as ports.
    fn write_hidden(&self, packet: &Packet, mut ip: Ipv4Header, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        let len = (packet.len as usize).clamp(LEAST_HIDDEN, LARGEST_PACKET as usize);
        write_ip(&mut ip, IpNumber(ESP), len - Ipv4Header::MIN_LEN, bytes);
        for port in [packet.header.src_port, packet.header.dst_port] {
            bytes.extend_from_slice(&port.to_be_bytes());
        }
        bytes.resize(start + len, 0);
    }

    /// User bytes of a packet and its TCP header.
    fn tcp(&mut self, packet: &Packet) -> (u64, TcpHeader) {
        let facts = &mut self.flows[packet.flow as usize];
        let (size, agreed) = (facts.size, facts.agreed(packet));
        // Data of the main direction comes from the first end, its acknowledgments from the second.
        let (from, is_data) = match packet.role() {
            Role::Data => (0, true),
            Role::Ack => (1, false),
            Role::Request => (1, true),
            _ => (0, false),
        };
        if facts.connections.len() > CONNECTIONS {
            facts.connections.pop_first();
        }
        let (connection, [from_port, to_port]) = agreed.connection(packet, from);
        let ends = facts.connections.entry((connection, packet.endpoints));
        let [sent, peer] = match (ends.or_default(), from) {
            ([first, second], 0) => [first, second],
            ([first, second], _) => [second, first],
        };
        let number = |offset: u64| (offset + FIRST_BYTE) as u32;
        let probes = packet.asks().is_some();
        let asks = packet.asks() == Some(Asks::Connection);
        let agrees = !is_data && packet.marks.has(Marks::AGREES);

        sent.stamp = Timestamp::of(packet.created).number();
        let echoed = match packet.echoed {
            // The last acknowledgment of a handshake has no echo in the simulator.
            0 if !asks => peer.stamp,
            echoed => echoed,
        };
        let stamps = agreed.stamps.then_some([sent.stamp, echoed]);
        let mut header = TcpHeader::new(from_port, to_port, 0, 0);
        if asks || agrees {
            header.syn = true;
            header.ack = agrees;
            header.sequence_number = FIRST_BYTE as u32 - 1;
            header.acknowledgment_number = if agrees { FIRST_BYTE as u32 } else { 0 };
            (header.ece, header.cwr) = (agreed.ecn, agreed.ecn && asks);
            // The window of a SYN is never scaled.
            header.window_size = Agreed {
                shift: None,
                ..agreed
            }
            .field(0, size);
            let largest = size + if agreed.stamps { STAMPS_LEN } else { 0 };
            let largest = u16::try_from(largest).unwrap_or(u16::MAX);
            let options = Options::of_syn(largest, agreed.sack, stamps, agreed.shift);
            return (0, with_options(header, &options));
        }

        let mut options = Options::with_stamps(stamps);
        let user = if is_data {
            let len = u64::from(packet.len.saturating_sub(agreed.header_len));
            header.fin = len == 0;
            header.psh = len < size;
            if !probes {
                sent.note(packet.seq, len.max(1), size);
            }
            header.sequence_number = number(sent.offset(packet.seq, size));
            len
        } else {
            let acknowledged = peer.offset(packet.seq, size);
            sent.acknowledged = sent.acknowledged.max(acknowledged);
            sent.closed = u32::from(packet.closed) << agreed.unsaid_bits;
            header.sequence_number = number(sent.high);
            let blocks = blocks_of(packet);
            let numbers =
                |block: &Range| [block.start, block.end].map(|seq| number(peer.offset(seq, size)));
            let blocks: Vec<[u32; 2]> = blocks.iter().map(numbers).collect();
            match blocks.first() {
                Some([cause, _]) if agreed.smart => options.push_cause(*cause),
                _ => options.push_blocks(&blocks),
            }
            if packet.marks.has(Marks::ELN) {
                options.push_loss();
            }
            0
        };
        header.ack = true;
        header.acknowledgment_number = match is_data {
            true => number(sent.acknowledged),
            false => number(peer.offset(packet.seq, size)),
        };
        header.window_size = agreed.field(sent.closed, size);
        let echo = packet.marks.has(Marks::ECHO);
        (header.ece, header.cwr) = (echo && !is_data, echo && is_data);
        (user, with_options(header, &options))
    }
}

/// Appends the bytes of a live node's datagram.
pub(crate) fn write_datagram(datagram: &Datagram, bytes: &mut Vec<u8>) {
    let (IpAddr::V4(from), IpAddr::V4(to)) = (datagram.from.ip(), datagram.to) else {
        return;
    };
    // Both ends usually listen on the same port, and a datagram carries only its source port.
    let port = datagram.from.port();
    let builder = PacketBuilder::ipv4(from.octets(), to.octets(), TIME_TO_LIVE).udp(port, port);
    let written = builder.write(bytes, &datagram.bytes);
    written.expect("a datagram fits an IP packet, and a vector takes everything");
}

/// Appends the IP header of a packet with `inside` bytes after it. Written by hand: a builder moves space for all
/// kinds of headers several times per packet.
fn write_ip(ip: &mut Ipv4Header, protocol: IpNumber, inside: usize, bytes: &mut Vec<u8>) {
    ip.protocol = protocol;
    ip.set_payload_len(inside).expect(BOUNDED);
    ip.header_checksum = ip.calc_header_checksum();
    bytes.extend_from_slice(&ip.to_bytes());
}

fn with_options(mut header: TcpHeader, options: &Options) -> TcpHeader {
    let written = header.set_options_raw(options.as_bytes());
    written.expect("timestamps and three blocks fit into a TCP header");
    header
}
