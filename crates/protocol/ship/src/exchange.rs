//! Reliable messages of any length, one after the other in each direction. They are split into parts, each of which is
//! retransmitted until it is acknowledged. For occasional messages; files use CLAP.
//!
//! At most [`WINDOW`] parts are in flight, fewer at first and after a silence, so that a narrow path is not flooded.

use airlane_base::{Duration, Instant};

use crate::failure::Failure;
use crate::message::{Got, Part};

/// Maximum number of parts in flight, including the first unacknowledged one.
const WINDOW: u32 = 64;
const FIRST_WINDOW: u32 = 8;
/// Parts are accepted up to this far beyond the first missing one.
const AHEAD: u32 = u128::BITS;
/// Longest message, bytes.
pub(crate) const LONGEST: usize = 32 << 20;
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LEAST_WAIT: Duration = Duration::from_millis(30);
const LONGEST_WAIT: Duration = Duration::from_secs(4);

#[derive(Clone, Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    /// Payload of a part, bytes.
    size: usize,
    count: u32,
    /// All parts below have arrived.
    next: u32,
    /// Bit i: part `next + 1 + i` has arrived.
    later: u64,
    /// The first part that was never sent.
    unsent: u32,
    /// When each part in flight was last sent, by its number modulo the window.
    left: [Instant; WINDOW as usize],
    /// Which parts were retransmitted, and so give no round trip sample.
    again: u64,
    window: u32,
    wait: Duration,
}

impl Outgoing {
    fn new(bytes: Vec<u8>, size: usize, wait: Duration) -> Self {
        Self {
            count: bytes.len().div_ceil(size).max(1) as u32,
            bytes,
            size,
            next: 0,
            later: 0,
            unsent: 0,
            left: [Instant::ORIGIN; WINDOW as usize],
            again: 0,
            window: FIRST_WINDOW,
            wait,
        }
    }

    fn came(&self, part: u32) -> bool {
        part < self.next || part > self.next && self.later >> (part - self.next - 1) & 1 == 1
    }

    /// When a part in flight is to be retransmitted. If later parts have arrived, it counts as lost and waits less.
    fn due(&self, part: u32, round_trip: Option<Duration>) -> Instant {
        let overtaken = part == self.next && self.later != 0
            || part > self.next && self.later >> (part - self.next - 1) != 0;
        let wait = match round_trip {
            Some(time) if overtaken => time.mul_f64(1.25).max(LEAST_WAIT).min(self.wait),
            _ => self.wait,
        };
        self.left[(part % WINDOW) as usize] + wait
    }

    fn under_way(&self) -> impl Iterator<Item = u32> + '_ {
        (self.next..self.unsent).filter(|part| !self.came(*part))
    }
}

/// A message being received. All its parts have the same length except the last, which may be shorter, so memory grows
/// with the bytes received and not with what a peer declares.
#[derive(Clone, Debug, Default)]
struct Incoming {
    turn: u16,
    /// Number of parts; 0 before the first one.
    count: u32,
    /// Bytes of each part except the last.
    size: usize,
    bytes: Vec<u8>,
    /// All parts below have arrived.
    next: u32,
    /// Bit i: part `next + i` has arrived.
    later: u128,
}

impl Incoming {
    /// Whether a part is consistent with the message.
    fn fits(&self, part: &Part<'_>) -> bool {
        let len = part.bytes.len();
        let is_last = part.number + 1 == part.count;
        let (size, count) = match self.count {
            0 => (len, part.count),
            _ => (self.size, self.count),
        };
        // The last part does not show the length of the others.
        (part.count == 1 || self.count > 0 || !is_last)
            && count == part.count
            && (len == size || is_last && len < size)
            && count as usize <= LONGEST / size.max(1) + 1
            && (self.next..self.next + AHEAD).contains(&part.number)
    }

    fn keep(&mut self, part: &Part<'_>) {
        if self.count == 0 {
            (self.size, self.count) = (part.bytes.len(), part.count);
        }
        let from = part.number as usize * self.size;
        let to = from + part.bytes.len();
        if self.bytes.len() < to {
            self.bytes.resize(to, 0);
        }
        self.bytes[from..to].copy_from_slice(part.bytes);
        self.later |= 1 << (part.number - self.next);
        let whole = self.later.trailing_ones();
        self.next += whole;
        self.later = self.later.checked_shr(whole).unwrap_or(0);
    }
}

/// Both directions of one end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchange {
    sends: Option<Outgoing>,
    send_turn: u16,
    takes: Incoming,
    got: Option<Got>,
    round_trip: Option<Duration>,
}

impl Exchange {
    /// Sends a message, once the previous one has arrived, as it has if the peer has answered it.
    pub(crate) fn send(&mut self, bytes: Vec<u8>, size: usize) -> Result<(), Failure> {
        if bytes.len() > LONGEST {
            return Err(Failure::LongList(bytes.len()));
        }
        self.send_turn = self.send_turn.wrapping_add(1);
        self.sends = Some(Outgoing::new(bytes, size, self.wait()));
        Ok(())
    }

    /// Whether everything sent has arrived.
    pub(crate) const fn is_idle(&self) -> bool {
        self.sends.is_none()
    }

    /// Takes a round trip that was measured elsewhere.
    pub(crate) fn measured(&mut self, sample: Duration) {
        let before = self.round_trip.unwrap_or(sample);
        self.round_trip = Some(before.mul_f64(0.875) + sample.mul_f64(0.125));
    }

    pub(crate) const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    fn wait(&self) -> Duration {
        let twice = self.round_trip.map_or(FIRST_WAIT, |time| time * 2);
        twice.max(LEAST_WAIT).min(LONGEST_WAIT)
    }

    pub(crate) fn handle_got(&mut self, now: Instant, got: Got) {
        let Some(sends) = self.sends.as_mut().filter(|_| got.turn == self.send_turn) else {
            return;
        };
        if got.next < sends.next || got.next > sends.unsent {
            return;
        }
        let newest = (got.later != 0).then(|| got.next + 64 - got.later.leading_zeros());
        let newest = newest
            .or(got.next.checked_sub(1))
            .filter(|part| *part < sends.unsent);
        // The acknowledged part gives a sample if it is the newest to arrive and was sent once.
        let sample =
            newest.filter(|part| !sends.came(*part) && sends.again >> (part % WINDOW) & 1 == 0);
        let sample = sample.map(|part| now.saturating_since(sends.left[(part % WINDOW) as usize]));
        if got.next > sends.next || got.later & !sends.later != 0 {
            sends.window = (sends.window + 1).min(WINDOW);
        }
        sends.later = match got.next == sends.next {
            true => sends.later | got.later,
            false => got.later,
        };
        sends.next = got.next;
        if sends.next == sends.count {
            self.sends = None;
        }
        if let Some(sample) = sample {
            self.measured(sample);
        }
        let wait = self.wait();
        if let Some(sends) = &mut self.sends {
            sends.wait = wait;
        }
    }

    /// Takes a part. Returns the message when it is complete.
    pub(crate) fn handle_part(&mut self, part: Part<'_>) -> Option<Vec<u8>> {
        let expected = self.takes.turn.wrapping_add(1);
        if part.turn == self.takes.turn && part.turn != 0 {
            // The sender has missed our last acknowledgment.
            self.got = Some(Got {
                turn: part.turn,
                next: part.count,
                later: 0,
            });
            return None;
        }
        let takes = &mut self.takes;
        let is_next = part.turn == expected && part.number < part.count;
        let is_known = is_next && part.number < takes.next && part.count == takes.count;
        if !is_known {
            if !is_next || !takes.fits(&part) {
                return None;
            }
            takes.keep(&part);
        }
        self.got = Some(Got {
            turn: part.turn,
            next: takes.next,
            later: (takes.later >> 1) as u64,
        });
        if takes.next != takes.count {
            return None;
        }
        // The ends alternate: this message answers our last one, which therefore arrived even if its acknowledgment was
        // lost.
        self.sends = None;
        let whole = std::mem::replace(
            &mut self.takes,
            Incoming {
                turn: expected,
                ..Incoming::default()
            },
        );
        Some(whole.bytes)
    }

    pub(crate) fn poll_got(&mut self) -> Option<Got> {
        self.got.take()
    }

    /// The next part to send now.
    pub(crate) fn poll_part(&mut self, now: Instant) -> Option<Part<'_>> {
        let round_trip = self.round_trip;
        let sends = self.sends.as_mut()?;
        let late = sends
            .under_way()
            .find(|part| sends.due(*part, round_trip) <= now);
        let number = match late {
            Some(part) => {
                let overtaken =
                    sends.due(part, round_trip) < sends.left[(part % WINDOW) as usize] + sends.wait;
                if !overtaken {
                    sends.wait = (sends.wait * 2).min(LONGEST_WAIT);
                    sends.window = (sends.window / 2).max(1);
                }
                sends.again |= 1 << (part % WINDOW);
                part
            }
            None if sends.unsent < sends.count.min(sends.next + sends.window) => {
                sends.unsent += 1;
                sends.again &= !(1 << ((sends.unsent - 1) % WINDOW));
                sends.unsent - 1
            }
            None => return None,
        };
        sends.left[(number % WINDOW) as usize] = now;
        let from = number as usize * sends.size;
        let to = sends.bytes.len().min(from + sends.size);
        Some(Part {
            turn: self.send_turn,
            number,
            count: sends.count,
            bytes: &sends.bytes[from..to],
        })
    }

    /// When `poll_part` next has a part.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let sends = self.sends.as_ref()?;
        sends
            .under_way()
            .map(|part| sends.due(part, self.round_trip))
            .min()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Despite loss, duplication and delay, messages arrive once, whole and in order.
        #[test]
        fn messages_arrive_once_whole_and_in_order(
            lengths in prop::collection::vec(0_usize..3_000, 1..4),
            fates in prop::collection::vec((0_u8..10, 1_u64..60), 1..200),
        ) {
            let (mut a, mut b) = (Exchange::default(), Exchange::default());
            let mut now = Instant::ORIGIN;
            let mut fates = fates.into_iter().chain(std::iter::repeat((9, 20)));
            let mut wire: Vec<(Instant, bool, Vec<u8>, Got)> = vec![];
            for (turn, len) in lengths.into_iter().enumerate() {
                let message: Vec<u8> = (0..len).map(|i| (i * 7 + turn) as u8).collect();
                a.send(message.clone(), 50).unwrap();
                let mut came = None;
                let mut steps = 0;
                while !a.is_idle() {
                    steps += 1;
                    prop_assert!(steps < 20_000, "it does not end");
                    while let Some(part) = a.poll_part(now) {
                        let (fate, late) = fates.next().unwrap();
                        let mut bytes = part.turn.to_be_bytes().to_vec();
                        bytes.extend(part.number.to_be_bytes());
                        bytes.extend(part.count.to_be_bytes());
                        bytes.extend(part.bytes);
                        for _ in 0..match fate { 0..3 => 0, 3 => 2, _ => 1 } {
                            let none = Got { turn: 0, next: 0, later: 0 };
                            wire.push((now + Duration::from_millis(late), true, bytes.clone(), none));
                        }
                    }
                    let next = wire.iter().map(|(at, ..)| *at).chain(a.poll_timeout()).min();
                    now = now.max(next.expect("something is under way or due"));
                    let (due, later): (Vec<_>, Vec<_>) = wire.into_iter().partition(|(at, ..)| *at <= now);
                    wire = later;
                    for (_, forward, bytes, got) in due {
                        if !forward {
                            a.handle_got(now, got);
                            continue;
                        }
                        let part = Part {
                            turn: u16::from_be_bytes([bytes[0], bytes[1]]),
                            number: u32::from_be_bytes(bytes[2..6].try_into().unwrap()),
                            count: u32::from_be_bytes(bytes[6..10].try_into().unwrap()),
                            bytes: &bytes[10..],
                        };
                        if let Some(whole) = b.handle_part(part) {
                            prop_assert!(came.replace(whole).is_none());
                        }
                        if let Some(got) = b.poll_got() {
                            let (fate, late) = fates.next().unwrap();
                            if fate > 1 {
                                wire.push((now + Duration::from_millis(late), false, vec![], got));
                            }
                        }
                    }
                }
                prop_assert_eq!(came, Some(message));
            }
        }
    }

    #[test]
    fn a_part_of_an_impossible_message_takes_no_memory() {
        let mut end = Exchange::default();
        let part = |count, number| Part {
            turn: 1,
            number,
            count,
            bytes: &[0; 100],
        };
        assert_eq!(end.handle_part(part(u32::MAX, 0)), None);
        assert_eq!(end.handle_part(part(10, 10)), None);
        assert!(end.takes.bytes.is_empty() && end.poll_got().is_none());
        // One byte per part would make 33 million parts, but memory grows only with the bytes received.
        let tiny = |number| Part {
            turn: 1,
            number,
            count: LONGEST as u32,
            bytes: &[0],
        };
        for number in 0..300 {
            assert_eq!(end.handle_part(tiny(number)), None);
        }
        assert!(end.takes.bytes.capacity() < 4_096);
    }
}
