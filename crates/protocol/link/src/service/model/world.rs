//! A world to check: two ends, the frames in flight between them, and the comparison of states.

use std::hash::{DefaultHasher, Hash, Hasher};

use airlane_base::{Duration, Instant, Rate};

use crate::config::{FixedTimers, SchemeConfig, TimersConfig};
use crate::context::{Ages, Context, DeliveredPayload, Output, PortFacts};
use crate::flow::{FlowKey, Lane, Packet};
use crate::ledger::ServiceLedger;
use crate::mechanism::copies::Copies;
use crate::mechanism::receive_window::ReceiveWindow;
use crate::mechanism::send_window::SendWindow;
use crate::sample;
use crate::service::Service;
use crate::wire::{Codec, Frame, FrameKind, Layout};

/// A packet that consists of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Numbered(pub(super) u8);

sample::payload!(Numbered, _packet => 1);

impl crate::pack::Divisible for Numbered {}

impl Packet for Numbered {
    fn flow(&self) -> FlowKey {
        sample::flow(0, 0, 0)
    }
}

/// Maximum number of packets in a world.
const MOST_PACKETS: usize = 8;
/// Maximum number of frames in flight per direction; more are lost.
const ROOM: usize = 2;

/// The behaviour of the channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    /// Number of frames that are duplicated.
    pub(super) doubles: u8,
    /// How many numbers may overtake a frame; 0: none, FIFO.
    pub(super) overtakes: u8,
    /// Whether original frames and keepalives keep their order and are never duplicated.
    pub(super) originals_in_order: bool,
}

impl Channel {
    /// FIFO, without duplicates.
    pub(super) const RADIO: Self = Self {
        doubles: 0,
        overtakes: 0,
        originals_in_order: false,
    };

    /// One frame is duplicated, and this many numbers may overtake one.
    pub(super) const fn reordering(overtakes: u8) -> Self {
        Self {
            doubles: 1,
            overtakes,
            ..Self::RADIO
        }
    }
}

/// A world to check.
pub(super) struct World {
    pub(super) scheme: SchemeConfig,
    pub(super) codec: Codec,
    pub(super) window: u8,
    /// Packets that end 0 sends.
    pub(super) packets: u8,
    /// Packets that end 1 sends.
    pub(super) back: u8,
    /// Total number of timeouts at both ends; this bounds the attempts, which are numbered.
    pub(super) timeouts: u8,
    pub(super) channel: Channel,
    /// The packet that overtakes no other, if there is one.
    pub(super) barrier: Option<u8>,
}

#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) frame: Frame<Numbered>,
    /// Originals sent and packets delivered at its sender when it left.
    pub(super) sent: u8,
    pub(super) received: u8,
}

#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) service: Service<Numbered>,
    pub(super) ledger: ServiceLedger,
    pub(super) sent: u8,
    pub(super) delivered: Vec<u8>,
    /// The newest stamps received from the other end.
    pub(super) newest: (u8, u8),
    /// The number of this end's requests for each undelivered packet.
    pub(super) asked: [u8; MOST_PACKETS],
    /// Packets that this end had in flight when it was reset.
    pub(super) lost: Vec<u8>,
}

impl End {
    pub(super) fn new(scheme: &SchemeConfig, codec: Codec) -> Self {
        let facts = PortFacts {
            codec,
            rate: Rate::from_bps(1_000_000).unwrap(),
            delay: Duration::ZERO,
            max_payload: 1,
            frame_overhead: 0,
        };
        Self {
            service: Service::new(scheme, Ages::default(), &facts),
            ledger: ServiceLedger::default(),
            sent: 0,
            delivered: Vec::new(),
            newest: (0, 0),
            asked: [0; MOST_PACKETS],
            lost: Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) ends: [End; 2],
    /// Frames in flight to end 0 and 1.
    pub(super) air: [Vec<Flight>; 2],
    pub(super) now: Instant,
    pub(super) doubled: u8,
    pub(super) timeouts: u8,
    /// A normalised hash of the fields above, equal for equivalent states.
    pub(super) key: [u64; 2],
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl World {
    /// A world where only end 0 sends.
    pub(super) fn new(
        scheme: SchemeConfig,
        codec: Codec,
        (packets, timeouts): (u8, u8),
        channel: Channel,
    ) -> Self {
        Self {
            window: scheme.window().unwrap_or(0) as u8,
            scheme,
            codec,
            packets,
            back: 0,
            timeouts,
            channel,
            barrier: None,
        }
    }

    /// Packets alternate between two flows.
    pub(super) fn lane(&self, packet: u8) -> Lane {
        Lane {
            number: u16::from(packet % 2),
            behind_all: self.barrier == Some(packet),
        }
    }

    pub(super) fn end(&self) -> End {
        End::new(&self.scheme, self.codec)
    }

    /// Gives an end one input, then takes all of its outputs.
    pub(super) fn input(
        &self,
        state: &mut State,
        end: usize,
        packet: &mut Option<Numbered>,
        input: impl FnOnce(&mut Service<Numbered>, &mut Context<'_, Numbered>),
    ) {
        let mut out = Output::default();
        let sent_by_peer = state.ends[1 - end].sent;
        let this = &mut state.ends[end];
        let mut cx = Context::new(state.now, &mut out, &mut this.ledger);
        input(&mut this.service, &mut cx);
        if cx.out.events.drain(..).any(|event| event.reset) {
            this.service.scheme_mut().reset(&mut cx);
            cx.ledger.resets += 1;
            let lost = cx.out.lost.drain(..).map(|packet| packet.0);
            this.lost.extend(lost);
        }
        let lane = packet.map_or(Lane::default(), |packet| self.lane(packet.0));
        while let Some(frame) = this.service.scheme_mut().poll_any(&mut cx, packet, lane) {
            this.service.start_timers(&frame.header, state.now);
            this.sent += u8::from(frame.header.kind == FrameKind::Data);
            if frame.header.kind == FrameKind::Nak {
                // The newest packet with this number: a window has it only once.
                let space = self.codec.space(&Layout::SEQ);
                let lag = space.distance(sent_by_peer.into(), frame.header.seq);
                if let Some(packet) = u32::from(sent_by_peer).checked_sub(lag) {
                    this.asked[packet as usize] += 1;
                }
            }
            let flight = Flight {
                frame,
                sent: this.sent,
                received: (this.delivered.len() + cx.out.payloads.len()) as u8,
            };
            if state.air[1 - end].len() < ROOM {
                state.air[1 - end].push(flight);
            }
        }
        for DeliveredPayload { payload, .. } in out.payloads {
            this.delivered.push(payload.0);
            this.asked[usize::from(payload.0)] = 0;
        }
    }

    /// Whether the frame may arrive before those that left before it, and after those that have overtaken it
    /// already.
    pub(super) fn may_arrive(&self, state: &State, to: usize, place: usize) -> bool {
        let flight = &state.air[to][place];
        if self.channel.overtakes == 0 && place > 0 {
            return false;
        }
        let in_step = |kind| matches!(kind, FrameKind::Data | FrameKind::Keepalive);
        if self.channel.originals_in_order && in_step(flight.frame.header.kind) {
            let mut before = state.air[to][..place].iter();
            if before.any(|other| in_step(other.frame.header.kind)) {
                return false;
            }
        }
        let newest = state.ends[to].newest;
        let overtaken = newest.0.saturating_sub(flight.sent);
        let outdated = newest.1.saturating_sub(flight.received);
        overtaken.max(outdated) <= self.channel.overtakes
    }

    pub(super) fn arrive(&self, state: &mut State, to: usize, flight: Flight) {
        let newest = &mut state.ends[to].newest;
        newest.0 = newest.0.max(flight.sent);
        newest.1 = newest.1.max(flight.received);
        self.input(state, to, &mut None, |service, cx| {
            service.handle_frame(cx, flight.frame);
        });
    }

    pub(super) fn key(&self, state: &State) -> [u64; 2] {
        // 128 bits: among a million different states, a collision has a probability of about 10^-26.
        [0, 1].map(|salt| {
            let mut key = Relative::new(state.now, salt);
            let delivered = state.ends.each_ref().map(|end| &end.delivered);
            (state.doubled, state.timeouts, delivered).hash(&mut key);
            for (this, air) in state.ends.iter().zip(&state.air) {
                this.service.add_to(&mut key);
                (this.sent, this.asked, &this.lost).hash(&mut key);
                let mut flights: Vec<u64> = air
                    .iter()
                    .map(|flight| {
                        let (sent, received) = (flight.sent, flight.received);
                        let mut one = Relative::new(state.now, salt);
                        flight.frame.hash(&mut one);
                        // What counts is its distance to what has arrived, before or after.
                        let distances = [(this.newest.0, sent), (this.newest.1, received)];
                        let distances = distances.map(|(a, b)| i16::from(a) - i16::from(b));
                        distances.hash(&mut one);
                        one.finish()
                    })
                    .collect();
                if self.channel.overtakes > 0 && !self.channel.originals_in_order {
                    flights.sort_unstable();
                }
                flights.hash(&mut key);
            }
            key.finish()
        })
    }
}

/// Longer ago than any timer runs.
pub(super) const LONG_AGO: u64 = 20;

/// Hashes states so that equivalent ones are equal: times are relative to now, and those that affect nothing
/// any more ([`Noted`](crate::context::Noted)) are left out. Only times are hashed as 128 bits.
pub(super) struct Relative {
    now: i128,
    hasher: DefaultHasher,
}

impl Relative {
    pub(super) fn new(now: Instant, salt: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        let now = now.as_nanos().into();
        Self { now, hasher }
    }
}

impl Hasher for Relative {
    fn write(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
    }

    /// An instant.
    fn write_u128(&mut self, nanos: u128) {
        let distance = nanos as i128 - self.now;
        let distance = distance.max(-i128::from(LONG_AGO));
        self.hasher.write_i128(distance);
    }

    /// A noted time.
    fn write_i128(&mut self, nanos: i128) {
        self.hasher.write_i128((nanos - self.now).max(0));
    }

    fn finish(&self) -> u64 {
        self.hasher.finish()
    }
}

/// No world has copies.
impl Hash for Copies {
    fn hash<H: Hasher>(&self, _state: &mut H) {
        unreachable!("no world has copies")
    }
}

type Parts<'a> = (
    &'a dyn Keyed,
    Option<&'a SendWindow<Numbered>>,
    Option<&'a ReceiveWindow<Numbered>>,
);

/// Anything that contributes to the key.
trait Keyed {
    fn add_to(&self, key: &mut Relative);
}

impl<T: Hash> Keyed for T {
    fn add_to(&self, key: &mut Relative) {
        self.hash(key);
    }
}

impl Service<Numbered> {
    pub(super) fn add_to(&self, key: &mut Relative) {
        self.parts().0.add_to(key);
    }

    /// All parts for the key, and the windows of a reliable sender and receiver.
    fn parts(&self) -> Parts<'_> {
        match self {
            Self::Gbn(s) => (s, Some(&s.sent), None),
            Self::Sr(s) => (s, Some(&s.sent), Some(&s.received)),
            Self::SrM1(s) => (s, Some(&s.sent), Some(&s.received)),
            Self::SrM2(s) => (s, Some(&s.sent), Some(&s.received)),
            Self::SrBitmap(s) => (s, Some(&s.sent), Some(&s.received)),
            Self::Rlp(s) => (s, None, None),
            Self::GsmRlp(s) => (s, None, None),
            Self::Default(_) | Self::Xor(_) | Self::Rse(_) | Self::RseAd(_) | Self::Snoop(_) => {
                unreachable!("no world has it")
            }
        }
    }

    /// Packets that a reliable sender keeps.
    pub(super) fn kept(&self) -> Vec<u8> {
        if let Self::GsmRlp(s) = self {
            return s.kept().map(|packet| packet.0).collect();
        }
        let window = self.parts().1;
        window.map_or(vec![], |w| w.packets().map(|packet| packet.0).collect())
    }

    /// Packets that a reliable receiver holds out of order.
    pub(super) fn held(&self) -> Vec<u8> {
        let window = self.parts().2;
        window.map_or(vec![], |w| w.packets().map(|packet| packet.0).collect())
    }

    /// The maximum number of transmissions of an outstanding frame.
    pub(super) fn attempts(&self) -> u32 {
        let window = self.parts().1;
        window.map_or(0, |w| w.attempts())
    }
}

pub(super) fn timers() -> Option<TimersConfig> {
    let nanos = |n| Duration::from_nanos(n).into();
    Some(TimersConfig::Fixed(FixedTimers {
        ack: nanos(1),
        nak: nanos(3),
        keepalive: nanos(4),
        rto: nanos(5),
    }))
}
