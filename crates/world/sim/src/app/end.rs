//! One end of a flow's connections at its node: a transport endpoint, and its segments as packets.
//!
//! The two ends of a flow only meet through packets. What one end sends and what it receives are two
//! connections, each with a number and a port at the client of its own, as the agents of ns-2 have them.

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
    /// When its time has come, as it was then.
    due: Option<Instant>,
    place: FlowPlace,
    /// What its data has in common, the connection's number included; and likewise its acknowledgments of what the other
    /// connection brings. A packet is a copy with what is its own.
    data: Packet,
    ack: Packet,
    ack_len: u32,
    options: Options,
    /// The whole window, segments, and how many bits of what it lacks have no room in a packet.
    window: u32,
    scale: u32,
    /// Bytes in front of user data.
    header_len: u32,
    /// Length of a SYN.
    syn_len: u32,
    /// Whether segments carry the time at which they left.
    stamps: bool,
    /// That of the packet that came last, which data echoes; nobody but a capture reads that.
    heard: u32,
    /// Of its sender, where somebody asks.
    probe: Option<Box<WindowProbe>>,
}

impl End {
    /// The first end of a flow (`end` = 0) or the second (1), over fresh state. `segment` is the user
    /// bytes of a full segment; `endpoints` says which of the flow's endpoints these are, of those that it has.
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

    /// Measures the windows of its sender from now on; `segment` is as in [`new`](Self::new).
    pub(crate) fn watch(&mut self, segment: u32) {
        self.probe = Some(Box::new(WindowProbe::new(segment)));
    }

    /// Bytes in front of user data.
    pub(crate) const fn header_len(&self) -> u32 {
        self.header_len
    }

    /// What was measured, if somebody asked.
    pub(crate) fn probe(&self) -> Option<&WindowProbe> {
        self.probe.as_deref()
    }

    /// The next connections, over fresh state; counters go on.
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

    /// Number of the connection whose data it sends; packets of others are ignored.
    pub(crate) const fn sends(&self) -> u32 {
        self.data.connection
    }

    /// What it is to its peer and its application. Changes go through the methods below.
    #[inline]
    pub(crate) const fn endpoint(&self) -> &Tcp {
        &self.endpoint
    }

    /// The application gives `bytes` more.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.endpoint.write(bytes);
        self.stirred = true;
    }

    /// The application has given all.
    pub(crate) fn close(&mut self) {
        self.endpoint.close();
        self.stirred = true;
    }

    /// In-order bytes for the application since the last call.
    #[inline]
    pub(crate) fn read(&mut self) -> Option<u64> {
        let bytes = self.endpoint.read();
        // What opens a window says so.
        self.stirred |= bytes.is_some();
        bytes
    }

    /// Time has passed; an early call does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(probe) = &mut self.probe {
            probe.advance(now, self.endpoint.sender());
        }
        // The application or another of its ends may be what is due.
        if self.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        self.endpoint.handle_timeout(now);
        if let Some(probe) = &mut self.probe {
            probe.on_timers(now, self.endpoint.sender());
        }
        self.stirred = true;
    }

    /// When `handle_timeout` is due, for an end that has been asked for all it has to send.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.stirred {
            true => self.endpoint.poll_timeout(),
            false => self.due,
        }
    }

    /// There is nothing to send until something happens.
    fn rest(&mut self) {
        self.stirred = false;
        self.due = self.endpoint.poll_timeout();
    }

    /// Which end takes a packet.
    #[inline]
    pub(crate) const fn of(packet: &Packet) -> usize {
        match packet.role() {
            Role::Ack | Role::Request => 0,
            _ => 1,
        }
    }

    /// What the data is that it sends.
    pub(crate) const fn data_role(&self) -> Role {
        self.data.role()
    }

    /// Takes in a packet for this end, if it is of its connections.
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

    /// The segment in a packet with data.
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

    /// A packet for this end has come destroyed, and the link knows which it was.
    pub(crate) fn handle_destroyed(&mut self, packet: &Packet) {
        if packet.role().is_data() && packet.connection == self.ack.connection {
            self.endpoint.handle_destroyed(&self.data_of(packet));
        }
    }

    /// A link of the path went down or came back, as this end hears.
    pub(crate) fn handle_hint(&mut self, now: Instant, hint: Hint<()>) {
        match hint {
            Hint::Disconnected(()) => self.endpoint.freeze(now),
            Hint::Connected(()) => self.endpoint.thaw(now),
        }
        self.stirred = true;
    }

    /// Puts the next packet to leave now in the place of `packet`, if there is one.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        // Of two ends one is asked in vain each time: the question is short.
        self.stirred && self.next_packet(now, packet)
    }

    fn next_packet(&mut self, now: Instant, packet: &mut Packet) -> bool {
        // Its parts are read where they were written: a move would wait for all of them.
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
                // It is rounded up, so that what is advertised is there.
                let lacks = self.window - ack.window;
                packet.closed = lacks.div_ceil(1 << self.scale) as u16;
                // An end that only receives has said all that it has to say.
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

/// How many bits of what such a window lacks have no room in a packet.
pub(crate) const fn unsaid_bits(window: u32) -> u32 {
    (u32::BITS - window.leading_zeros()).saturating_sub(u16::BITS)
}

/// Segments that one end has sent, first or again, and the other has not: they are on their way, or will be sent again.
pub(crate) fn under_way(from: &End, to: &End) -> u64 {
    let sent = from.endpoint.sender().stats();
    let got = to.endpoint.receiver().stats();
    let vain = got.segments_duplicate + got.segments_beyond_window;
    let new = got.segments_received.saturating_sub(vain);
    (sent.segments_sent - sent.retransmissions).saturating_sub(new)
}

/// How the blocks of an acknowledgment stand in its packet.
fn packet_blocks(ack: &Ack) -> [[u16; 2]; MOST_BLOCKS] {
    let mut blocks = NO_BLOCKS;
    for (place, block) in blocks.iter_mut().zip(ack.blocks.iter()) {
        // A window of selective acknowledgments is at most so many segments: that was validated.
        *place = [block.start.abs_diff(ack.ack) as u16, block.len() as u16];
    }
    blocks
}

/// The blocks that a packet reports.
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
