//! One end of a flow's connections at its node: a transport endpoint, and its segments as packets.
//!
//! The two ends of a flow communicate only through packets. An end sends on one connection and receives on another,
//! each with a number and a client port of its own, as the agents of ns-2 do.

use airlane_base::{Duration, Instant};
use airlane_link::mobility::Hint;
use airlane_transport::tcp::{Ecn, MOST_BLOCKS, Options, Timestamp};
use airlane_transport::{Ack, Blocks, Data, Endpoint, Range, Segment, Tcp, TcpConfig};

use super::place::FlowPlace;
use super::window_probe::WindowProbe;
use crate::packet::{Asks, Marks, NO_BLOCKS, Packet, Role};

/// One end of a flow.
#[derive(Clone, Debug)]
pub(crate) struct End {
    endpoint: Tcp,
    /// Whether anything has happened since it last had nothing to send.
    stirred: bool,
    /// Its deadline when it last had nothing to send.
    due: Option<Instant>,
    place: FlowPlace,
    /// Templates: the fields that all its data packets share, the connection number included, and those that its
    /// acknowledgments of the other connection share.
    data: Packet,
    ack: Packet,
    ack_len: u32,
    options: Options,
    /// The full receive window in segments, and by how many bits the closed part is shifted to fit into a packet.
    window: u32,
    scale: u32,
    /// Header bytes before the user data.
    header_len: u32,
    /// Bytes of a SYN.
    syn_len: u32,
    /// Whether segments carry timestamps.
    stamps: bool,
    /// Timestamp of the last packet received, which data echoes; only captures show it.
    heard: u32,
    /// Measures its sender's windows, if the scenario asks for it.
    probe: Option<Box<WindowProbe>>,
}

impl End {
    /// The first end of a flow (`end` = 0) or the second (1), with fresh state. `segment` is the user bytes of a full
    /// segment; `endpoints` is the index of this pair among the flow's endpoints.
    pub(crate) fn new(
        config: &TcpConfig,
        place: FlowPlace,
        segment: u32,
        phase: Duration,
        end: usize,
        endpoints: u8,
    ) -> Self {
        let [data, ack] = match end {
            0 => [Role::Data, Role::RequestAck],
            _ => [Role::Request, Role::Ack],
        };
        Self {
            endpoint: Tcp::new(config, segment, phase),
            stirred: false,
            due: None,
            place,
            data: place.blank(data, 0, endpoints),
            ack: place.blank(ack, 0, endpoints),
            ack_len: config.ack_size.as_bytes() as u32,
            options: config.options(),
            window: config.window_of(segment),
            scale: unsaid_bits(config.window_of(segment)),
            header_len: config.header_len(),
            syn_len: config.syn_len(),
            stamps: config.timestamps.unwrap_or_default(),
            heard: 0,
            probe: None,
        }
    }

    /// Starts measuring the windows of its sender; `segment` is as in [`new`](Self::new).
    pub(crate) fn watch(&mut self, segment: u32, level: Option<f64>) {
        self.probe = Some(Box::new(WindowProbe::new(segment, level)));
    }

    /// Header bytes before the user data.
    pub(crate) const fn header_len(&self) -> u32 {
        self.header_len
    }

    /// The window measurements, if enabled.
    pub(crate) fn probe(&self) -> Option<&WindowProbe> {
        self.probe.as_deref()
    }

    /// Opens the next connections with fresh state; counters continue.
    pub(crate) fn open(
        &mut self,
        config: &TcpConfig,
        phase: Duration,
        [sends, receives]: [u32; 2],
    ) {
        self.endpoint.restart(config, phase);
        (self.stirred, self.heard) = (true, 0);
        for (blank, number) in [(&mut self.data, sends), (&mut self.ack, receives)] {
            *blank = self.place.blank(blank.role(), number, blank.endpoints);
        }
    }

    /// Number of the connection that it sends on; packets of other connections are ignored.
    pub(crate) const fn sends(&self) -> u32 {
        self.data.connection
    }

    /// Read access to the endpoint. Changes go through the methods below.
    #[inline]
    pub(crate) const fn endpoint(&self) -> &Tcp {
        &self.endpoint
    }

    /// The application writes `bytes` more.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.endpoint.write(bytes);
        self.stirred = true;
    }

    /// The application has written all its data.
    pub(crate) fn close(&mut self) {
        self.endpoint.close();
        self.stirred = true;
    }

    /// In-order bytes for the application since the last call.
    #[inline]
    pub(crate) fn read(&mut self) -> Option<u64> {
        let bytes = self.endpoint.read();
        // A read that opens the window may send a window update.
        self.stirred |= bytes.is_some();
        bytes
    }

    /// Time has passed; an early call does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(probe) = &mut self.probe {
            probe.advance(now, self.endpoint.sender());
        }
        // The deadline may be that of the application or of another end of the flow.
        if self.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        self.endpoint.handle_timeout(now);
        if let Some(probe) = &mut self.probe {
            probe.on_timers(now, self.endpoint.sender());
        }
        self.stirred = true;
    }

    /// When `handle_timeout` is due. Valid once everything that can be sent has been polled.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.stirred {
            true => self.endpoint.poll_timeout(),
            false => self.due,
        }
    }

    /// Nothing to send until something happens.
    fn rest(&mut self) {
        self.stirred = false;
        self.due = self.endpoint.poll_timeout();
    }

    /// The end that a packet is for.
    #[inline]
    pub(crate) const fn of(packet: &Packet) -> usize {
        match packet.role() {
            Role::Ack | Role::Request => 0,
            _ => 1,
        }
    }

    /// The role of the data that it sends.
    pub(crate) const fn data_role(&self) -> Role {
        self.data.role()
    }

    /// Handles a packet for this end, if it belongs to its connections.
    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let (connection, segment) = if packet.role().is_data() {
            (self.ack.connection, self.data_of(packet))
        } else if packet.marks.has(Marks::AGREES) {
            (self.data.connection, Segment::Syn { answers: true })
        } else {
            let closed = u32::from(packet.closed) << self.scale;
            let ack = Ack {
                ack: packet.seq,
                blocks: blocks_of(packet),
                window: self.window.saturating_sub(closed),
                eln: packet.marks.has(Marks::ELN),
                stamp: Timestamp::from_number(packet.echoed),
                echo: packet.marks.has(Marks::ECHO),
            };
            (self.data.connection, Segment::Ack(ack))
        };
        if packet.connection == connection {
            if let Some(probe) = &mut self.probe {
                probe.advance(now, self.endpoint.sender());
                probe.on_activity(now);
            }
            self.endpoint.handle_segment(now, segment);
            self.stirred = true;
            if self.stamps {
                self.heard = Timestamp::of(packet.created).number();
            }
        }
    }

    /// The segment in a data packet.
    #[inline]
    fn data_of(&self, packet: &Packet) -> Segment {
        match packet.asks() {
            Some(Asks::Connection) => return Segment::Syn { answers: false },
            Some(Asks::Window) => return Segment::Probe(packet.seq),
            None => {}
        }
        Segment::Data(Data {
            seq: packet.seq,
            len: packet.len - self.header_len,
            retransmission: packet.marks.has(Marks::AGAIN),
            ecn: match packet.marks.has(Marks::MARKED) {
                true => Ecn::Marked,
                false => Ecn::NotCapable,
            },
            cut: packet.marks.has(Marks::ECHO),
            stamp: self.stamps.then(|| Timestamp::of(packet.created)),
        })
    }

    /// A packet for this end has arrived corrupted, and the link can tell which packet it was.
    pub(crate) fn handle_destroyed(&mut self, packet: &Packet) {
        if packet.role().is_data() && packet.connection == self.ack.connection {
            self.endpoint.handle_destroyed(&self.data_of(packet));
        }
    }

    /// This end learns that a link of its path went down or came back.
    pub(crate) fn handle_hint(&mut self, now: Instant, hint: Hint<()>) {
        match hint {
            Hint::Disconnected(()) => self.endpoint.freeze(now),
            Hint::Connected(()) => self.endpoint.thaw(now),
        }
        self.stirred = true;
    }

    /// Writes the next packet to send now into `packet`, and returns whether there was one.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        // Of two ends, one is polled in vain each time, so this check must be cheap.
        self.stirred && self.next_packet(now, packet)
    }

    fn next_packet(&mut self, now: Instant, packet: &mut Packet) -> bool {
        // The segment is read where it was written: a move would stall on all of its stores.
        let segment = &self.endpoint.poll_transmit(now);
        if segment.is_some()
            && let Some(probe) = &mut self.probe
        {
            probe.on_activity(now);
        }
        match segment {
            None => {
                self.rest();
                return false;
            }
            Some(Segment::Data(data)) => {
                *packet = self.data;
                packet.seq = data.seq;
                packet.len = self.header_len + data.len;
                packet.echoed = self.heard;
                packet.marks = Marks::default()
                    .with(Marks::AGAIN, data.retransmission)
                    .with(Marks::MARKABLE, data.ecn != Ecn::NotCapable)
                    .with(Marks::ECHO, data.cut);
                if self.endpoint.is_held(now) {
                    self.rest();
                }
            }
            Some(Segment::Ack(ack)) => {
                *packet = self.ack;
                packet.seq = ack.ack;
                packet.len = self.ack_len + self.options.len(ack);
                packet.echoed = ack.stamp.map_or(0, Timestamp::number);
                packet.marks = Marks::default()
                    .with(Marks::ELN, ack.eln)
                    .with(Marks::ECHO, ack.echo);
                if !ack.blocks.is_empty() {
                    packet.blocks = packet_blocks(ack);
                    let repeated = ack.duplicate().is_some_and(|block| block.end <= ack.ack);
                    packet.marks = packet.marks.with(Marks::REPEATED, repeated);
                }
                // Rounded up, so that no more is advertised than is there.
                let lacks = self.window - ack.window;
                packet.closed = lacks.div_ceil(1 << self.scale) as u16;
                // An end that only receives has nothing else to send.
                if self.endpoint.is_silent() {
                    self.rest();
                }
            }
            Some(Segment::Syn { answers: false }) => {
                *packet = self.data;
                packet.len = self.syn_len;
                packet.marks = Marks::ASKS;
            }
            Some(Segment::Syn { answers: true }) => {
                *packet = self.ack;
                packet.len = self.syn_len;
                packet.echoed = self.heard;
                packet.marks = Marks::AGREES;
            }
            Some(Segment::Probe(seq)) => {
                *packet = self.data;
                packet.seq = *seq;
                packet.len = self.header_len + 1;
                packet.echoed = self.heard;
                packet.marks = Marks::ASKS;
            }
        }
        packet.created = now;
        true
    }
}

/// By how many bits the closed part of such a window is shifted to fit into a packet.
pub(crate) const fn unsaid_bits(window: u32) -> u32 {
    (u32::BITS - window.leading_zeros()).saturating_sub(u16::BITS)
}

/// Segments that one end has sent and the other has not received: in flight, or to be retransmitted.
pub(crate) fn under_way(from: &End, to: &End) -> u64 {
    let sent = from.endpoint.sender().stats();
    let got = to.endpoint.receiver().stats();
    let vain = got.segments_duplicate + got.segments_beyond_window;
    let new = got.segments_received.saturating_sub(vain);
    (sent.segments_sent - sent.retransmissions).saturating_sub(new)
}

/// Encodes the SACK blocks of an acknowledgment in its packet.
fn packet_blocks(ack: &Ack) -> [[u16; 2]; MOST_BLOCKS] {
    let mut blocks = NO_BLOCKS;
    for (place, block) in blocks.iter_mut().zip(ack.blocks.iter()) {
        // Fits: validation limits the window of selective acknowledgments to this many segments.
        *place = [block.start.abs_diff(ack.ack) as u16, block.len() as u16];
    }
    blocks
}

/// The SACK blocks that a packet reports.
#[inline]
pub(crate) fn blocks_of(packet: &Packet) -> Blocks {
    let mut blocks = Blocks::default();
    let mut below = packet.marks.has(Marks::REPEATED);
    for [offset, len] in packet.blocks {
        if len == 0 {
            break;
        }
        let offset = u64::from(offset);
        let start = match std::mem::take(&mut below) {
            true => packet.seq.saturating_sub(offset),
            false => packet.seq + offset,
        };
        blocks.push(Range {
            start,
            end: start + u64::from(len),
        });
    }
    blocks
}
