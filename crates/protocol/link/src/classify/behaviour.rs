//! Judges what kind of traffic a flow carries from how it behaves, where neither a rule nor a code point
//! says.
//!
//! ```text
//! TCP, SCTP, QUIC, uTP     page   young, or after a pause
//!                          paced  TCP only: more than 64 KiB since the last pause, if one of its first windows left evenly
//!                                 (`flight`)
//!                          file   more than 1 MiB since the last pause, or 256 KiB in more than 2 s
//!                          interactive  TCP and SCTP: no packet above 400 B among the last 12, nor for 250 ms
//! names (DNS, NTP), ICMP   interactive
//! RTP                      call   mean length below 400 B
//!                          video  above 600 B
//! other, mean above 600 B  video  128 packets one way and at most 2 back, of even lengths
//!                          page, file   as TCP: it is answered, so it or the protocol inside repairs its own losses
//! other, below 400 B       call   even gaps of 10, 20, 30, 40 or 60 ms, alike both ways: what codecs send
//!                          interactive  everything else
//! ```
//! A pause is a second in which both directions together carry less than 4 kB. Between two limits a flow
//! keeps its judgement. Both directions of a flow are judged as one, so acknowledgments go with the data they
//! acknowledge.
//!
//! It cannot know: what several flows do that share a tunnel; whether a program with a codec's gaps is a
//! game; how long a file will be that has just begun; and that two-way video without RTP is no transfer.

use airlane_base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flight::Flight;
use super::signs::{self, Sign, Stream};
use crate::flow::{FlowKey, ICMP, ICMPV6, TCP};

const SCTP: u8 = 132;

/// Upper bound of a page; a longer transfer is a file, as is one of `STEADY` bytes over more than [`BUSY`],
/// bytes.
const PAGE: u64 = 1 << 20;
const STEADY: u64 = 256 << 10;
/// Bytes that an evenly sent flow has carried when it stops being a page and becomes paced.
const PACED: u64 = 64 << 10;
const BUSY: Duration = Duration::from_secs(2);
/// Length of a pause, and the bytes it must stay below.
const PAUSE: Duration = Duration::from_secs(1);
const QUIET: u32 = 4_000;
/// A thin flow: this many packets in a row, over this long, none above this length. Acknowledgments may come
/// in volleys, hence the time.
const THIN: u8 = 12;
const THIN_FOR: Duration = Duration::from_millis(250);
pub(super) const SHORT: usize = 400;
/// Bounds of the mean lengths of small and of large packets, bytes.
const SMALL: u32 = 400;
const LARGE: u32 = 600;
/// Packets one way over which answers are counted, and the answers of a stream at most and of a transfer at
/// least.
const WINDOW: u16 = 128;
const REPORTS: u16 = 2;
const ANSWERS: u16 = 6;
/// Packet intervals of codecs, microseconds.
const GAPS: [u32; 5] = [10_000, 20_000, 30_000, 40_000, 60_000];
/// Range of gaps that count, microseconds: shorter ones separate the parts of one message, longer ones are
/// silence.
const GAP: [u64; 2] = [2_000, 130_000];
/// Number of gaps needed for a mean.
const ENOUGH: u16 = 12;
/// Packets in a row that establish a call, and that refute one.
const SURE: [u8; 2] = [6, 120];
/// Packets of each direction whose payload is inspected.
const LOOKS: u32 = 16;

/// The kinds of behaviour of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// Small packets at even intervals: speech.
    Call,
    /// Small packets that a person waits for: keystrokes, games, names.
    Interactive,
    /// A short transfer, or the beginning of a long one.
    Page,
    /// A long transfer.
    File,
    /// A long transfer whose sender paces by a model of its path.
    Paced,
    /// Large packets without acknowledgments.
    Video,
}

impl Behaviour {
    /// All variants.
    pub const ALL: [Self; 6] = [
        Self::Call,
        Self::Interactive,
        Self::Page,
        Self::File,
        Self::Paced,
        Self::Video,
    ];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Interactive => "interactive",
            Self::Page => "page",
            Self::File => "file",
            Self::Paced => "paced",
            Self::Video => "video",
        }
    }
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}

/// One direction of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    pub(super) packets: u32,
    pub(super) bytes: u64,
    last: Option<Instant>,
    /// Mean length and mean absolute deviation from it, in sixteenths of a byte.
    mean: u32,
    spread: u32,
    /// Mean gap and mean absolute deviation from it, microseconds; number of gaps in the mean, up to 64.
    gap: u32,
    sway: u32,
    gaps: u16,
    /// Packets since answers were last counted.
    window: u16,
    stream: Stream,
}

impl Course {
    #[inline]
    fn add(&mut self, now: Instant, len: usize) {
        let len16 = (len as u32) << 4;
        match self.last {
            None => self.mean = len16,
            Some(last) => {
                self.spread = self.spread - self.spread / 16 + self.mean.abs_diff(len16) / 16;
                self.mean = self.mean - self.mean / 16 + len16 / 16;
                let gap = now.saturating_since(last).as_nanos() / 1_000;
                if (GAP[0]..GAP[1]).contains(&gap) {
                    self.add_gap(gap as u32);
                }
            }
        }
        self.last = Some(now);
        self.packets = self.packets.saturating_add(1);
        self.bytes += len as u64;
        self.window = self.window.saturating_add(1);
    }

    /// Averages all gaps at first, and later with a memory of 64 gaps.
    #[inline]
    fn add_gap(&mut self, gap: u32) {
        self.gaps = (self.gaps + 1).min(64);
        let n = i64::from(self.gaps);
        let (mean, gap) = (i64::from(self.gap), i64::from(gap));
        // The mean was zero before the first gap.
        let away = if n == 1 { 0 } else { (gap - mean).abs() };
        self.gap = (mean + (gap - mean) / n) as u32;
        let sway = i64::from(self.sway);
        self.sway = (sway + (away - sway) / n) as u32;
    }

    fn mean(&self) -> u32 {
        self.mean >> 4
    }

    /// Whether its packet interval is a codec's.
    #[inline]
    fn is_even(&self) -> bool {
        let near = |codec: &u32| self.gap.abs_diff(*codec) * 12 <= *codec;
        self.gaps >= ENOUGH && self.sway * 10 <= self.gap * 3 && GAPS.iter().any(near)
    }

    /// Whether it sends more than occasional comfort noise.
    #[inline]
    fn is_active(&self, now: Instant) -> bool {
        let recent = |last| now.saturating_since(last) < PAUSE;
        self.gaps > 0 && self.last.is_some_and(recent)
    }
}

/// The history of a flow.
#[derive(Clone, Debug)]
pub(super) struct Conduct {
    pub(super) courses: [Course; 2],
    pub(super) began: Instant,
    pub(super) last: Instant,
    pub(super) behaviour: Behaviour,
    sign: Option<Sign>,
    /// Since the last pause: start and bytes.
    burst_began: Instant,
    burst: u64,
    /// The current second: start and bytes.
    second_began: Instant,
    second: u32,
    /// Consecutive packets without a large one, and the time of the last large one.
    thin: u8,
    thick_at: Instant,
    /// Consecutive packets that speak for another judgement.
    against: u8,
    large: bool,
    streams: bool,
    /// What this end has sent since the last answer.
    flight: Flight,
}

impl Conduct {
    pub(super) fn new(now: Instant, flow: &FlowKey) -> Self {
        Self {
            courses: [Course::default(); 2],
            began: now,
            last: now,
            behaviour: match flow.protocol {
                TCP | SCTP => Behaviour::Page,
                _ => Behaviour::Interactive,
            },
            sign: signs::of_ports(flow),
            burst_began: now,
            burst: 0,
            second_began: now,
            second: 0,
            thin: 0,
            thick_at: now,
            against: 0,
            large: false,
            streams: false,
            flight: Flight::default(),
        }
    }

    /// Records a packet of `len` bytes in this direction.
    #[inline]
    pub(super) fn add<'a>(
        &mut self,
        now: Instant,
        protocol: u8,
        way: Way,
        len: usize,
        payload: impl FnOnce() -> &'a [u8],
    ) -> Behaviour {
        let len = len.min(1 << 16);
        self.add_burst(now, len);
        let course = &mut self.courses[way as usize];
        course.add(now, len);
        let mut first = false;
        if protocol != TCP && course.packets <= LOOKS {
            self.sign = signs::of_payload(payload(), self.sign, &mut course.stream);
            first = course.packets == 1;
        }
        if self.burst <= PACED {
            self.flight.on_packet(now, way == Way::Sent);
        }
        match way {
            // Only the first windows count; later ones overlap.
            Way::Sent if len > SHORT && self.burst <= PACED => {
                self.flight.on_sent(now, len);
            }
            Way::Sent => {}
            Way::Received => self.flight.on_answer(now),
        }
        if len > SHORT {
            (self.thin, self.thick_at) = (0, now);
        } else {
            self.thin = self.thin.saturating_add(1);
        }
        self.last = now;
        self.behaviour = match (protocol, self.sign) {
            (TCP, _) if self.burst >= PACED && self.flight.is_paced() => Behaviour::Paced,
            (TCP | SCTP, _) => self.transfer(now, true),
            (ICMP | ICMPV6, _) | (_, Some(Sign::Names)) => Behaviour::Interactive,
            (_, Some(Sign::Quic | Sign::Utp)) => self.transfer(now, false),
            (_, sign) => self.datagram(now, sign == Some(Sign::Rtp), first),
        };
        self.behaviour
    }

    #[inline]
    fn add_burst(&mut self, now: Instant, len: usize) {
        let second = now.saturating_since(self.second_began);
        if now.saturating_since(self.last) >= PAUSE || (second >= PAUSE && self.second < QUIET) {
            (self.burst_began, self.burst) = (now, 0);
        }
        if second >= PAUSE {
            (self.second_began, self.second) = (now, 0);
        }
        self.second = self.second.saturating_add(len as u32);
        self.burst += len as u64;
    }

    #[inline]
    fn transfer(&self, now: Instant, may_be_thin: bool) -> Behaviour {
        let busy = now.saturating_since(self.burst_began) >= BUSY;
        match self.burst {
            PAGE.. => Behaviour::File,
            STEADY.. if busy => Behaviour::File,
            _ if may_be_thin && self.is_thin(now) => Behaviour::Interactive,
            _ => Behaviour::Page,
        }
    }

    /// Whether this end only acknowledges.
    #[inline]
    pub(super) fn only_answers(&self) -> bool {
        let [sent, received] = &self.courses;
        sent.mean() < SHORT as u32 / 2 && received.mean() > LARGE
    }

    #[inline]
    fn is_thin(&self, now: Instant) -> bool {
        self.thin >= THIN && now.saturating_since(self.thick_at) >= THIN_FOR
    }

    #[inline]
    fn datagram(&mut self, now: Instant, rtp: bool, first: bool) -> Behaviour {
        let [there, back] = &self.courses;
        let mean = there.mean().max(back.mean());
        let limit = if self.large && !first { SMALL } else { LARGE };
        self.large = mean > limit;
        match (self.large, rtp) {
            (true, true) => Behaviour::Video,
            (false, true) => Behaviour::Call,
            (true, false) if self.is_stream() => Behaviour::Video,
            (true, false) => self.transfer(now, false),
            (false, false) => self.small(now),
        }
    }

    /// Whether what it sends gets hardly any answers.
    #[inline]
    fn is_stream(&mut self) -> bool {
        let [there, back] = &mut self.courses;
        let (most, least) = match there.window >= back.window {
            true => (there, back),
            false => (back, there),
        };
        if most.window >= WINDOW {
            self.streams = match self.streams {
                true => least.window < ANSWERS,
                false => least.window <= REPORTS && most.spread * 2 <= most.mean,
            };
            (most.window, least.window) = (0, 0);
        }
        self.streams
    }

    #[inline]
    fn small(&mut self, now: Instant) -> Behaviour {
        let is_call = self.behaviour == Behaviour::Call;
        if is_call == self.is_even(now) {
            self.against = 0;
        } else {
            self.against += 1;
        }
        if self.against < SURE[usize::from(is_call)] {
            return if is_call {
                Behaviour::Call
            } else {
                Behaviour::Interactive
            };
        }
        self.against = 0;
        if is_call {
            Behaviour::Interactive
        } else {
            Behaviour::Call
        }
    }

    #[inline]
    fn is_even(&self, now: Instant) -> bool {
        let [there, back] = &self.courses;
        match (there.is_active(now), back.is_active(now)) {
            (true, true) => {
                let alike = there.gap.abs_diff(back.gap) * 6 <= there.gap;
                alike && there.is_even() && back.is_even()
            }
            (true, false) => there.is_even(),
            (false, true) => back.is_even(),
            (false, false) => self.behaviour == Behaviour::Call,
        }
    }

    /// Explains the judgement in a sentence.
    pub(super) fn why(&self, protocol: u8) -> String {
        let name = match (protocol, self.sign) {
            (TCP, _) => "TCP",
            (SCTP, _) => "SCTP",
            (_, Some(Sign::Quic)) => "QUIC",
            (_, Some(Sign::Utp)) => "uTP",
            (_, Some(Sign::WireGuard)) => "a WireGuard tunnel",
            (_, Some(Sign::Stun)) => "a WebRTC session",
            _ => "datagrams",
        };
        let largest = |course: fn(&Course) -> u64| {
            let [there, back] = &self.courses;
            course(there).max(course(back))
        };
        let mean = largest(|course| course.mean().into());
        let burst = self.burst as f64 / 1e6;
        match (self.behaviour, self.sign) {
            (Behaviour::Call, Some(Sign::Rtp)) => {
                format!("It is RTP with small packets, {mean} B in the mean.")
            }
            (Behaviour::Video, Some(Sign::Rtp)) => {
                format!("It is RTP with large packets, {mean} B in the mean.")
            }
            (Behaviour::Call, _) => format!(
                "Small packets, {mean} B in the mean, come at even gaps of {:.0} ms.",
                largest(|course| course.gap.into()) as f64 / 1e3
            ),
            (Behaviour::Interactive, Some(Sign::Names)) => {
                "Its port is one of DNS or NTP, whose answers somebody waits for.".to_owned()
            }
            (Behaviour::Interactive, _) => match protocol {
                TCP | SCTP => format!("It is {name}, and its last packets were all small."),
                ICMP | ICMPV6 => "It is ICMP, which others wait for.".to_owned(),
                _ => format!("Small packets, {mean} B in the mean, come at no codec's gaps."),
            },
            (Behaviour::Page, _) => format!(
                "It is {name}, and has carried {burst:.2} MB since its last pause, which is no file yet."
            ),
            (Behaviour::File, _) => format!(
                "It is {name}, and has carried {burst:.1} MB within {:.1} s without a pause.",
                self.last.saturating_since(self.burst_began).as_secs_f64()
            ),
            (Behaviour::Paced, _) => format!(
                "It is TCP whose first windows left evenly, as of senders that model their path (BBR), and has carried {burst:.1} MB."
            ),
            (Behaviour::Video, _) => {
                format!(
                    "Large packets, {mean} B in the mean, go one way, and hardly any answer them."
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
