//! Plays a script against an endpoint: the packets of the script's peer go in, and what leaves must match the
//! script's expectations in content and time.
//!
//! The script counts bytes and the endpoint counts segments, so each number is mapped to a segment boundary; a number
//! inside a segment makes the script inapplicable. Acknowledgments are separate packets here, while the script's data
//! carries them: an acknowledgment that leaves with data, or that repeats one carried by data, need not be expected
//! separately. As in packetdrill, several segments may leave where one is expected, and the last packets need not be
//! expected at all.

use std::collections::{BTreeMap, VecDeque};

use airlane_base::{Duration, Instant};
use airlane_transport::tcp::{Ecn, Timestamp};
use airlane_transport::{Ack, Data, Endpoint, Range, Segment, Tcp};

use super::assertions;
use super::script::{Action, Call, Event, Moment, Packet, Script};
use super::settings::Settings;

/// Why a script ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Something other than expected has happened.
    Differs(String),
    /// It contains something that cannot be expressed here.
    Inapplicable(String),
}

type Outcome<T> = Result<T, Stop>;

fn differs<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Stop::Differs(what.into()))
}

/// A packet that has left, in the script's numbers.
#[derive(Clone, Debug, PartialEq)]
enum Left {
    Syn {
        answers: bool,
    },
    Data {
        from: u64,
        to: u64,
        is_end: bool,
        ecn: Ecn,
    },
    Ack {
        blocks: Vec<(u64, u64)>,
        stamp: Option<Timestamp>,
    },
    Probe,
}

#[derive(Clone, Debug)]
struct Departure {
    at: Instant,
    /// Its acknowledgment number.
    ack: u64,
    /// Whether it reports an ECN mark.
    echo: bool,
    left: Left,
}

/// One script and one endpoint.
pub(super) struct Play<'a> {
    settings: &'a Settings,
    end: Tcp,
    now: Instant,
    out: VecDeque<Departure>,
    /// Byte offset of each segment that the endpoint may send.
    boundaries: Vec<u64>,
    is_closed: bool,
    /// When each timestamp of ours, as the script writes it, was sent.
    stamps: BTreeMap<u64, Instant>,
    /// The acknowledgment number last carried by data.
    carried: u64,
    /// Bytes that the application has asked for and not received.
    wanted: u64,
    /// Time of the last event in microseconds, if it was anchored.
    anchor: Option<u64>,
    before: u64,
    /// Assertions compared, and others.
    pub(super) looked_at: [usize; 2],
}

fn instant(micros: u64) -> Instant {
    Instant::ORIGIN + Duration::from_nanos(micros * 1_000)
}

fn micros(at: Instant) -> u64 {
    at.saturating_since(Instant::ORIGIN).as_nanos() / 1_000
}

impl<'a> Play<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            end: Tcp::new(&settings.config, settings.segment as u32, Duration::ZERO),
            now: Instant::ORIGIN,
            out: VecDeque::new(),
            boundaries: vec![0],
            is_closed: false,
            stamps: BTreeMap::new(),
            carried: 0,
            wanted: 0,
            anchor: None,
            before: 0,
            looked_at: [0; 2],
        }
    }

    pub(super) fn run(&mut self, script: &Script) -> Outcome<()> {
        for event in &script.events {
            self.event(event).map_err(|stop| match stop {
                Stop::Differs(what) => Stop::Differs(format!("line {}: {what}", event.line)),
                other => other,
            })?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Outcome<()> {
        let is_anchored = !matches!(event.action, Action::Leaves(_));
        let begun = self
            .anchor
            .filter(|_| is_anchored)
            .unwrap_or(micros(self.now));
        let times = match event.moment {
            Moment::At(from, to) => Some((from, to)),
            Moment::After(from, to) => Some((begun + from, begun + to)),
            Moment::Any => None,
        };
        match &event.action {
            Action::Leaves(packet) => {
                self.leaves(packet, times)?;
                self.anchor = None;
            }
            anchored => {
                let at = times.map_or(begun, |(from, _)| from);
                self.pass_to(instant(at))?;
                self.anchor = Some(at);
                match anchored {
                    Action::Arrives(packet) => self.arrives(packet)?,
                    Action::Call(call) => self.call(call)?,
                    Action::Code(code) => self.code(code)?,
                    Action::Command(_) | Action::Leaves(_) => {}
                }
            }
        }
        self.before = times.map_or(begun, |(from, _)| from);
        Ok(())
    }

    /// Advances the time; timers that become due are handled.
    fn pass_to(&mut self, to: Instant) -> Outcome<()> {
        while let Some(due) = self.end.poll_timeout().filter(|due| *due <= to) {
            self.expire(due)?;
        }
        self.now = self.now.max(to);
        Ok(())
    }

    fn expire(&mut self, due: Instant) -> Outcome<()> {
        self.now = self.now.max(due);
        self.end.handle_timeout(self.now);
        let first = self.out.len();
        self.drain();
        let carried = self.carried;
        // The acknowledgment has already travelled with data.
        let repeats = |one: &Departure| match &one.left {
            Left::Ack { blocks, .. } => blocks.is_empty() && one.ack <= carried,
            _ => false,
        };
        let mut at = 0;
        self.out.retain(|one| {
            at += 1;
            at <= first || !repeats(one)
        });
        match self.end.poll_timeout().is_some_and(|next| next <= due) {
            true => differs("a timer is due again at once"),
            false => Ok(()),
        }
    }

    fn drain(&mut self) {
        if self.wanted > 0 && self.end.receiver().has_unread() {
            let read = self.end.read().unwrap_or(0);
            self.wanted = self.wanted.saturating_sub(read);
        }
        while let Some(segment) = self.end.poll_transmit(self.now) {
            let expected = self.acknowledged(self.end.receiver().rcv_nxt());
            let mut departure = Departure {
                at: self.now,
                ack: expected,
                echo: false,
                left: Left::Probe,
            };
            departure.left = match segment {
                Segment::Syn { answers } => Left::Syn { answers },
                Segment::Data(data) => {
                    self.carried = expected;
                    let from = 1 + self.boundary(data.seq);
                    Left::Data {
                        from,
                        to: from + u64::from(data.len),
                        is_end: data.len == 0,
                        ecn: data.ecn,
                    }
                }
                Segment::Ack(ack) => {
                    departure.ack = self.acknowledged(ack.ack);
                    departure.echo = ack.echo;
                    let blocks = ack.blocks.iter();
                    Left::Ack {
                        blocks: blocks
                            .map(|b| (self.cut(b.start), self.cut(b.end)))
                            .collect(),
                        stamp: ack.stamp,
                    }
                }
                Segment::Probe(_) => Left::Probe,
            };
            self.out.push_back(departure);
        }
    }

    /// User bytes before one of our segments.
    fn boundary(&self, seq: u64) -> u64 {
        let last = self.boundaries.len() - 1;
        self.boundaries[last.min(seq as usize)]
    }

    /// The script's number at the start of a segment of the peer.
    fn cut(&self, seq: u64) -> u64 {
        let cuts = &self.settings.cuts;
        cuts[(cuts.len() - 1).min(seq as usize)]
    }

    /// The script's number for an acknowledgment of all segments of the peer below `seq`.
    fn acknowledged(&self, seq: u64) -> u64 {
        let is_beyond = seq as usize >= self.settings.cuts.len();
        self.cut(seq) + u64::from(is_beyond)
    }

    /// Our segment that begins at the script's number.
    fn segment_of(&self, number: u64) -> Outcome<u64> {
        let bytes = number.saturating_sub(1);
        let total = self.boundary(u64::MAX);
        if bytes > total {
            // The FIN, if there is one; otherwise a segment that was never sent.
            let is_end = self.is_closed && bytes == total + 1;
            return Ok(self.boundaries.len() as u64 + if is_end { 0 } else { 1 << 32 });
        }
        match self.boundaries.binary_search(&bytes) {
            Ok(at) => Ok(at as u64),
            Err(_) => Err(Stop::Inapplicable(
                "an acknowledgment of a part of a segment".to_owned(),
            )),
        }
    }

    fn arrives(&mut self, packet: &Packet) -> Outcome<()> {
        if packet.has('S') {
            let answers = packet.ack.is_some();
            self.end.handle_segment(self.now, Segment::Syn { answers });
            self.drain();
            return Ok(());
        }
        let options = packet.options.clone().unwrap_or_default();
        if let Some(number) = packet.ack {
            let mut ack = Ack {
                ack: self.segment_of(number)?,
                echo: packet.has('E'),
                ..Ack::default()
            };
            let window = packet.window.unwrap_or(65_535) << self.settings.scale;
            ack.window = (window / self.settings.segment).min(u64::from(u32::MAX)) as u32;
            for (from, to) in &options.sack {
                ack.blocks.push(Range {
                    start: self.segment_of(*from)?,
                    end: self.segment_of(*to)?,
                });
            }
            ack.stamp = options
                .stamp
                .and_then(|(_, echo)| self.stamps.get(&echo))
                .map(|at| Timestamp::of(*at));
            self.end.handle_segment(self.now, Segment::Ack(ack));
        }
        let cuts = &self.settings.cuts;
        let place = |number: u64| cuts.binary_search(&number).map(|at| at as u64);
        let (Ok(first), Ok(last)) = (place(packet.seq), place(packet.end)) else {
            return match packet.len() > 0 || packet.has('F') {
                true => Err(Stop::Inapplicable(
                    "data that begins within a segment".to_owned(),
                )),
                false => {
                    self.drain();
                    Ok(())
                }
            };
        };
        let (now, marked) = (self.now, packet.ecn.as_deref() == Some("ce"));
        let data = |seq: u64, len: u64| Data {
            seq,
            len: len as u32,
            retransmission: false,
            ecn: if marked { Ecn::Marked } else { Ecn::NotCapable },
            cut: packet.has('W'),
            stamp: options
                .stamp
                .and_then(|(value, _)| Timestamp::from_number(value as u32)),
        };
        for seq in first..last {
            let len = cuts[seq as usize + 1] - cuts[seq as usize];
            self.end.handle_segment(now, Segment::Data(data(seq, len)));
        }
        if packet.has('F') {
            self.end.handle_segment(now, Segment::Data(data(last, 0)));
        }
        self.drain();
        self.merge_acknowledgments();
        Ok(())
    }

    /// Of several acknowledgments caused by one packet, the last one counts.
    fn merge_acknowledgments(&mut self) {
        let now = self.now;
        let mut at = 0;
        while at + 1 < self.out.len() {
            let is_ack = |one: &Departure| one.at == now && matches!(one.left, Left::Ack { .. });
            if is_ack(&self.out[at])
                && is_ack(&self.out[at + 1])
                && self.out[at].ack < self.out[at + 1].ack
            {
                self.out.remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn call(&mut self, call: &Call) -> Outcome<()> {
        let is_done = call.result >= 0;
        match call.name.as_str() {
            "connect" => self.end.connect(),
            "write" | "send" | "sendto" | "sendmsg" | "writev" if is_done => {
                let mut left = call.result as u64;
                self.end.write(left);
                while left > 0 {
                    let len = left.min(self.settings.segment);
                    self.boundaries.push(self.boundary(u64::MAX) + len);
                    left -= len;
                }
            }
            "read" | "recv" | "recvfrom" => {
                self.wanted = self.wanted.saturating_add_signed(call.result)
            }
            "close" => self.close(),
            "shutdown" if call.arguments.iter().any(|how| how.contains("WR")) => self.close(),
            _ => {}
        }
        self.drain();
        Ok(())
    }

    fn close(&mut self) {
        self.end.close();
        self.is_closed = true;
    }

    fn code(&mut self, code: &str) -> Outcome<()> {
        let [looked_at, others] = &mut self.looked_at;
        for one in assertions::read(code) {
            match one {
                None => *others += 1,
                Some((name, wanted)) => {
                    *looked_at += 1;
                    let is = assertions::value(&self.end, name);
                    if is != wanted {
                        return differs(format!("{name} is {is}, and not {wanted}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// The earliest and latest time for a departure.
    fn window(&self, (from, to): (u64, u64)) -> (u64, u64) {
        let longer = from.saturating_sub(self.before) / 8;
        let tolerance = self.settings.tolerance.max(longer);
        (from.saturating_sub(tolerance), to + tolerance)
    }

    fn next(&mut self, latest: Option<u64>) -> Outcome<Option<Departure>> {
        loop {
            if let Some(one) = self.out.pop_front() {
                return Ok(Some(one));
            }
            match self.end.poll_timeout() {
                Some(due) if latest.is_none_or(|latest| micros(due) <= latest) => {
                    self.expire(due)?
                }
                _ => return Ok(None),
            }
        }
    }

    fn leaves(&mut self, packet: &Packet, times: Option<(u64, u64)>) -> Outcome<()> {
        let window = times.map(|times| self.window(times));
        let mut left_to_say = packet.seq;
        let mut end = packet.has('F');
        let carries = packet.len() > 0 || end;
        loop {
            let Some(one) = self.next(window.map(|(_, latest)| latest))? else {
                return differs(match left_to_say == packet.seq {
                    true => "nothing leaves".to_owned(),
                    false => format!("nothing leaves behind {left_to_say}"),
                });
            };
            if let Some((earliest, latest)) = window
                && !(earliest..=latest).contains(&micros(one.at))
            {
                let (from, to) = times.unwrap_or_default();
                let of = |micros: u64| micros as f64 / 1e6;
                return differs(format!(
                    "{} at {:.3} s, and not from {:.3} to {:.3} s",
                    say(&one),
                    of(micros(one.at)),
                    of(from),
                    of(to)
                ));
            }
            let is_right = match &one.left {
                Left::Syn { answers } => packet.has('S') && packet.ack.is_some() == *answers,
                Left::Data {
                    from,
                    to,
                    is_end,
                    ecn,
                } => {
                    let is_next = *from == left_to_say && !packet.has('S');
                    let is_part = match is_end {
                        true => end,
                        false => carries && *to <= packet.end,
                    };
                    if is_next && is_part {
                        left_to_say = *to;
                        end &= !is_end;
                    }
                    let says = packet.ecn.as_deref();
                    let is_marked =
                        says.is_none_or(|says| (says == "noecn") == (*ecn == Ecn::NotCapable));
                    is_next && is_part && is_marked
                }
                // An acknowledgment that travels with data.
                Left::Ack { .. } if carries && Some(one.ack) == packet.ack => continue,
                Left::Ack { blocks, stamp } => {
                    !carries && !packet.has('S') && self.agrees(packet, blocks, *stamp)?
                }
                Left::Probe => false,
            };
            if !is_right || (!packet.has('S') && packet.ack.is_some_and(|ack| ack != one.ack)) {
                return differs(format!("{} leaves", say(&one)));
            }
            self.now = self.now.max(one.at);
            if let Some((value, _)) = packet.options.as_ref().and_then(|options| options.stamp) {
                self.stamps.entry(value).or_insert(one.at);
            }
            if !carries || (left_to_say == packet.end && !end) {
                return Ok(());
            }
        }
    }

    /// Whether an acknowledgment has the SACK blocks and the echo that the script expects.
    fn agrees(
        &self,
        packet: &Packet,
        blocks: &[(u64, u64)],
        stamp: Option<Timestamp>,
    ) -> Outcome<bool> {
        let Some(options) = &packet.options else {
            return Ok(true);
        };
        let echoes = match (options.stamp, stamp) {
            (Some((_, echo)), Some(stamp)) => u64::from(stamp.number()) == echo,
            (Some((_, echo)), None) => {
                // Before any data, the SYN's timestamp is echoed; our SYN has none.
                self.end.receiver().rcv_nxt() == 0 || echo == 0
            }
            (None, _) => true,
        };
        Ok(echoes && options.sack == blocks)
    }
}

/// A departure in the script's notation.
fn say(one: &Departure) -> String {
    let echo = if one.echo { "E" } else { "" };
    match &one.left {
        Left::Syn { answers: false } => "S".to_owned(),
        Left::Syn { answers: true } => "S.".to_owned(),
        Left::Data {
            from, is_end: true, ..
        } => format!("F. {from}:{from}(0) ack {}", one.ack),
        Left::Data { from, to, .. } => format!(". {from}:{to}({}) ack {}", to - from, one.ack),
        Left::Ack { blocks, .. } => {
            let mut text = format!("{echo}. ack {}", one.ack);
            for (at, (from, to)) in blocks.iter().enumerate() {
                text += &format!("{}{from}:{to}", if at == 0 { " sack " } else { " " });
            }
            text
        }
        Left::Probe => "a probe of the window".to_owned(),
    }
}
